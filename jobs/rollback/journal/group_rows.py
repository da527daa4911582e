"""A statement over several tables as rows of the journal: written down before its first commit. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackState
from lakewarden.jobs.rollback.journal.step_rows import head_row, next_rows
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.journal.stored_plan import StoredPlan, encode_plan
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.plan.request import RollbackRequest

__all__ = ["given_up", "group_of", "whole"]


def group_of(
    group_id: str, changes: Sequence[TableStep], *, statement: str, actor: str, at: datetime
) -> Rollback:
    """The group as it begins. `changes` are of kind CHANGE, each made on its `from_version`, in this order."""
    nothing = RollbackPlan(request=RollbackRequest(seeds=()), tables=(), hash=group_id)
    head = head_row(
        rollback_id=group_id,
        plan_hash=group_id,
        first=changes[0],
        payload=encode_plan(StoredPlan(plan=nothing, statement=statement)),
        actor=actor,
        at=at,
    )
    planned = Rollback(head=head)
    ordered = [replace(change, wave=number) for number, change in enumerate(changes)]
    begun = (replace(row, state=RollbackState.INTENT) for row in next_rows(planned, ordered))
    return planned.with_rows(begun).with_head(RollbackState.INTENT)


def whole(group: Rollback, at: datetime) -> Rollback:
    """The group when all of its changes are made: it is over, and no longer taken back as a whole."""
    made = (replace(row, state=RollbackState.DONE, message=None) for row in group.steps)
    return group.with_rows(made).with_head(RollbackState.DONE, message=None, undo_until=at)


def given_up(group: Rollback, *, never_made: Collection[str]) -> Rollback:
    """The group on its way back. Of the tables `never_made` (by id) is known that nothing changes them any more."""
    rows = (replace(row, state=RollbackState.PLANNED) for row in group.steps if row.table_id in never_made)
    return group.with_rows(rows).with_head(RollbackState.UNDOING, undo=True)
