"""The table as a run finds it: observed at exactly the head that the action was decided on."""

from dataclasses import replace
from datetime import datetime, timedelta

from lakewarden.catalog.bounds import as_duration
from lakewarden.catalog.errors import ConflictError, PreconditionError, UnreadableError
from lakewarden.catalog.formats.port import Commit, Head, LogProblem, Observation
from lakewarden.catalog.formats.registry import retention_of, spec_of
from lakewarden.catalog.policy.retention_properties import Duration
from lakewarden.catalog.units import DAY
from lakewarden.jobs.runs.port import JobContext
from lakewarden.jobs.runs.protection import Protection, protect

__all__ = [
    "deleted_file_retention",
    "log_retention",
    "observe",
    "observe_at",
    "observe_since",
    "protection_of",
    "require_at",
    "require_same_commit",
    "require_same_table",
    "require_supported",
    "versions_kept",
]


def observe(ctx: JobContext) -> Observation:
    """The table's head. Raises `UnreadableError` if its log cannot be used."""
    seen = ctx.reader.observe(ctx.target.location)
    if isinstance(seen, LogProblem):
        raise UnreadableError(seen.message, hint=f"lakewarden tables validate {ctx.target.name}")
    return seen


def observe_at(ctx: JobContext, requires: Head) -> Observation:
    """The table's head, which has to be the one that is required.

    Raises `ConflictError` if the table moved past it, or was made anew or replaced.
    """
    seen = observe(ctx)
    require_at(ctx, seen, requires)
    return seen


def require_at(ctx: JobContext, seen: Observation, requires: Head) -> None:
    """Raise `ConflictError` as `observe_at` does."""
    if seen.version != requires.version:
        raise ConflictError(
            f"{ctx.target.name} is at version {seen.version}; this was decided on {requires}, "
            "so nothing was changed."
        )
    require_same_table(ctx, seen, requires)
    if requires.token not in (None, seen.head):
        raise ConflictError(
            f"Properties or columns of {ctx.target.name} were changed since this was decided on version {requires}; "
            "nothing was changed."
        )


def require_same_table(ctx: JobContext, seen: Observation, requires: Head) -> None:
    """Raise `ConflictError` if what was read is not the table that something was decided on: made anew at its place,
    replaced by a copy, or another one because a mount is gone. A version number alone does not tell; nor does another
    state of the same version, where changes of properties make no version."""
    if requires.token in (None, seen.head):
        return
    told = ctx.reader.has_head(ctx.target.location, version=requires.version, head=requires.token)
    knows = told is not False and (told is True or seen.version != requires.version)
    if not knows or requires.format_id != seen.format_id:
        raise ConflictError(
            f"{ctx.target.name} is another table than the one this was decided on: "
            f"it was made anew or replaced at {ctx.target.location}. Nothing was changed."
        )


def require_same_commit(ctx: JobContext, last: Commit | None, version: int, committed_at: datetime) -> None:
    """Raise `ConflictError` unless this commit, read just now, is the one that something was proved by."""
    if last is None or (last.version, last.committed_at) != (version, committed_at):
        raise ConflictError(
            f"{ctx.target.name} was made anew or replaced meanwhile; the rest was left as it is."
        )


def observe_since(ctx: JobContext, planned: Head) -> Observation:
    """The table's head, for a run that decides on it itself whatever was committed since the one that was planned for.

    Raises `ConflictError` if what the planner looked at is gone (a lower head: rewound by hand or made anew), or if the
    table now uses features that lakewarden does not act on.
    """
    seen = observe(ctx)
    if seen.version < planned.version:
        raise ConflictError(
            f"{ctx.target.name} is at version {seen.version}, below {planned}, for which this was planned; "
            "nothing was changed."
        )
    require_same_table(ctx, seen, planned)
    require_supported(ctx, seen)
    return seen


def require_supported(ctx: JobContext, seen: Observation) -> None:
    """Raise `ConflictError` if the table uses features by now that lakewarden does not act on. Properties may say so
    without another version."""
    if seen.capabilities.unsupported:
        raise ConflictError(
            f"{ctx.target.name} now uses {', '.join(seen.capabilities.unsupported)}, which lakewarden "
            "does not act on; nothing was changed."
        )


def protection_of(ctx: JobContext, seen: Observation, promise: timedelta) -> Protection:
    """The versions of a table that its promise and rollbacks protect now, from every commit still in the log."""
    needed = None if ctx.rollbacks is None else ctx.rollbacks.needed_version(ctx.target.table_id)
    commits = ctx.reader.commits(ctx.target.location, after=-1, upto=seen.version)
    return protect(commits, head=seen.version, now=ctx.clock.now(), promise=promise, needed=needed)


def deleted_file_retention(ctx: JobContext, seen: Observation) -> timedelta:
    """How long the table itself keeps removed files; no time where its format has no property for that.
    Raises `PreconditionError` if the property makes no sense: it may mean any time."""
    kept = retention_of(seen.format).files
    if kept is None:
        return versions_kept(ctx, seen)
    own = _duration(seen, kept if kept.unset_binds else replace(kept, unset=0))
    if own is None:
        raise PreconditionError(
            f"{kept.name} of {ctx.target.name} is not a duration, so nobody knows how long "
            "its removed files have to stay.",
            hint=f"Set it to one by ALTER TABLE ... SET TBLPROPERTIES, such as '{kept.written(30 * DAY)}'.",
        )
    return own


def versions_kept(ctx: JobContext, seen: Observation) -> timedelta:
    """How long its owner wants the table's versions to stay, where its format has a property for that.
    Raises `PreconditionError` if the property makes no sense: it may mean any time."""
    seconds = spec_of(seen.format).versions_kept(seen.properties)
    if seconds is None:
        raise PreconditionError(
            f"A property of {ctx.target.name} for how long its snapshots stay is no number, so nobody knows how long.",
            hint="Its owner can set it anew.",
        )
    return as_duration(seconds)


def log_retention(seen: Observation) -> timedelta | None:
    """How long the table's users want its log kept: nothing where they did not say, None if it makes no sense."""
    kept = retention_of(seen.format).log
    return _duration(seen, None if kept is None else replace(kept, unset=0))


def _duration(seen: Observation, kept: Duration | None) -> timedelta | None:
    seconds = 0 if kept is None else kept.seconds(seen.properties)
    return None if seconds is None else as_duration(seconds)
