"""What allows a run to delete, to rewind or to commit, asked anew right before it does: a decision is old when it acts.

`refusal` decides purely on what the system tables say at this moment (`Standing`); `RunGuard` is what an
executor asks, at its start and again before each bounded batch.
docs/operations.md has the table of who asks what, and when.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import RevokedError
from lakewarden.catalog.formats.files_elsewhere import Look
from lakewarden.catalog.model.rows import Mode, TableRow
from lakewarden.catalog.policy.original_properties import is_leaving
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.units import format_seconds
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.registry import spec_of
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.actions.spec import Spec

__all__ = ["RunGuard", "Standing", "Standings", "refusal"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What the system tables say of a table now: its row under its scopes, with what derived tables make it
    keep (None: it has no row), and the rollback that holds it, if one does."""

    governed: Governed | None
    rollback_id: str | None = None


class Standings(Protocol):
    """Where a table's standing is read."""

    def of(self, table_id: str) -> Standing:
        """Read anew each time. Raises `UnavailableError` when the system tables do not answer."""

    def readers_of(self, location: str) -> tuple[TableRow, ...]:
        """The managed tables that are known to name files in this folder although they lie elsewhere (shallow
        clones), or of which nobody has looked yet whether they do."""

    def moved(self, look: Look) -> tuple[TableRow, ...]:
        """The tables that have moved since the last sweep saw them, as `look` finds them now. The answer may be a
        minute old: each costs a small read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunGuard:
    """`Guard` for one run. `claim` asks the queue itself whether the run is still this worker's, and raises if not;
    `standings` is None for a worker that was not told of system tables. `ordered`: a person asked for the run, so the
    table's mode and switches do not matter."""

    action: AnyAction
    standings: Standings | None
    claim: Callable[[], None]
    clock: Clock
    ordered: bool = True

    def confirm(self) -> None:
        self.claim()

    def ask(self, table_id: str, name: str, location: str) -> None:
        self.claim()
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
    standing: Standing, action: AnyAction, *, location: str, now: datetime, ordered: bool = True
) -> str | None:
    """Why the action may not touch the table now, said of the table; None if it may.
    The most final reason comes first."""
    if standing.governed is None:
        return "is not managed any more"
    governed, spec = standing.governed, spec_of(action)
    if governed.row.location != location:
        return f"has moved to {governed.row.location}"
    return (
        spec.allowed_in(governed.row, action, now)
        or _locks(standing, governed, action, spec)
        or _retention(governed, action, spec)
        or (None if ordered else _wishes(governed, action, spec))
    )


def _locks(standing: Standing, governed: Governed, action: AnyAction, spec: Spec[Any]) -> str | None:
    if governed.paused is not None:
        return f"is paused ({governed.paused})"
    if governed.hold is not None and spec.forbidden_by_hold(action):
        return f"is under legal hold ({governed.hold})"
    own = action.rollback_id if isinstance(action, RollBack) else None
    if standing.rollback_id is None or standing.rollback_id == own:
        return None
    return f"is held by rollback {standing.rollback_id}"


def _retention(governed: Governed, action: AnyAction, spec: Spec[Any]) -> str | None:
    if spec.retention is None:
        return None
    decided, now = spec.retention(action, governed.policy)
    return f"has to keep more by now: {format_seconds(now)}" if now > decided else None


def _wishes(governed: Governed, action: AnyAction, spec: Spec[Any]) -> str | None:
    """What its owner has switched off since the planner decided."""
    if spec.asked_for or is_leaving(governed.row):
        return None
    if governed.policy.mode is Mode.OBSERVE:
        return "is observed only by now"
    if spec.is_switched_off(governed.policy):
        return f"is not to be touched by now: its policy switched the {action.kind} off"
    return None
