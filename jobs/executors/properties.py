"""Set table properties, in one commit on exactly the version it was decided on, or give them back."""

from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.registry import retention_of
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.executors.give_back import give_properties_back
from lakewarden.jobs.runs.head import observe, require_at
from lakewarden.jobs.runs.port import JobContext, Report
from lakewarden.jobs.runs.properties_ledger import keep_before

__all__ = ["set_properties"]


def set_properties(ctx: JobContext, action: SetProperties) -> Report:
    """Carry the policy, or give back what stood there before."""
    return give_properties_back(ctx) if action.gives_back else _set(ctx, action)


def _set(ctx: JobContext, action: SetProperties) -> Report:
    """Set those that are not set to the wanted value yet, together; no commit if all are.

    The table's own retention is the one that this run finds, not the one it was decided by: where it is longer, and
    nobody asked for less, it stands.
    Even a commit that changes only properties aborts appends in flight: whoever plans this picks a quiet gap.
    """
    seen = observe(ctx)
    missing = retention_of(ctx.target.format).still_to_set(
        seen.properties, action.properties, lowers=action.lowers
    )
    if not missing:
        return Report(message="the properties are set already, or longer", skipped=True)
    require_at(ctx, seen, action.requires)
    keep_before(
        ctx, seen, missing
    )  # first: from then on, whoever drops the table knows that there is something to give back
    ctx.require_allowed()
    reach("properties.decided")
    version = ctx.engine.set_properties(
        ctx.target.location, requires=seen.at, properties=missing, run_id=ctx.run_id
    )
    reach("properties.set")
    names = ", ".join(key for key, _ in missing)
    return Report(message=f"set {names}", committed_version=version)
