"""Ending the runs that are in a rollback's way, and waiting for their end:
for which, since when and until when is said."""

import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.state.port import Queue, Run, RunRequest
from lakewarden.catalog.units import count_of

__all__ = ["Clearing", "end_run", "held_by", "in_the_way"]

_POLL: Final = 0.2
_REMIND: Final = 30.0
"""Seconds after which the same is said again."""


def end_run(queue: Queue, run: Run) -> None:
    """Ask a run to end. One whose worker is gone is ended here and now: nobody else may be there to do it."""
    queue.cancel(run.request.run_id)
    queue.requeue(
        run.request.run_id, attempt=run.request.attempt + 1
    )  # cancelled instead, if its lease is over


def in_the_way(queue: Queue, tables: Container[str], ours: Callable[[RunRequest], bool]) -> Sequence[Run]:
    """The unfinished runs on these tables that are not `ours`."""
    return [run for run in queue.unfinished() if run.request.table_id in tables and not ours(run.request)]


def held_by(run: Run, more: str = "") -> str:
    """`the compact of db.t to end (worker-1 has had it since 03:11:02 UTC)`."""
    who = ""
    if run.worker is not None:
        since = "has it" if run.started_at is None else f"has had it since {run.started_at:%H:%M:%S} UTC"
        who = f" ({run.worker} {since})"
    return f"the {run.request.action} of {run.request.name}{more} to end{who}"


def _pause() -> None:
    time.sleep(_POLL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Clearing:
    """Clears tables of other runs."""

    queue: Queue
    clock: Clock
    patience: timedelta
    """The longest wait."""
    tell: Callable[[str], None]
    """Called now and then with the reason for waiting."""
    monotonic: Callable[[], float] = time.monotonic
    pause: Callable[[], None] = _pause

    def clear(
        self, tables: Container[str], *, ours: Callable[[RunRequest], bool], look: Callable[[], None]
    ) -> Run | None:
        """Ask every run on `tables` to end that is not `ours`, and wait until all have;
        one that has not by then, else None.
        `look` is called all the while; what it raises ends the waiting."""
        begun, since = self.monotonic(), self.clock.now()
        told, told_at = "", 0.0
        asked = frozenset[str]()
        while others := in_the_way(self.queue, tables, ours):
            for run in others:
                end_run(self.queue, run)
            now = self.monotonic()
            if now - begun >= self.patience.total_seconds():
                return others[0]
            ids = [run.request.run_id for run in others]
            if asked.issuperset(ids) and (ids[0] != told or now - told_at >= _REMIND):
                told, told_at = ids[0], now
                self.tell(_sentence(others, since, since + self.patience))
            asked |= frozenset(ids)
            look()
            self.pause()
        return None


def _sentence(others: Sequence[Run], since: datetime, until: datetime) -> str:
    more = "" if len(others) == 1 else f" and {count_of(len(others) - 1, 'more run')}"
    return (
        f"Waiting for {held_by(others[0], more)}: asked to at {since:%H:%M:%S} UTC, waited for "
        f"until {until:%H:%M:%S} UTC."
    )
