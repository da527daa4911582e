"""Give a table's properties back as they were before lakewarden set them:
the last thing that is done to a table that leaves."""

from typing import Final

from lakewarden.catalog.errors import ConflictError, ExecutionError, UnavailableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.policy.original_properties import give_back
from lakewarden.jobs.runs.head import observe
from lakewarden.jobs.runs.port import JobContext, Report

__all__ = ["give_properties_back"]

_ATTEMPTS: Final = 10
_ANOTHER: Final = "not given back: another table was made at its place since, which keeps its own"


def give_properties_back(ctx: JobContext) -> Report:
    """Unset and set, each in one commit on exactly the head that it was decided on; begun again where
    somebody else committed first. What somebody changed after us stays, and so does everything of a table
    that was made anew at the place: what is set there is not ours, whatever it equals. Repeating it changes
    nothing. Where the engine fails the log tells whether it had committed before:
    what Spark does after a commit ends with an error if an interval of the table's is none.

    Raises `ConflictError` if writers are always faster."""
    if ctx.ledger is None:
        raise UnavailableError("This worker was not told where the system tables are.")
    version, said = None, None
    for _ in range(_ATTEMPTS):
        owed = ctx.ledger.owed(ctx.target.table_id)
        if owed is None:
            return Report(message="it has not left management", skipped=True)
        seen = observe(ctx)
        if not owed.is_for(seen.format_id):
            return Report(message=_ANOTHER, skipped=version is None, committed_version=version)
        wanted = give_back(owed.kept, seen.properties)
        said = said or wanted.sentence
        if not wanted:
            return Report(message=said, skipped=version is None, committed_version=version)
        ctx.require_allowed()
        reach("give_back.decided")
        try:
            if wanted.unsets:
                version = ctx.engine.unset_properties(
                    ctx.target.location, requires=seen.at, names=wanted.unsets, run_id=ctx.run_id
                )
            else:
                version = ctx.engine.set_properties(
                    ctx.target.location, requires=seen.at, properties=wanted.sets, run_id=ctx.run_id
                )
        except ConflictError:
            continue
        except ExecutionError:
            done = _committed(ctx, after=seen.version)
            if done is None:
                raise
            version = done
        reach("give_back.committed")
    raise ConflictError(
        f"{ctx.target.name} is being written all the time; its properties were not all given back."
    )


def _committed(ctx: JobContext, *, after: int) -> int | None:
    """The version that this run has committed on `after`; None if it has not."""
    commits = ctx.reader.commits(ctx.target.location, after=after)
    mine = (one.version for one in commits if one.parent == after and one.run_id == ctx.run_id)
    return next(mine, None)
