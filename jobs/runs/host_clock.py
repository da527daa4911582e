"""A host whose clock runs ahead takes young files for old ones: before anything is deleted by its age, the host's clock
is compared with the control database's."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.units import about_seconds

__all__ = ["MOST_APART", "HostClock"]

MOST_APART: Final = timedelta(minutes=5)
"""What hosts' clocks are apart at most where they are kept at all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostClock:
    """This host's clock beside the control database's."""

    own: Clock
    database: Callable[[], datetime]
    """Asks the database for the time."""
    host: str
    """What the host is called."""

    def require_agreeing(self) -> None:
        """Raise `PreconditionError` where they are further apart than clocks may be, whichever is right."""
        apart = self._apart()
        if abs(apart) > MOST_APART:
            way = "ahead of" if apart > timedelta(0) else "behind"
            raise PreconditionError(
                f"The clock of {self.host} is {about_seconds(abs(apart).total_seconds())} {way} the control "
                "database's, so nobody can tell what is old; nothing is deleted by its age.",
                hint=f"Set both by NTP: they may be {about_seconds(MOST_APART.total_seconds())} apart.",
            )

    def earlier(self) -> Clock:
        """Tells the time by whichever of the two is behind now: what is young by one of them is young."""
        return _Behind(own=self.own, by=max(self._apart(), timedelta(0)))

    def _apart(self) -> timedelta:
        """By how much this host's is ahead. While the answer was on its way, both went on: that counts as agreement."""
        before = self.own.now()
        told = self.database()
        after = self.own.now()
        if before <= told <= after:
            return timedelta(0)
        return before - told if told < before else after - told


@dataclass(frozen=True, kw_only=True, slots=True)
class _Behind:
    own: Clock
    by: timedelta

    def now(self) -> datetime:
        return self.own.now() - self.by
