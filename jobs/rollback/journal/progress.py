"""How far a rollback is, from its journal: for whoever waits for it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackRow, RollbackState, RollbackStep
from lakewarden.catalog.units import count_of

__all__ = ["CurrentActivity", "standing_of"]

_MOST_TABLES: Final = 3
_WORDS: Final = {
    RollbackStep.CHANGE: "changing",
    RollbackStep.RESTORE: "restoring",
    RollbackStep.PROPERTIES: "setting the properties of",
    RollbackStep.REMOVE_FILES: "removing files of",
    RollbackStep.REAPPLY: "adding appends again to",
    RollbackStep.DROP: "dropping from management",
    RollbackStep.QUARANTINE: "quarantining",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CurrentActivity:
    """What is being done, as a clause, and since when (UTC)."""

    text: str
    since: datetime


def standing_of(rollback: Rollback, *, waits_for: str | None = None) -> CurrentActivity:
    """Which of how many steps, on which tables. Steps of one wave are begun together. `waits_for`: a clause
    on what has to end before the next one can begin."""
    back = rollback.head.undo
    begun, ended = (
        (RollbackState.UNDOING, RollbackState.COMPENSATED)
        if back
        else (RollbackState.INTENT, RollbackState.DONE)
    )
    steps = [row for row in rollback.steps if back or row.state is not RollbackState.COMPENSATED]
    done = sum(row.state is ended for row in steps)
    now = [row for row in steps if row.state is begun]
    told = f"{done:,} of {count_of(len(steps), 'step')} {'taken back' if back else 'done'}"
    if not now:
        waiting = (
            "everything is in place"
            if steps and done == len(steps)
            else waits_for or "a worker starts, or verifies the tables"
        )
        return CurrentActivity(text=f"{told}; {waiting}", since=rollback.head.recorded_at)
    waves = sorted({row.wave for row in steps}, reverse=back)
    wave = f"wave {waves.index(now[0].wave) + 1} of {len(waves)}"
    return CurrentActivity(
        text=f"{told}; {wave}: {_doing(now, back=back)}", since=min(row.recorded_at for row in now)
    )


def _doing(rows: Sequence[RollbackRow], *, back: bool) -> str:
    told = [_step(row, back=back) for row in rows[:_MOST_TABLES]]
    more = len(rows) - _MOST_TABLES
    return ", ".join(told) + (f" and {count_of(more, 'more step')}" if more > 0 else "")


def _step(row: RollbackRow, *, back: bool) -> str:
    name = row.name or row.table_id
    if back:
        return f"taking {name} back to version {row.from_version}"
    to = f" to version {row.to_version}" if row.kind is RollbackStep.RESTORE else ""
    return f"{_WORDS.get(row.kind, row.kind)} {name}{to}"
