"""Time as a value that is passed in: nothing that decides reads the machine's clock by itself."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from lakewarden.catalog.bounds import as_moment

__all__ = ["Clock", "ManualClock", "SystemClock", "from_millis", "to_millis"]


class Clock(Protocol):
    """Tells the time in UTC."""

    def now(self) -> datetime:
        """The current moment, timezone-aware, UTC."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(slots=True)
class ManualClock:
    """A clock that moves only when told: the fake of this port."""

    moment: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def now(self) -> datetime:
        return self.moment

    def advance(self, by: timedelta) -> None:
        """Move forward by `by` (which may be negative: clocks do step back)."""
        self.moment += by


def from_millis(millis: int) -> datetime:
    """Epoch milliseconds, as table logs write them, to a UTC datetime;
    one beyond all sense becomes the nearest bound."""
    return as_moment(millis / 1000)


def to_millis(moment: datetime) -> int:
    """A timezone-aware datetime to epoch milliseconds."""
    return round(moment.timestamp() * 1000)
