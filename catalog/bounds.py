"""How large a value may be, from whichever door it comes. Pure.

What somebody asks for beyond a bound is refused. What is stored already, or stands in a log that others write, is not
refused but counts as the bound: one absurd value never stops the work on another table. Within these bounds no date, no
duration and no stored column overflows, and sums of a few of them do not either.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = [
    "EARLIEST",
    "LARGEST_BYTES",
    "LARGEST_FILE",
    "LATEST",
    "LONGEST",
    "LONGEST_SECONDS",
    "MOST",
    "MOST_DIGITS",
    "as_duration",
    "as_moment",
    "as_whole",
    "fits",
]

LONGEST: Final = timedelta(days=36_500)
"""No duration counts as longer: a hundred years."""
LONGEST_SECONDS: Final = int(LONGEST.total_seconds())
LARGEST_BYTES: Final = 1024**4
"""No size that somebody sets may be larger: 1 TiB."""
LARGEST_FILE: Final = 2**53
"""No single file is larger, and none has more rows: beyond this, a log is not to be believed."""
MOST: Final = 1_000_000
"""No count that somebody sets may be higher."""
EARLIEST: Final = datetime(1900, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(3000, 1, 1, tzinfo=UTC)
"""Moments before and after count as these: clocks are wrong at times, and a hundred years more still make a date."""

_FIRST: Final = EARLIEST.timestamp()
_LAST: Final = LATEST.timestamp()
_DIGITS: Final = 18
"""So many decimal digits always fit a column of 64 bits."""
MOST_DIGITS: Final = 100
"""No number that somebody writes has more: of thousands of digits Python makes no number at all."""


def as_duration(seconds: float) -> timedelta:
    """Seconds (infinite ones, too) as a duration between none and `LONGEST`."""
    return timedelta(seconds=min(max(seconds, 0), LONGEST_SECONDS))


def as_moment(seconds: float) -> datetime:
    """Seconds since 1970 as a UTC moment between `EARLIEST` and `LATEST`, however wrong the clock was."""
    return datetime.fromtimestamp(min(max(seconds, _FIRST), _LAST), UTC)


def as_whole(text: str, *, digits: int = _DIGITS) -> int | None:
    """The whole number that a text of plain digits writes; None for anything else, and for more digits than those that
    fit, or may be given."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def fits(number: int) -> bool:
    """Whether a whole number fits a column of 64 bits."""
    return -(2**63) <= number < 2**63
