"""What a plain RESTORE of a table sets off in the tables derived from it: their dependencies decide. Pure.

The restored table is back already. Tables whose dependency says `cascade` follow by themselves, where nobody
has to agree to anything; for all others there is a plan that waits.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from lakewarden.catalog.model.rows import OnRollback
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step, TablePlan
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest

__all__ = ["Reaction", "concerned", "reaction", "request_after", "whole_request"]


class Reaction(StrEnum):
    """What is done about a RESTORE. `keep`: the plan for everything that is concerned is kept, somebody applies it."""

    NOTHING = "nothing"
    APPLY = "apply"
    KEEP = "keep"


def request_after(table_id: str, versions: tuple[int, ...]) -> RollbackRequest:
    """To undo what was derived from versions that a RESTORE took back, as far as it may happen by itself."""
    return RollbackRequest(seeds=(BadVersions(table_id=table_id, versions=versions),))


def whole_request(request: RollbackRequest) -> RollbackRequest:
    """The same for every table, as an owner may ask for it."""
    return replace(request, cascade=True)


def concerned(plan: RollbackPlan) -> Iterator[TablePlan]:
    """The derived tables that hold, or may hold, something of what was taken back."""
    return (
        table
        for table in plan.tables
        if table.trigger is not None and (table.step is not Step.NONE or table.blocked_by)
    )


def reaction(plan: RollbackPlan, *, able: bool, tried: bool) -> Reaction:
    """What to do, by the plan that nobody asked a cascade for.

    `able`: every table in it can be worked on now. `tried`: the same was done by itself before; whatever became of it,
    somebody may have undone it on purpose.
    """
    if not any(concerned(plan)):
        return Reaction.NOTHING
    acting = [table for table in plan.tables if table.acts]
    follows = bool(acting) and all(table.trigger is OnRollback.CASCADE for table in acting)
    return Reaction.APPLY if follows and plan.applicable and able and not tried else Reaction.KEEP
