"""Names of the files in a Delta log. Pure; one grammar for everything that lists or writes names."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = [
    "FOLDER",
    "HINT",
    "SIDECARS",
    "Kind",
    "LogName",
    "commit_path",
    "commit_version",
    "entry_version",
    "is_after",
    "parse_name",
    "whole_version",
]

FOLDER: Final = "_delta_log"
HINT: Final = f"{FOLDER}/_last_checkpoint"
SIDECARS: Final = f"{FOLDER}/_sidecars"

_NAME = re.compile(
    r"^(?P<version>\d{20})\."
    r"(?:(?P<commit>json)|(?P<checksum>crc)|(?P<upto>\d{20})\.compacted\.json"
    r"|checkpoint\.(?:(?P<single>parquet)|(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet"
    r"|(?P<unique>[0-9a-fA-F-]{36})\.(?P<ending>json|parquet)))$"
)


class Kind(Enum):
    """What a file of the log is."""

    COMMIT = "commit"
    CHECKSUM = "checksum"
    COMPACTED = "compacted"
    CHECKPOINT = "checkpoint"
    CHECKPOINT_PART = "checkpoint part"
    CHECKPOINT_V2 = "v2 checkpoint"


@dataclass(frozen=True, kw_only=True, slots=True)
class LogName:
    """One parsed name."""

    version: int
    kind: Kind
    part: int = 0
    """Which part of a multi-part checkpoint it is, from 1; else 0."""
    parts: int = 0
    """How many parts there are; else 0."""


def commit_path(version: int) -> str:
    """Where the commit of a version lies, relative to the table."""
    return f"{FOLDER}/{version:020d}.json"


def commit_version(path: str) -> int | None:
    """The version whose commit lies at a path of a table; None for any other file."""
    name = _entry(path)
    return name.version if name is not None and name.kind is Kind.COMMIT else None


def whole_version(path: str) -> int | None:
    """The version that a commit or checkpoint at a path of a table tells of; None for any other file."""
    name = _entry(path)
    return name.version if name is not None and name.kind not in (Kind.CHECKSUM, Kind.COMPACTED) else None


def entry_version(path: str) -> int | None:
    """The version that any file of a log belongs to, checksums included; None for a pointer or a data file."""
    folder, _, name = path.rpartition("/")
    number = name.partition(".")[0]
    return int(number) if folder.endswith(FOLDER) and len(number) == 20 and number.isdecimal() else None


def _entry(path: str) -> LogName | None:
    folder, _, name = path.rpartition("/")
    return parse_name(name) if folder == FOLDER else None


def is_after(name: str, version: int) -> bool:
    """Whether a file in the log folder, or Hadoop's checksum file of one, belongs to a later version. What belongs to
    no version is, too."""
    return name.removeprefix(".") > f"{version:020d}~"


def parse_name(name: str) -> LogName | None:
    """What a file name in the log folder means; None for anything that is not part of the protocol."""
    match = _NAME.match(name)
    if match is None:
        return None
    version = int(match["version"])
    if match["part"]:
        return LogName(
            version=version, kind=Kind.CHECKPOINT_PART, part=int(match["part"]), parts=int(match["parts"])
        )
    for group, kind in (
        ("commit", Kind.COMMIT),
        ("checksum", Kind.CHECKSUM),
        ("single", Kind.CHECKPOINT),
        ("unique", Kind.CHECKPOINT_V2),
    ):
        if match[group]:
            return LogName(version=version, kind=kind)
    return LogName(version=version, kind=Kind.COMPACTED)
