"""Checksum files that Hadoop's local file system leaves beside every file it writes (`.name.crc`). Pure.

Spark refuses to read a local file that disagrees with its companion, so a disagreement is news even where the file
still parses. Format: `crc\\0`, bytes per chunk (big endian), then a CRC-32 per chunk.
"""

import struct
import zlib
from typing import Final

__all__ = ["agrees_with_companion", "companion_of"]

_MAGIC: Final = b"crc\0"
_HEADER: Final = len(_MAGIC) + 4


def companion_of(path: str) -> str:
    """Where the checksums of a file are kept."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def agrees_with_companion(data: bytes, checksums: bytes) -> bool:
    """Whether `data` is what the companion was computed from.

    A companion of another form, or one too short for the file, was left behind by an earlier file of that name and says
    nothing, so it agrees.
    """
    if len(checksums) < _HEADER or not checksums.startswith(_MAGIC):
        return True
    (chunk,) = struct.unpack(">i", checksums[len(_MAGIC) : _HEADER])
    if chunk <= 0 or len(checksums) - _HEADER < 4 * -(-len(data) // chunk):
        return True
    view = memoryview(data)
    found = [zlib.crc32(view[start : start + chunk]) for start in range(0, len(data), chunk)]
    return checksums[_HEADER:] == struct.pack(f">{len(found)}I", *found)
