"""What was done to tables, whatever the journal thinks: the marks in their logs decide.

A worker may be killed between a commit and the journal. Before a step is given up, planned anew or taken back, it is
looked for in the log: what was made counts as done.
"""

from collections.abc import Sequence
from dataclasses import replace

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackRow, RollbackState, RollbackStep
from lakewarden.jobs.rollback.execute.table_steps import mark_found, mark_of
from lakewarden.jobs.rollback.journal.step_rows import companions_of, step_of

__all__ = ["COMMITS", "REWINDS", "finished", "finished_group", "taken_back"]

REWINDS = (RollbackStep.RESTORE, RollbackStep.REMOVE_FILES)
"""Steps whose undo is a restore."""
COMMITS = (*REWINDS, RollbackStep.REAPPLY, RollbackStep.CHANGE)
"""Steps that make a commit of their own on the table."""
_OPEN = (RollbackState.PLANNED, RollbackState.INTENT, RollbackState.CONFLICT)


def finished(rollback: Rollback, readers: Sequence[TableReader]) -> Rollback:
    """The rollback with every step done that its table's log shows, and that the journal does not know of. A step stays
    what the journal calls it where the log cannot be read. Raises a retryable error for a table that does not
    answer."""
    found = (_found_if_readable(row, readers) for row in rollback.of_kind(*COMMITS) if row.state in _OPEN)
    return rollback.with_rows(row for row in found if row is not None)


def taken_back(rollback: Rollback, readers: Sequence[TableReader]) -> Rollback:
    """The rollback with every step compensated whose undo its table's log shows: it stopped over what came after."""
    undone = [
        row
        for row in rollback.of_kind(*COMMITS)
        if row.state is RollbackState.CONFLICT and _is_undone(row, readers)
    ]
    every = [one for row in undone for one in (row, *companions_of(row, rollback.steps))]
    return rollback.with_rows(replace(one, state=RollbackState.COMPENSATED, message=None) for one in every)


def _is_undone(row: RollbackRow, readers: Sequence[TableReader]) -> bool:
    """False as well where the log cannot be read: then the table stays what the journal calls it."""
    try:
        return mark_found(readers, step_of(row), mark_of(row, undo=True)) is not None
    except LakewardenError:
        return False


def finished_group(group: Rollback, readers: Sequence[TableReader]) -> tuple[Rollback, str | None]:
    """A group with every change done that its table's log shows; and why a person has to say whether it is whole: the
    only changes that are open are of tables whose logs cannot be read. Raises a retryable error if that hangs on a
    table that does not answer."""
    found: list[RollbackRow] = []
    unclear: list[tuple[str, LakewardenError]] = []
    missing = False
    for row in group.steps:
        if row.state is RollbackState.DONE:
            continue
        try:
            done = _found(row, readers)
        except LakewardenError as error:
            unclear.append((row.name or row.table_id, error))
            continue
        missing = missing or done is None
        found += [] if done is None else [done]
    known = group.with_rows(found)
    if missing or not unclear:
        return known, None
    for _, problem in unclear:
        if problem.retry:
            raise problem
    name, first = unclear[0]
    because = f"{name}'s log cannot be read. {first}"
    return known, f"Whether all of its tables are changed cannot be told: {because}"


def _found_if_readable(row: RollbackRow, readers: Sequence[TableReader]) -> RollbackRow | None:
    try:
        return _found(row, readers)
    except LakewardenError as error:
        if error.retry:
            raise
        return None


def _found(row: RollbackRow, readers: Sequence[TableReader]) -> RollbackRow | None:
    version = mark_found(readers, step_of(row), mark_of(row))
    if version is None:
        return None
    return replace(row, state=RollbackState.DONE, new_version=version, message=None)
