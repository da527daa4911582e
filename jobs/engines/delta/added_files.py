"""The files that one commit added, as its own lines in the log have them: what is taken out of a table, or added again.

The lines are copied, never rebuilt, so that no path, partition value or statistic comes to be spelt in another way.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakewarden.catalog.errors import PreconditionError, RefusedError
from lakewarden.catalog.formats.delta.actions import AddFile, parse_actions
from lakewarden.catalog.formats.delta.log_names import commit_path
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.storage.file_store import FileStore, StorageOptions
from lakewarden.jobs.runs.table_files import existing, relative_to

__all__ = ["Addition", "additions", "require_live", "require_on_disk"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Addition:
    """One file as a commit added it."""

    line: str
    """The line of its log."""
    file: AddFile
    """The same, understood."""


def additions(store: FileStore, versions: Iterable[int]) -> tuple[Addition, ...]:
    """The files that the commits of these versions added, in order.

    Raises `PreconditionError` if one of the commits is gone, `RefusedError` for files with a deletion vector: what such
    a vector deletes belongs to a later commit.
    """
    found: list[Addition] = []
    for version in versions:
        path = commit_path(version)
        try:
            lines = store.read(path).splitlines()
        except FileNotFoundError as error:
            raise PreconditionError(
                f"The commit of version {version} is no longer in the log of {store.root}.",
                hint="Make a new plan, without the files of that version.",
            ) from error
        for line in lines:
            adds = [one for one in parse_actions([line], path) if isinstance(one, AddFile)]
            found.extend(Addition(line=line.decode(), file=one) for one in adds)
    if any(one.file.vector is not None for one in found):
        raise RefusedError(
            f"A file in question of {store.root} has a deletion vector.", hint="Rewind the table instead."
        )
    return tuple(found)


def require_on_disk(store: FileStore, files: Sequence[Addition]) -> None:
    """Raise `PreconditionError` unless every one of these files is there; those of a shallow clone's source are its own
    table's business."""
    inside = [path for one in files if (path := relative_to(store.root, one.file.path)) is not None]
    there = {entry.path for entry in existing(store, inside)}
    gone = [path for path in inside if path not in there]
    if gone:
        raise PreconditionError(
            f"{gone[0]} of {store.root} is gone, so it cannot be added again.",
            hint="Somebody's vacuum deleted it; put it back from a backup.",
        )


def require_live(
    store: FileStore, storage: StorageOptions, files: Sequence[Addition], *, version: int
) -> None:
    """Raise `PreconditionError` unless a version has every one of these files, as they were added."""
    reader = DeltaReader(lambda _: storage)
    whole = (file for file in reader.files(store.root, version=version) if not file.has_deletion_vector)
    live = {file.entry for file in whole}
    gone = [one.file.path for one in files if one.file.entry not in live]
    if gone:
        raise PreconditionError(
            f"Version {version} of {store.root} no longer has {gone[0]} as it was added.",
            hint="Make a new plan; rewind the table instead.",
        )
