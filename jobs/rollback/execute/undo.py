"""Taking a rollback back, from the leaves to the roots: the old heads become head again, by the same rules.

A table whose head is no longer ours, or whose log cannot be read, stays as it is and is reported; the others are taken
back.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lakewarden.catalog.errors import ConflictError, LakewardenError, UnavailableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.outer_tables import Outer
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackRow, RollbackState, RollbackStep
from lakewarden.catalog.registry.rollback_quarantine import is_aside, take_in
from lakewarden.catalog.units import count_of
from lakewarden.jobs.rollback.execute.found_in_logs import REWINDS
from lakewarden.jobs.rollback.execute.permit import Permit
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor, mark_of, told_of
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.journal.step_rows import FOLLOWING, companions_of, step_of

__all__ = ["take_back"]


def take_back(
    journal: Journal, executor: StepExecutor, rollback: Rollback, *, still_ours: Callable[[], None]
) -> Rollback:
    """Take back every step that was done, whatever the journal thinks became of it; one of a rollback that never was
    is planned again. Ends compensated, or in conflict over the tables that stay as they are. Raises
    `UnavailableError` for a table that does not answer: of a group, whose tables do not depend on one another, the
    others are taken back first."""
    never_begun = {row.step for row in rollback.steps if row.state is RollbackState.PLANNED}
    rows = _to_take_back(journal, executor, rollback)
    for wave in sorted({row.wave for row in rows}, reverse=True):
        begun = [replace(row, state=RollbackState.UNDOING, message=None) for row in rows if row.wave == wave]
        rollback = rollback.with_rows(begun)
        rollback = _save(journal, rollback, f"undoing wave {wave} of rollback {rollback.rollback_id}")
        reach("rollback.undoing")
        changed, of_table = list[RollbackRow](), _by_table(rollback)
        for row in begun:
            if row.kind in FOLLOWING:
                continue
            still_ours()
            following, same = companions_of(row, begun), of_table[row.table_id]
            ended = _ended_by_another(executor, same, row)
            if ended is not None:
                changed += [ended, *(replace(one, state=ended.state) for one in following)]
                continue
            try:
                changed += _undone(
                    journal,
                    executor,
                    row,
                    following,
                    _marks(same),
                    still_ours,
                    begun=row.step not in never_begun,
                )
            except UnavailableError as error:
                if not rollback.is_group:
                    raise
                changed.append(replace(row, message=told_of(row, error)))
        rollback = rollback.with_rows(changed)
        reach("rollback.unacted")
    return _finish(journal, rollback)


def _to_take_back(journal: Journal, executor: StepExecutor, rollback: Rollback) -> list[RollbackRow]:
    """Everything but what was taken back already, what was given up and never done, and what no attempt has begun with:
    that stays planned, and gets no commit whoever looks at it later."""
    leading = [
        row for row in rollback.steps if row.kind not in FOLLOWING and _is_left_over(journal, executor, row)
    ]
    tables = {(row.table_id, row.wave) for row in leading}
    following = [
        row
        for row in rollback.steps
        if row.kind in FOLLOWING
        and row.state is not RollbackState.COMPENSATED
        and (row.table_id, row.wave) in tables
    ]
    return [*leading, *following]


def _is_left_over(journal: Journal, executor: StepExecutor, row: RollbackRow) -> bool:
    """What a log that cannot be read keeps to itself is looked at once more, with the others of its wave."""
    if row.state not in (RollbackState.COMPENSATED, RollbackState.PLANNED):
        return True
    try:
        if row.kind in REWINDS:
            return executor.is_left_over(row, step_of(row))
        if row.state is RollbackState.COMPENSATED:
            return False
        if row.kind is RollbackStep.CHANGE:
            return executor.done(row, step_of(row)) is not None
        return is_aside(journal.store, row.table_id, rollback_id=row.rollback_id)
    except LakewardenError as error:
        if error.retry and row.kind is not RollbackStep.CHANGE:  # a group's other tables are taken back first
            raise
        return True


def _by_table(rollback: Rollback) -> Mapping[str, Sequence[RollbackRow]]:
    """The steps on each table, in order: there may be several restores of one."""
    found = defaultdict[str, list[RollbackRow]](list)
    for row in rollback.steps:
        found[row.table_id].append(row)
    return found


def _marks(rows: Sequence[RollbackRow]) -> frozenset[str]:
    """The marks of all commits that a rollback and its undo make on a table, by its steps there."""
    return frozenset(mark_of(row, undo=undo) for row in rows for undo in (False, True))


def _ended_by_another(
    executor: StepExecutor, same: Sequence[RollbackRow], row: RollbackRow
) -> RollbackRow | None:
    """What becomes of a restore by the undo of another one of the same table: a later one that is not taken back keeps
    it from being, and an earlier one that was took it along. None where there is none such."""
    for one in (one for one in same if one.kind in REWINDS):
        if one.step > row.step and one.state is RollbackState.CONFLICT:
            return replace(row, state=RollbackState.CONFLICT, message=one.message)
        is_back = one.step < row.step and one.state is RollbackState.COMPENSATED
        if is_back and _is_undone_after(executor, one, row):
            return replace(row, state=RollbackState.COMPENSATED)
    return None


def _is_undone_after(executor: StepExecutor, one: RollbackRow, row: RollbackRow) -> bool:
    """False as well where the log cannot be read: then the step itself says so."""
    try:
        return executor.is_undone_after(one, step_of(row))
    except LakewardenError as error:
        if error.retry:
            raise
        return False


def _undone(
    journal: Journal,
    executor: StepExecutor,
    row: RollbackRow,
    following: tuple[RollbackRow, ...],
    ours: frozenset[str],
    still_ours: Callable[[], None],
    *,
    begun: bool,
) -> list[RollbackRow]:
    every = (row, *following)
    try:
        if row.kind in (RollbackStep.DROP, RollbackStep.QUARANTINE):
            version, was_done = None, begun
            _taken_in(journal, executor, row, begun=begun)
        else:
            version = executor.take_back(row, ours, step_of(row), begun=begun)
            was_done = version is not None or row.kind is RollbackStep.CHANGE
    except LakewardenError as error:
        if error.retry and not isinstance(error, ConflictError):
            raise
        Permit(journal, still_ours).require(row)
        return [replace(one, state=RollbackState.CONFLICT, message=told_of(one, error)) for one in every]
    state = RollbackState.COMPENSATED if was_done else RollbackState.PLANNED
    taken = replace(row, state=state, new_version=version or row.new_version)
    return [taken, *(replace(one, state=state) for one in following)]


def _taken_in(journal: Journal, executor: StepExecutor, row: RollbackRow, *, begun: bool) -> None:
    take_in(
        journal.store,
        journal.clock,
        row.table_id,
        rollback_id=row.rollback_id,
        actor=row.actor or row.rollback_id,
        above=Outer(executor.storage),
        begun=begun,
    )
    reach("rollback.taken_in")


def _finish(journal: Journal, rollback: Rollback) -> Rollback:
    open_steps = (row for row in rollback.steps if row.state is RollbackState.UNDOING)
    waiting = [row.message for row in open_steps if row.message is not None]
    if waiting:
        _save(journal, rollback, f"rollback {rollback.rollback_id} waits for a table that does not answer")
        raise UnavailableError(waiting[0])
    stuck = [
        row for row in rollback.steps if row.kind not in FOLLOWING and row.state is RollbackState.CONFLICT
    ]
    if stuck:
        tables = len({row.table_id for row in stuck})
        others = "" if tables == 1 else f" (and {count_of(tables - 1, 'other table')})"
        ended = rollback.with_head(RollbackState.CONFLICT, message=f"{stuck[0].message}{others}")
    else:
        ended = rollback.with_head(RollbackState.COMPENSATED)
    ended = _save(journal, ended, f"rollback {rollback.rollback_id} was taken back")
    reach("rollback.undone")
    return ended


def _save(journal: Journal, rollback: Rollback, because: str) -> Rollback:
    return journal.save(rollback, expects=RollbackState.UNDOING, because=because)
