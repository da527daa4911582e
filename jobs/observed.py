"""The table as a run finds it: observed at exactly the version that the action was decided on."""

from datetime import timedelta

from lakewarden.catalog.errors import ConflictError, UnreadableError
from lakewarden.catalog.formats.base import LogProblem, Observation
from lakewarden.catalog.units import parse_seconds
from lakewarden.jobs.base import JobContext
from lakewarden.jobs.protection import Protection, protect

__all__ = ["deleted_file_retention", "observe", "observe_at", "observe_since", "protection_of"]


def observe(ctx: JobContext) -> Observation:
    """The table's head. Raises `UnreadableError` if its log cannot be used."""
    seen = ctx.reader.observe(ctx.target.location)
    if isinstance(seen, LogProblem):
        raise UnreadableError(seen.message, hint=f"lakewarden tables validate {ctx.target.name}")
    return seen


def observe_at(ctx: JobContext, requires: int) -> Observation:
    """The table's head, which has to be version `requires`; raises `ConflictError` if it moved past it."""
    seen = observe(ctx)
    if seen.version != requires:
        raise ConflictError(
            f"{ctx.target.name} is at version {seen.version}; this was decided on {requires}, so nothing was changed."
        )
    return seen


def observe_since(ctx: JobContext, planned: int) -> Observation:
    """The table's head, for a run that decides on it itself whatever was committed since version `planned`.

    Raises `ConflictError` if what the planner looked at is gone (a lower head: rewound by hand or made anew), or if the
    table has come to use features that lakewarden does not act on.
    """
    seen = observe(ctx)
    if seen.version < planned:
        raise ConflictError(
            f"{ctx.target.name} is at version {seen.version}, below {planned}, for which this was planned; nothing was "
            "changed."
        )
    if seen.version > planned and seen.capabilities.unsupported:
        raise ConflictError(
            f"{ctx.target.name} has come to use {', '.join(seen.capabilities.unsupported)}, which lakewarden does not act on; "
            "nothing was changed."
        )
    return seen


def protection_of(ctx: JobContext, seen: Observation, promise: timedelta) -> Protection:
    """What a promise and the rollbacks protect of a table right now, from every commit that its log still has."""
    needed = None if ctx.rollbacks is None else ctx.rollbacks.needed_version(ctx.target.table_id)
    commits = ctx.reader.commits(ctx.target.location, after=-1, upto=seen.version)
    return protect(commits, head=seen.version, now=ctx.clock.now(), promise=promise, needed=needed)


def deleted_file_retention(seen: Observation) -> timedelta | None:
    """How long the table itself keeps removed files; None if its property makes no sense."""
    text = seen.properties.get("delta.deletedFileRetentionDuration", "interval 1 week")
    words = text.lower().replace("interval", "", 1).split()
    parts = [parse_seconds(f"{count} {unit}") for count, unit in zip(words[::2], words[1::2], strict=False)]
    seconds = [part for part in parts if part is not None]
    if not parts or len(words) % 2 or len(seconds) != len(parts):
        return None
    return timedelta(seconds=sum(seconds))
