"""What the journal `lakewarden.rollbacks` says about tables: which are locked, what must be kept for them. Pure.

Locked: our own maintenance stays away while a rollback of the table is under way or stopped. Kept: the versions that a
rollback still has to read, or could be undone to, until its undo window ends. Tainted: the versions it took back.

A statement over several tables is journaled in the same way, as a group: its steps are the changes that it makes
itself, and what is left of it when it is cut off is taken back like a rollback's steps.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final

from lakewarden.catalog.model.rows import RollbackRow, RollbackState, RollbackStep

__all__ = [
    "GROUP_PATIENCE",
    "UNDO",
    "Rollback",
    "RollbackLock",
    "Undone",
    "is_mark",
    "marked_by",
    "needed_versions",
    "next_run_id",
    "rollback_locks",
    "rollbacks_of",
    "tainted_versions",
]

MARK = "rollback-"
"""How the run id of every commit begins that a rollback of ours makes."""
UNDO = "-undo"
"""How it ends if the commit takes back what the rollback did."""
_REWINDS = (RollbackStep.RESTORE, RollbackStep.REMOVE_FILES)
"""Steps that are undone by restoring the version before them."""
_SETS_ASIDE = (RollbackStep.DROP, RollbackStep.QUARANTINE)

GROUP_PATIENCE: Final = timedelta(minutes=2)
"""A session that says nothing of its group for so long is taken for gone."""

UNSETTLED = (RollbackState.INTENT, RollbackState.UNDOING, RollbackState.CONFLICT)
"""States in which a rollback has neither come to its end nor left everything as it was."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollback:
    """One rollback: its head row (step 0) and its steps in order."""

    head: RollbackRow
    steps: tuple[RollbackRow, ...] = ()

    @property
    def rollback_id(self) -> str:
        return self.head.rollback_id

    @property
    def is_unsettled(self) -> bool:
        """Whether the rollback was begun and neither finished nor taken back."""
        return self.head.state in UNSETTLED

    @property
    def is_group(self) -> bool:
        """Whether this is the journal of a statement over several tables, not of a rollback."""
        return any(step.kind is RollbackStep.CHANGE for step in self.steps)

    @property
    def is_whole(self) -> bool:
        """Whether every change of a group was made."""
        return all(step.state is RollbackState.DONE for step in self.steps)

    def of_kind(self, *kinds: RollbackStep) -> tuple[RollbackRow, ...]:
        """The steps of some kinds, in order."""
        return tuple(step for step in self.steps if step.kind in kinds)

    @property
    def tables(self) -> int:
        """How many tables its steps change."""
        return len({step.table_id for step in self.steps})

    def with_head(self, state: RollbackState, **changes: Any) -> "Rollback":
        """The same rollback in another state; `changes` are further fields of its head row."""
        return replace(self, head=replace(self.head, state=state, **changes))

    def with_rows(self, rows: Iterable[RollbackRow]) -> "Rollback":
        """The same rollback with these steps added or replaced."""
        steps = {row.step: row for row in (*self.steps, *rows)}
        return replace(self, steps=tuple(steps[number] for number in sorted(steps)))

    def can_be_undone(self, now: datetime) -> bool:
        """Whether the rollback's undo window is open or has not begun."""
        return self.is_unsettled or (
            self.head.state is RollbackState.DONE
            and (self.head.undo_until is None or now < self.head.undo_until)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackLock:
    """Why our maintenance stays away from a table."""

    rollback_id: str
    leads: bool
    """The table stands for the whole rollback, its run goes by it."""
    waits: bool
    """A person has to decide, nothing goes on by itself."""
    undo: bool
    session_until: datetime | None = None
    """A statement over several tables is at it, and its session is believed to live until then."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Undone:
    """A range of versions of a table that were taken back."""

    table_id: str
    name: str
    first: int
    last: int
    by: str
    """A rollback, or something else: in words."""
    format_id: str | None = None
    """The table's UUID there, None where it is not known: versions with another UUID are not meant."""
    left: bool = False
    """The versions were left as they are, though they hold reverted data."""

    @property
    def how(self) -> str:
        """What became of them, as the end of a sentence."""
        return f"{self.by} left as it was, with bad rows" if self.left else f"{self.by} took back"


def is_mark(run_id: str | None) -> bool:
    """Whether a commit with this run id was made by a rollback of ours."""
    return run_id is not None and run_id.startswith(MARK)


def next_run_id(rollback_id: str, is_over: Callable[[str], bool]) -> str:
    """The id of the run that goes on with a rollback: the first of its numbered ids that is not `is_over`. Whoever asks
    comes to the same id, so that a command and the daemon queue one run, not two."""
    return next(one for one in (f"{rollback_id}-{number}" for number in count(1)) if not is_over(one))


def marked_by(run_id: str | None) -> str | None:
    """The id of the rollback that made a commit with this run id, None for anybody else's."""
    if run_id is None or not is_mark(run_id):
        return None
    return run_id.removeprefix(MARK).removesuffix(UNDO).rpartition("-")[0]


def rollbacks_of(rows: Iterable[RollbackRow]) -> tuple[Rollback, ...]:
    """Rows put together, in the order of their ids. Steps whose head row is missing are left out."""
    heads: dict[str, RollbackRow] = {}
    steps: dict[str, list[RollbackRow]] = {}
    for row in rows:
        if row.kind is RollbackStep.PLAN:
            heads[row.rollback_id] = row
        else:
            steps.setdefault(row.rollback_id, []).append(row)
    return tuple(
        Rollback(head=head, steps=tuple(sorted(steps.get(key, ()), key=lambda step: step.step)))
        for key, head in sorted(heads.items())
    )


def rollback_locks(rollbacks: Iterable[Rollback]) -> Mapping[str, RollbackLock]:
    """`table_id` -> why it is locked, for every table of a rollback that is neither finished nor taken back. Of several
    on one table, one that works goes before those that wait for a person: they may wait for just that."""
    locked: dict[str, RollbackLock] = {}
    for one in sorted(rollbacks, key=lambda each: each.head.state is not RollbackState.CONFLICT):
        if one.is_unsettled:
            waits = one.head.state is RollbackState.CONFLICT
            running = one.is_group and one.head.state is RollbackState.INTENT
            for row in (*one.steps, one.head):
                leads = row.table_id == one.head.table_id
                locked[row.table_id] = RollbackLock(
                    rollback_id=one.rollback_id,
                    leads=leads,
                    waits=waits,
                    undo=one.head.undo,
                    session_until=one.head.recorded_at + GROUP_PATIENCE if running else None,
                )
    return locked


def needed_versions(rollbacks: Iterable[Rollback], now: datetime) -> Mapping[str, int]:
    """`table_id` -> the oldest version that a rollback under way still reads or that an undo would go back to."""
    needed: dict[str, int] = {}
    for one in rollbacks:
        if not one.can_be_undone(now):
            continue
        for row in one.of_kind(*_REWINDS, RollbackStep.CHANGE):
            oldest = min(row.from_version, row.to_version) if one.is_unsettled else row.from_version
            needed[row.table_id] = min(oldest, needed.get(row.table_id, oldest))
    return needed


def tainted_versions(rollbacks: Iterable[Rollback]) -> Mapping[str, tuple[Undone, ...]]:
    """`table_id`, and location -> what rollbacks took back and no undo brought back: a commit that cites one of these
    versions, whenever it appears, was derived from what was undone."""
    ranges: dict[str, list[Undone]] = {}
    for one in rollbacks:
        for undone, row in _undone_by(one):
            for key in filter(None, (row.table_id, row.location)):
                ranges.setdefault(key, []).append(undone)
    return {
        key: tuple(sorted(found, key=lambda one: (one.first, one.last, one.by)))
        for key, found in ranges.items()
    }


def _undone_by(one: Rollback) -> Iterator[tuple[Undone, RollbackRow]]:
    for row in one.of_kind(*_REWINDS, *_SETS_ASIDE):
        if row.state is RollbackState.DONE:
            yield _undone(row, row.to_version + 1, row.from_version, f"rollback {one.rollback_id}"), row
    for row in one.of_kind(RollbackStep.CHANGE):  # with whatever came between
        if row.state is RollbackState.COMPENSATED and row.new_version is not None:
            by = f"the end of statement {one.rollback_id}, which was cut off"
            yield _undone(row, row.from_version + 1, row.new_version - 1, by), row


def _undone(row: RollbackRow, first: int, last: int, by: str) -> Undone:
    return Undone(
        table_id=row.table_id,
        name=row.name or row.table_id,
        first=first,
        last=last,
        by=by,
        format_id=row.format_id,
    )
