"""What snapshots say that they did, added up."""

from collections.abc import Iterator
from typing import Any

from lakewarden.jobs.runs.port import FileChange

__all__ = ["change_since"]


def change_since(before: int, metadata: Any, snapshot: Any) -> FileChange:
    """What a snapshot, and those between it and the one with the id `before`, did to data files and delete files."""
    made = list(_line(before, metadata, snapshot))

    def count(*keys: str) -> int:
        return sum(int(one.summary().get(key) or 0) for one in made for key in keys)

    if not made:
        return FileChange(version=None)
    return FileChange(
        version=int(snapshot.sequenceNumber()),
        files_removed=count("deleted-data-files", "removed-delete-files"),
        bytes_removed=count("removed-files-size"),
        files_added=count("added-data-files", "added-delete-files"),
    )


def _line(before: int, metadata: Any, snapshot: Any) -> Iterator[Any]:
    while snapshot is not None and int(snapshot.snapshotId()) != before:
        yield snapshot
        parent = snapshot.parentId()
        snapshot = None if parent is None else metadata.snapshot(parent)
