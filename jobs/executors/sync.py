"""Sync a table's metastore entry: read both, plan, change the entry by compare-and-set. Needs no Spark."""

import json
from functools import partial

from lakewarden.catalog.errors import ConflictError, PreconditionError, RefusedError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.registry import is_any_table
from lakewarden.catalog.metastore.entry_obstacles import points_at_another
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.metastore.sync_plan import SyncPlan, plan_sync
from lakewarden.jobs.actions.sync import SyncMetastore
from lakewarden.jobs.runs.head import require_same_table
from lakewarden.jobs.runs.port import JobContext, Report

__all__ = ["sync_metastore"]


def sync_metastore(ctx: JobContext, action: SyncMetastore) -> Report:
    """Make the entry `action.name` agree with the table's head; done again, it changes nothing.

    The entry follows the head even when that has moved past `action.requires`: an older version would have to be
    corrected at once. Raises `UnavailableError` while the metastore does not answer, `ConflictError` when somebody else
    changed the entry or the table went back, `RefusedError` when the name belongs to another table there.
    """
    metastore = _metastore(ctx)
    seen = _observe(ctx, action)
    require_same_table(ctx, seen, action.requires)
    database, _, table = action.name.rpartition(".")
    entry = metastore.get(database, table) if database else None
    if entry is None:
        return Report(message=f"the metastore has no entry {action.name}", skipped=True)
    table_id, location, installation = ctx.target.table_id, ctx.target.location, ctx.installation()
    plan = plan_sync(
        seen,
        entry,
        table_id=table_id,
        location=location,
        strict=metastore.strict_columns(),
        stale_share=action.stale_share,
        installation=installation,
        at_another=points_at_another(
            entry,
            table_id=table_id,
            location=location,
            installation=installation,
            is_table=partial(is_any_table, ctx.readers or (ctx.reader,)),
        ),
    )
    if plan.obstacle is not None:
        raise RefusedError(plan.obstacle.message, hint=plan.obstacle.hint)
    if not plan.changes:
        return Report(message="the metastore agrees already", skipped=True)
    ctx.require_allowed()
    reach("sync.decided")
    metastore.replace(plan.wanted, expected=plan.entry)
    reach("sync.replaced")
    return _report(plan, seen)


def _metastore(ctx: JobContext) -> Metastore:
    if ctx.metastore is None:
        raise PreconditionError(
            f"{ctx.target.name} cannot be synced: no metastore is configured.", hint="Set metastore.uri."
        )
    return ctx.metastore


def _observe(ctx: JobContext, action: SyncMetastore) -> Observation:
    seen = ctx.reader.observe(ctx.target.location)
    if not isinstance(seen, Observation):
        raise UnreadableError(
            f"{ctx.target.name} cannot be synced: {seen.message}",
            hint="Run `lakewarden tables validate` on it.",
        )
    if seen.version < action.requires.version:
        raise ConflictError(
            f"{ctx.target.name} is at version {seen.version}; this was decided on {action.requires}."
        )
    return seen


def _report(plan: SyncPlan, seen: Observation) -> Report:
    changes = [{"aspect": change.aspect.value, "was": change.message} for change in plan.changes]
    aspects = ", ".join(change.aspect.value for change in plan.changes)
    return Report(
        message=f"the metastore agrees with version {seen.version} again: {aspects}",
        details=json.dumps(changes, separators=(",", ":"), ensure_ascii=False),
    )
