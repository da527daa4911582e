"""Durations, sizes and other text as people write and read it (`30 days`, `128 MiB`). Pure.

`parse_*` reads what was typed, `format_*` writes what `parse_*` reads back exactly, `about_*` rounds for a sentence.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

__all__ = [
    "DAY",
    "HOUR",
    "MIB",
    "MINUTE",
    "about_bytes",
    "about_seconds",
    "count_of",
    "did_you_mean",
    "format_bytes",
    "format_seconds",
    "parse_bytes",
    "parse_seconds",
    "parse_share",
    "printable",
    "sentence",
    "storable",
]

MINUTE: Final = 60
HOUR: Final = 3_600
DAY: Final = 86_400
MIB: Final = 1024 * 1024

_SECONDS_IN: Final[Mapping[str, float]] = {
    **dict.fromkeys(("millisecond", "milliseconds", "ms"), 0.001),
    **dict.fromkeys(("second", "seconds", "s"), 1),
    **dict.fromkeys(("minute", "minutes", "min", "m"), MINUTE),
    **dict.fromkeys(("hour", "hours", "h"), HOUR),
    **dict.fromkeys(("day", "days", "d"), DAY),
    **dict.fromkeys(("week", "weeks", "w"), 7 * DAY),
}
_BYTES_IN: Final[Mapping[str, float]] = {
    "b": 1, "kib": 1024, "kb": 1000, "mib": MIB, "mb": 1000**2, "gib": 1024**3, "gb": 1000**3, "tib": 1024**4,
}  # fmt: skip
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)\s*([a-zA-Z%]*)")
_ABSURD: Final = 2**62
"""More bytes than any bound allows; a number with hundreds of digits is infinite to a float."""
_EXACT_SECONDS = (("days", DAY), ("hours", HOUR), ("minutes", MINUTE), ("seconds", 1))
_EXACT_BYTES = (("GiB", 1024**3), ("MiB", MIB), ("KiB", 1024), ("B", 1))


def parse_seconds(text: str) -> float | None:
    """Seconds in `12 hours`, `1.5 min`, `200 ms`, without bound; None for anything else, negative ones included."""
    return _scaled(text, _SECONDS_IN)


def parse_bytes(text: str) -> int | None:
    """Bytes in `128 MiB`, without bound; None for anything else, nothing and negative sizes included."""
    value = _scaled(text, _BYTES_IN)
    return round(min(value, _ABSURD)) if value else None


def parse_share(text: str) -> float | None:
    """A fraction between 0 and 1 in `10%` or `0.1`; None for anything else."""
    match = _NUMBER.fullmatch(text.strip())
    if not match or match[2] not in ("", "%"):
        return None
    value = float(match[1]) / (100 if match[2] else 1)
    return value if 0 <= value <= 1 else None


def format_seconds(seconds: int) -> str:
    """The exact duration in the largest unit that divides it: 604800 is `7 days`."""
    return _largest(seconds, _EXACT_SECONDS)


def format_bytes(size: int) -> str:
    """The exact size in the largest unit that divides it: 134217728 is `128 MiB`."""
    return _largest(size, _EXACT_BYTES)


def about_seconds(seconds: float) -> str:
    """A duration rounded for a sentence: `9 days`, `3 hours`, `40 seconds`, `0.4 seconds`."""
    for unit, size in (("day", DAY), ("hour", HOUR), ("minute", MINUTE)):
        if seconds >= 2 * size:
            return count_of(round(seconds / size), unit)
    return count_of(round(seconds), "second") if seconds >= 1 or seconds == 0 else f"{seconds:.1f} seconds"


def about_bytes(size: float) -> str:
    """A size rounded for a sentence: `1.2 GiB`, `12 MiB`, `310 B`."""
    for unit, scale in (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", MIB), ("KiB", 1024)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}" if size < 10 * scale else f"{size / scale:.0f} {unit}"
    return f"{size:.0f} B"


def count_of(count: int, noun: str) -> str:
    """`1 file`, `412 files`, `1,200 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def did_you_mean(word: str, known: Iterable[str], *, otherwise: str) -> str:
    """A hint at the known word that is nearest to one that is not; `otherwise` where none is near."""
    near = get_close_matches(word, list(known), n=1)
    return f"Did you mean {near[0]}?" if near else otherwise


def sentence(text: str) -> str:
    """The text with a full stop, which a message of somebody else's may have already."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def storable(text: str) -> str:
    """Somebody else's text as UTF-8 can say it: halves of characters, and bytes that were no text, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Somebody else's text, with control characters, which a terminal would obey, and others that nobody sees escaped
    (`\\x1b`), but for those of `keep`."""
    return "".join(
        one if one.isprintable() or one in keep else one.encode("unicode_escape").decode() for one in text
    )


def _scaled(text: str, units: Mapping[str, float]) -> float | None:
    match = _NUMBER.fullmatch(text.strip())
    if not match or match[2].lower() not in units:
        return None
    value = float(match[1]) * units[match[2].lower()]
    return value if value >= 0 else None


def _largest(value: int, units: tuple[tuple[str, int], ...]) -> str:
    for name, size in units:
        if value % size == 0 and value >= size:
            count = value // size
            return f"{count} {name.removesuffix('s') if count == 1 else name}"
    return f"{value} {units[-1][0]}"
