"""Is a table still what its step speaks of, and is everything there that the restore needs?

Heads, identity and protocol are compared with the plan; of the files only those that the target has and head has not,
because the others are in use today.
"""

from collections.abc import Callable, Mapping
from typing import Final

from lakewarden.catalog.errors import ConflictError, PreconditionError, RefusedError, UnreadableError
from lakewarden.catalog.formats.port import DataFile, LogProblem, Observation, TableReader
from lakewarden.catalog.formats.registry import retention_of, spec_of
from lakewarden.catalog.model.rows import RollbackStep
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.units import count_of
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.plan.facts import Unreachable, VersionObstacle
from lakewarden.jobs.runs.table_files import lacking

__all__ = [
    "kept_properties",
    "missing_files",
    "require_same_head",
    "unreachable",
    "verify_step",
    "why_not",
]

_UNTOUCHED: Final = "Nothing was changed."
"""True where these errors are raised to somebody. A rollback that finds the same when it has begun keeps the
sentence of the error alone."""
_HINTS: Final = {
    VersionObstacle.EXPIRED: "Choose a later version (`lakewarden tables history`), or restore a backup.",
    VersionObstacle.MISSING_FILES: "Somebody's vacuum deleted them, or they were overwritten. "
    "Choose a later version, or put the files back from a backup.",
}


def verify_step(step: TableStep, reader: TableReader, storage: Callable[[str], StorageOptions]) -> TableStep:
    """The step; a restore is completed with the properties to keep and the transaction ids to take back.

    What is added again is looked at when its turn comes: the restore before it changes the table.

    Raises `ConflictError` (head moved: the plan is stale), `PreconditionError` (recreated, replaced, expired, files
    gone), `RefusedError` (a protocol lakewarden does not write).
    """
    if step.kind is RollbackStep.REAPPLY:
        return step
    seen = _observe(step, reader)
    if step.kind in (RollbackStep.DROP, RollbackStep.QUARANTINE):
        return step.verified(head=seen.head)
    if not seen.capabilities.restore:
        raise RefusedError(
            why_not(step.name, seen),
            hint="Its own engine has to restore it; a new plan asks whether it may stay as it is.",
        )
    if step.kind is RollbackStep.REMOVE_FILES:
        return step.verified(head=seen.head)
    _check_files(step, reader, storage)
    return step.verified(head=seen.head, apps=_apps(step, reader), properties=_ours(step, reader, seen))


def why_not(name: str, seen: Observation) -> str:
    """Why a table that is not ours to restore is not."""
    features = ", ".join(seen.capabilities.unsupported)
    if features:
        return f"{name} uses {features}, which lakewarden does not act on."
    return f"{name} stays as it is: lakewarden does not roll {spec_of(seen.format).label} tables back yet."


def require_same_head(step: TableStep, reader: TableReader) -> None:
    """Raise `ConflictError` if the version that the step was verified on is another table's by now:
    made anew, replaced."""
    if step.head is None:
        return
    if not reader.has_head(step.location, version=step.from_version, head=step.head):
        raise ConflictError(
            f"{step.name} was made anew or replaced at {step.location}; it was not touched.",
            hint="Make a new plan; only what the new table has itself can be undone.",
        )


def missing_files(
    reader: TableReader,
    storage: Callable[[str], StorageOptions],
    location: str,
    *,
    head: int,
    target: int,
) -> tuple[str, ...]:
    """Paths in version `target` and not in `head` that are gone from storage, or whose size differs from the log's.

    Raises `UnreadableError` if the log cannot rebuild one of the two versions.
    """
    live = {(file.path, file.deletion_vector) for file in reader.files(location, version=head)}
    wanted: dict[str, int | None] = {}
    for file in reader.files(location, version=target):
        if (file.path, file.deletion_vector) not in live:
            wanted |= _sizes(file)
    return lacking(location, wanted, storage)


def unreachable(
    reader: TableReader,
    storage: Callable[[str], StorageOptions],
    location: str,
    *,
    name: str,
    head: int,
    target: int,
) -> Unreachable | None:
    """Why version `target` of a table cannot be restored, by its log and its files; None if it can."""
    try:
        gone = missing_files(reader, storage, location, head=head, target=target)
    except UnreadableError:
        message = f"Version {target} of {name} has expired: its log no longer goes back that far."
        return Unreachable(why=VersionObstacle.EXPIRED, message=message)
    if not gone:
        return None
    message = (
        f"Version {target} of {name} cannot be restored: {count_of(len(gone), 'file')} "
        f"{'is' if len(gone) == 1 else 'are'} gone or damaged, the first is {gone[0]}."
    )
    return Unreachable(why=VersionObstacle.MISSING_FILES, message=message)


def _observe(step: TableStep, reader: TableReader) -> Observation:
    if not reader.is_table(step.location):
        raise PreconditionError(
            f"{step.name} is no longer at {step.location}.",
            hint="It was moved or dropped since the plan was made; make a new plan.",
        )
    seen = reader.observe(step.location)
    if isinstance(seen, LogProblem):
        raise UnreadableError(seen.message, hint=f"lakewarden tables validate {step.name}")
    if step.format_id is not None and seen.format_id != step.format_id:
        _refuse_other_table(step, reader, seen)
    if seen.version != step.from_version:
        raise ConflictError(
            f"The plan is stale: {step.name} is at version {seen.version}, the plan speaks "
            f"of {step.from_version}.",
            hint=f"{_UNTOUCHED} Make a new plan: the commits in between belong in it.",
        )
    if step.head is not None and seen.head != step.head:
        raise ConflictError(
            f"The plan is stale: version {seen.version} of {step.name} is another commit than the one that "
            "it speaks of.",
            hint=f"{_UNTOUCHED} Its log was put back and written to since. Make a new plan.",
        )
    return seen


def _refuse_other_table(step: TableStep, reader: TableReader, seen: Observation) -> None:
    """A UUID that came up after the planned version is CREATE OR REPLACE; else the whole log is another one."""
    commits = reader.commits(step.location, after=-1, upto=seen.version)
    since = next((commit.version for commit in commits if commit.format_id == seen.format_id), -1)
    if since > step.from_version:
        raise ConflictError(
            f"The plan is stale: {step.name} was replaced (CREATE OR REPLACE) in version {since}.",
            hint=f"{_UNTOUCHED} Make a new plan; it can go back to before the replacement.",
        )
    raise PreconditionError(
        f"{step.name} was dropped and created anew since the plan: the versions it speaks of are gone.",
        hint="Make a new plan; only what the new table has itself can be undone.",
    )


def _check_files(step: TableStep, reader: TableReader, storage: Callable[[str], StorageOptions]) -> None:
    found = unreachable(
        reader, storage, step.location, name=step.name, head=step.from_version, target=step.to_version
    )
    if found is not None:
        raise PreconditionError(found.message, hint=_HINTS[found.why])


def _sizes(file: DataFile) -> dict[str, int | None]:
    vector = () if file.deletion_vector is None else (file.deletion_vector,)
    return {file.path: file.size_bytes, **dict.fromkeys(vector)}


def _apps(step: TableStep, reader: TableReader) -> tuple[str, ...]:
    commits = reader.commits(step.location, after=step.to_version, upto=step.from_version)
    return tuple(sorted({app for commit in commits for app, _ in commit.transactions}))


def _ours(step: TableStep, reader: TableReader, seen: Observation) -> tuple[tuple[str, str | None], ...]:
    """The properties to be set again after a restore, and those to be taken away that only its target has: none where
    properties are of no version, and a restore leaves ours as they are."""
    if not spec_of(seen.format).commits_tell_properties:
        return ()
    try:
        target = reader.properties(step.location, version=step.to_version)
    except UnreadableError as error:
        message = (
            f"Version {step.to_version} of {step.name} has expired: its log no longer goes back that far."
        )
        raise PreconditionError(message, hint=_HINTS[VersionObstacle.EXPIRED]) from error
    return kept_properties(seen, target)


def kept_properties(seen: Observation, target: Mapping[str, str]) -> tuple[tuple[str, str | None], ...]:
    """What outlives a restore of the properties of head, and those that only its `target` has (None: not set)."""
    keeps = retention_of(seen.format).keeps
    names = sorted(key for key in seen.properties.keys() | target.keys() if keeps(key))
    return tuple((key, seen.properties.get(key)) for key in names)
