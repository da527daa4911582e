"""Which rows of a file are deleted, as deletion vectors of Delta and of Iceberg say it: 64-bit roaring bitmaps."""

import struct
from collections.abc import Iterator
from typing import Final

__all__ = ["places_in", "z85_decoded"]

_MAGIC: Final = 1681511377
_WITHOUT_RUNS, _WITH_RUNS = 12346, 12347
_FEW: Final = 4096
"""A container of up to so many values is a list of them, a larger one a bit for each."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def places_in(vector: bytes) -> set[int]:
    """The places in a vector that begins with its magic number."""
    magic, count = struct.unpack_from("<IQ", vector)
    assert magic == _MAGIC, magic
    found, at = set[int](), 12
    for _ in range(count):
        (high,) = struct.unpack_from("<I", vector, at)
        low, at = _bitmap(vector, at + 4)
        found |= {high << 32 | one for one in low}
    return found


def z85_decoded(text: str) -> bytes:
    """What five characters for four bytes each stand for."""
    found = b""
    for begin in range(0, len(text), 5):
        number = 0
        for character in text[begin : begin + 5]:
            number = number * 85 + _DIGITS.index(character)
        found += number.to_bytes(4, "big")
    return found


def _bitmap(data: bytes, at: int) -> tuple[set[int], int]:
    """A 32-bit bitmap, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    runs = b""
    if cookie & 0xFFFF == _WITH_RUNS:
        size = (cookie >> 16) + 1
        runs, at = data[at : at + (size + 7) // 8], at + (size + 7) // 8
    else:
        assert cookie == _WITHOUT_RUNS, cookie
        (size,) = struct.unpack_from("<I", data, at)
        at += 4
    told = [struct.unpack_from("<HH", data, at + 4 * number) for number in range(size)]
    at += 4 * size
    if not runs or size >= 4:
        at += 4 * size  # where each container begins, which its neighbour tells as well
    found = set[int]()
    for number, (high, less) in enumerate(told):
        is_run = bool(runs) and bool(runs[number // 8] >> number % 8 & 1)
        low, at = _container(data, at, less + 1, is_run=is_run)
        found |= {high << 16 | one for one in low}
    return found, at


def _container(data: bytes, at: int, count: int, *, is_run: bool) -> tuple[set[int], int]:
    if is_run:
        (runs,) = struct.unpack_from("<H", data, at)
        pairs = [struct.unpack_from("<HH", data, at + 2 + 4 * number) for number in range(runs)]
        return {one for first, more in pairs for one in range(first, first + more + 1)}, at + 2 + 4 * runs
    if count <= _FEW:
        return set(struct.unpack_from(f"<{count}H", data, at)), at + 2 * count
    return set(_bits(data[at : at + 8192])), at + 8192


def _bits(data: bytes) -> Iterator[int]:
    for place, byte in enumerate(data):
        yield from (8 * place + bit for bit in range(8) if byte >> bit & 1)
