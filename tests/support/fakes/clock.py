"""A clock that tests move."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

__all__ = ["ManualClock"]


@dataclass(slots=True)
class ManualClock:
    """A clock that moves only when told: the fake of `Clock`."""

    moment: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def now(self) -> datetime:
        return self.moment

    def advance(self, by: timedelta) -> None:
        """Move forward by `by` (which may be negative: clocks do step back)."""
        self.moment += by
