"""The checksum file that a Delta writer may leave per version (protocol, Version Checksum File). Pure."""

from dataclasses import dataclass

import orjson

__all__ = ["VersionChecksum", "parse_version_checksum"]


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionChecksum:
    """What a version's `.crc` file says about it."""

    files: int
    bytes: int


def parse_version_checksum(data: bytes) -> VersionChecksum | None:
    """The counts in a `.crc` file; None if it cannot be understood (it is a help, readers do without)."""
    try:
        content = orjson.loads(data)
        return VersionChecksum(files=int(content["numFiles"]), bytes=int(content["tableSizeBytes"]))
    except (ValueError, KeyError, TypeError):
        return None
