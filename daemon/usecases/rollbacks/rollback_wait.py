"""Waiting for a rollback: what it is doing and since when, on standard error;
an end to the waiting, not to the rollback."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnavailableError, UnfinishedError
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.state.port import Queue
from lakewarden.catalog.units import about_seconds
from lakewarden.jobs.rollback.execute.interference import held_by, in_the_way
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.journal.progress import standing_of

__all__ = ["Wait", "goes_on"]

_LOOK: Final = 1.0
"""Seconds between two looks into the journal."""
_REMIND: Final = 30.0
"""Seconds after which the same is said again: silence would look like a hang."""


def goes_on(rollback_id: str) -> str:
    """What to do about a rollback that nobody waits for any more."""
    return (
        f"It is in the journal and loses nothing: `lakewarden rollback show {rollback_id}` tells how far it "
        f"is, `lakewarden rollback resume {rollback_id}` goes on with it, "
        f"`lakewarden rollback undo {rollback_id}` takes it back."
    )


@dataclass(kw_only=True, slots=True)
class Wait:
    """`look` is called often. It tells what is new, and raises `UnfinishedError` after a time."""

    rollback_id: str
    journal: Journal
    clock: Clock
    tell: Callable[[str], None]
    timeout: timedelta | None = None
    """None: never."""
    queue: Queue | None = None
    """Knows what the rollback itself may wait for; None: nobody says."""
    monotonic: Callable[[], float] = time.monotonic
    _begun: float = field(init=False)
    _next: float = 0.0
    _told_at: float = 0.0
    _told: str = ""

    def __post_init__(self) -> None:
        self._begun = self.monotonic()

    def look(self) -> None:
        """Say how far it is, if that is new or long ago."""
        self.require_time()
        now = self.monotonic()
        if now < self._next:
            return
        self._next = now + _LOOK
        try:
            rollback = self.journal.get(self.rollback_id)
        except UnavailableError:
            return  # who works on it says so if it matters
        standing = standing_of(rollback, waits_for=self._other(rollback))
        if not rollback.is_unsettled or (standing.text == self._told and now - self._told_at < _REMIND):
            return
        self._told, self._told_at = standing.text, now
        age = max(0.0, (self.clock.now() - standing.since).total_seconds())
        self.tell(
            f"Rollback {self.rollback_id}: {standing.text}, since {standing.since:%H:%M:%S} UTC "
            f"({about_seconds(age)})"
        )

    def require_time(self) -> None:
        """Raise `UnfinishedError` once the time is over."""
        if self.timeout is not None and self.monotonic() - self._begun >= self.timeout.total_seconds():
            raise UnfinishedError(
                f"Rollback {self.rollback_id} is not finished "
                f"after {about_seconds(self.timeout.total_seconds())}: {self._told or 'it has not begun'}.",
                hint=goes_on(self.rollback_id),
            )

    def at_most(self, patience: timedelta) -> timedelta:
        """A time to wait for something, cut to what is left of the whole."""
        if self.timeout is None:
            return patience
        left = self.timeout - timedelta(seconds=self.monotonic() - self._begun)
        return max(timedelta(0), min(patience, left))

    def _other(self, rollback: Rollback) -> str | None:
        """The run on one of its tables that it has to see the end of first."""
        if self.queue is None:
            return None
        tables = {row.table_id for row in rollback.steps}
        others = in_the_way(self.queue, tables, lambda one: one.action is Action.ROLLBACK)
        return f"waits for {held_by(others[0])}" if others else None
