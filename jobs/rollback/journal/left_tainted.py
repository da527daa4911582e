"""What rollbacks have left as it was: derived tables that waited for their owner, and their bad versions. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.model.rollbacks import Rollback, Undone
from lakewarden.catalog.model.rows import RollbackState
from lakewarden.jobs.rollback.journal.stored_plan import StoredPlan, decode_plan
from lakewarden.jobs.rollback.plan.model import RollbackPlan, TablePlan
from lakewarden.jobs.rollback.plan.request import (
    BadVersions,
    RollbackRequest,
    ToVersion,
    ToVersionAsPlanned,
)

__all__ = ["left_tainted", "plan_for_the_left", "plan_of", "tables_left"]


def plan_of(rollback: Rollback) -> StoredPlan | None:
    """Its plan; None for a statement over several tables, and where another version of lakewarden made it."""
    if rollback.is_group or rollback.head.payload is None:
        return None
    try:
        return decode_plan(rollback.head.payload)
    except UnreadableError:
        return None


def tables_left(rollback: Rollback) -> tuple[TablePlan, ...]:
    """The tables that stay bad, or may be, after a rollback that is done."""
    stored = plan_of(rollback) if rollback.head.state is RollbackState.DONE else None
    left = () if stored is None else stored.plan.left()
    return tuple(sorted(left, key=lambda one: one.name))


def plan_for_the_left(rollback: Rollback) -> RollbackPlan | None:
    """The plan with the request for one about the tables that were left, now that those they were made from are back;
    None where there are none, or nothing is known to be bad."""
    stored = plan_of(rollback)
    if stored is None or not tables_left(rollback):
        return None
    plan = stored.plan
    bad = {one.table_id: one.tainted for one in plan.tables}
    seeds = tuple(
        BadVersions(table_id=seed.table_id, versions=bad.get(seed.table_id, ()))
        if isinstance(seed, ToVersion | ToVersionAsPlanned)
        else seed
        for seed in plan.request.seeds
    )
    if any(isinstance(seed, BadVersions) and not seed.versions for seed in seeds):
        return None
    return replace(plan, request=RollbackRequest(seeds=seeds, cascade=True))


def left_tainted(rollbacks: Iterable[Rollback]) -> Mapping[str, tuple[Undone, ...]]:
    """`table_id`, and location -> the versions that still hold undone data in tables that were left as they are:
    whoever reads one of them holds it, too, also once the table that was left is written anew."""
    found: dict[str, list[Undone]] = {}
    for rollback in rollbacks:
        stored = plan_of(rollback) if rollback.head.state is RollbackState.DONE else None
        for one in () if stored is None else stored.plan.tables:
            if one.trigger is not None and one.tainted and not one.acts:
                assert stored is not None
                ranges = _ranges(rollback.rollback_id, one, dict(stored.format_ids).get(one.table_id))
                for key in filter(None, (one.table_id, one.location)):
                    found.setdefault(key, []).extend(ranges)
    return {key: tuple(ranges) for key, ranges in found.items()}


def _ranges(rollback_id: str, table: TablePlan, format_id: str | None) -> list[Undone]:
    """From the first bad version to the head that the plan was made on; the bad ones alone where that head is clean."""
    first, last = min(table.tainted), table.from_version
    return [
        Undone(
            table_id=table.table_id,
            name=table.name,
            first=begin,
            last=end,
            by=f"rollback {rollback_id}",
            format_id=format_id,
            left=True,
        )
        for begin, end in ([(first, last)] if table.stays_bad else [(one, one) for one in table.tainted])
    ]
