"""A clock that tests move."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lakewarden.catalog.clock import Clock
from lakewarden.jobs.runs.host_clock import HostClock

__all__ = ["ManualClock", "one_clock"]


def one_clock(clock: Clock) -> HostClock:
    """The control database goes by this very clock."""
    return HostClock(own=clock, database=clock.now, host="here")


@dataclass(slots=True)
class ManualClock:
    """A clock that moves only when told: the fake of `Clock`."""

    moment: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def now(self) -> datetime:
        return self.moment

    def advance(self, by: timedelta) -> None:
        """Move forward by `by` (which may be negative: clocks do step back)."""
        self.moment += by
