"""Paths as a Delta log writes them: percent-encoded, relative or absolute, and those of deletion-vector files."""

import re
import uuid
from typing import Final
from urllib.parse import unquote

__all__ = ["decoded", "deletion_vector_path", "is_plain", "spelling_of"]

_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.\-]*:/")
_UUID_LENGTH: Final = 20
_Z85: Final = {
    letter: value
    for value, letter in enumerate(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
}


def is_plain(raw: str) -> bool:
    """Whether `decoded(raw)` is `raw` itself: the common case, found without decoding."""
    return "%" not in raw and ":" not in raw


def decoded(raw: str) -> str:
    """One spelling per file: decoded; `file:/a`, `file:///a` and `/a` become `/a`; relative paths stay relative."""
    return raw if is_plain(raw) else unquote(_located(raw))


def spelling_of(raw: str) -> str | None:
    """The identity of a log entry, where it is not `decoded(raw)` itself; else None.

    Spark and delta-rs compare paths as they are written: what removes `p=M%C3%BCnchen/f` leaves `p=München/f` in the
    table, though both are one file.
    """
    return None if is_plain(raw) else _located(raw)


def _located(raw: str) -> str:
    """A path whose absolute forms have one spelling."""
    if not _SCHEME.match(raw):
        return raw
    scheme, rest = raw.split(":", 1)
    return "/" + rest.lstrip("/") if scheme.lower() == "file" else f"{scheme.lower()}:{rest}"


def deletion_vector_path(storage: str, where: str) -> str | None:
    """The file of a deletion vector, relative to the table or absolute; None where it is inline.

    Storage `u` encodes a UUID in the last 20 characters (Z85) after an optional folder, `p` is an absolute path.
    Raises ValueError for anything else.
    """
    if storage == "i":
        return None
    if storage == "p":
        return decoded(where)
    if storage != "u" or len(where) < _UUID_LENGTH:
        raise ValueError(f"unknown deletion vector {storage}:{where}")
    folder, encoded = where[:-_UUID_LENGTH], where[-_UUID_LENGTH:]
    name = f"deletion_vector_{_z85_uuid(encoded)}.bin"
    return f"{folder}/{name}" if folder else name


def _z85_uuid(text: str) -> uuid.UUID:
    """ZeroMQ's base 85 (rfc.zeromq.org/spec/32): five characters are four bytes, big end first."""
    data = bytearray()
    for start in range(0, len(text), 5):
        value = 0
        for letter in text[start : start + 5]:
            if letter not in _Z85:
                raise ValueError(f"not base 85: {text}")
            value = value * 85 + _Z85[letter]
        data += value.to_bytes(4, "big")
    return uuid.UUID(bytes=bytes(data))
