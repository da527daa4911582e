"""What allows a run to delete, to rewind or to commit, asked anew right before it does: a decision is old when it acts.

`refusal` decides purely on what the system tables say at this moment (`Standing`); `RunGuard` is what an
executor asks, at its start and again before each bounded batch.
docs/operations.md has the table of who asks what, and when.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import RevokedError
from lakewarden.catalog.formats.files_elsewhere import Look
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.units import format_seconds
from lakewarden.jobs.actions.action_refusals import Acting, refusals
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.registry import spec_of
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.actions.world import Standing

__all__ = ["RunGuard", "Standings", "refusal"]


class Standings(Protocol):
    """Where a table's standing is read."""

    def of(self, table_id: str) -> Standing | None:
        """Read anew each time; None: the table has no row. Raises `UnavailableError` when the system tables do not
        answer."""

    def readers_of(self, location: str) -> tuple[TableRow, ...]:
        """The managed tables elsewhere that name files in this folder (shallow clones), or whose files have not been
        looked at yet."""

    def moved(self, look: Look) -> tuple[TableRow, ...]:
        """The tables that have moved since the last sweep saw them, as `look` finds them now. The answer may be a
        minute old: each costs a small read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunGuard:
    """`Guard` for one run."""

    action: AnyAction
    standings: Standings | None
    """None for a worker that was not told of system tables."""
    claim: Callable[[], None]
    """Asks the queue itself whether the run is still this worker's, and raises if not."""
    clock: Clock
    clocks: Callable[[], None]
    """Raises where this host's clock and the control database's are apart."""
    ordered: bool = True
    """A person asked for the run, so the table's mode and switches do not matter."""

    def confirm(self) -> None:
        self.claim()

    def ask(self, table_id: str, name: str, location: str) -> None:
        self.claim()
        if spec_of(self.action).by_age:
            self.clocks()
        if self.standings is None:
            return
        standing = self.standings.of(table_id)
        because = refusal(
            standing, self.action, location=location, now=self.clock.now(), ordered=self.ordered
        )
        if because is not None:
            raise RevokedError(f"{name} {because}; the {self.action.kind} stopped there.", hint=self._hint())

    def _hint(self) -> str | None:
        """A rollback is not planned anew: it is somebody's."""
        if not isinstance(self.action, RollBack):
            return None
        going_on = f"`lakewarden rollback resume {self.action.rollback_id}`"
        return f"Once that is over, {going_on} goes on with it; nothing does by itself."

    def readers_of(self, location: str) -> tuple[TableRow, ...]:
        return () if self.standings is None else self.standings.readers_of(location)

    def moved(self, look: Look) -> tuple[TableRow, ...]:
        return () if self.standings is None else self.standings.moved(look)


def refusal(
    standing: Standing | None, action: AnyAction, *, location: str, now: datetime, ordered: bool = True
) -> str | None:
    """Why the action may not touch the table now, said of the table; None if it may.
    The most final reason comes first."""
    if standing is None:
        return "is not managed any more"
    governed, spec = standing.governed, spec_of(action)
    if governed.row.location != location:
        return f"has moved to {governed.row.location}"
    if standing.at_another is not None:
        return f"is at the folder of {standing.at_another} by now, to which a link or a mount leads"
    against = next(refusals(standing, spec, Acting(action=action, now=now, ordered=ordered)), None)
    if against is not None:
        return against.said
    if spec.by_age and spec.deletes_now(action) and standing.unread is not None:
        return (
            f"may have to keep more: what {standing.unread} was made from has not been read since lineage was repaired "
            "(the next sweep reads it; if it cannot be read, drop it or bring it back)"
        )
    decided, kept = (0, 0) if spec.retention is None else spec.retention(action, governed.policy)
    return f"has to keep more by now: {format_seconds(kept)}" if kept > decided else None
