"""Time as a value that is passed in: nothing that decides reads the machine's clock by itself."""

from datetime import UTC, datetime
from typing import Protocol

from lakewarden.catalog.bounds import as_moment

__all__ = ["Clock", "SystemClock", "from_millis", "to_millis"]


class Clock(Protocol):
    """Tells the time in UTC."""

    def now(self) -> datetime:
        """The current moment, timezone-aware, UTC."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def from_millis(millis: int) -> datetime:
    """Epoch milliseconds, as table logs write them, to a UTC datetime;
    one beyond all sense becomes the nearest bound."""
    return as_moment(millis / 1000)


def to_millis(moment: datetime) -> int:
    """A timezone-aware datetime to epoch milliseconds."""
    return round(moment.timestamp() * 1000)
