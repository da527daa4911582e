"""Snapshots as commits, in words that all formats share. Pure."""

from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.iceberg.metadata import TableMetadata, TableSnapshot
from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.model.lineage_record import INSTALLATION, RUN_ID
from lakewarden.catalog.model.rows import UNKNOWN_PARENT

__all__ = ["COMPACTION", "commit_of"]

COMPACTION: Final = "replace"
"""Iceberg's operation of a snapshot without changes of rows."""
_KINDS: Final = {
    "append": CommitKind.APPEND,
    "delete": CommitKind.DELETE,
    "overwrite": CommitKind.PARTIAL_OVERWRITE,  # UPDATE and MERGE are overwrites, too
    COMPACTION: CommitKind.MAINTENANCE,
}


def commit_of(metadata: TableMetadata, snapshot: TableSnapshot, *, in_main: bool) -> Commit:
    """What a snapshot did, as its summary says. A run of ours has done what is `in_main`: what it made on a branch, it
    may not have come to publish."""
    told = snapshot.summary
    parent = None if snapshot.parent_id is None else metadata.snapshots.get(snapshot.parent_id)
    schema_id = snapshot.schema_id if parent is None else parent.schema_id
    engine = " ".join(told[key] for key in ("engine-name", "engine-version") if key in told)
    added = told.get("added-records")
    return Commit(
        version=snapshot.sequence,
        parent=_parent(snapshot, parent),
        committed_at=snapshot.at,
        stamped_at=snapshot.at,
        kind=_KINDS.get(snapshot.operation or "", CommitKind.UNKNOWN),
        operation=snapshot.operation or "unknown",
        metrics={**told, **({} if added is None else {"num_added_rows": added})},
        data_change=snapshot.operation != COMPACTION,
        added_files=as_whole(told.get("added-data-files", "")) or 0,
        removed_files=as_whole(told.get("deleted-data-files", "")) or 0,
        engine=engine or None,
        run_id=told.get(RUN_ID) if in_main else None,
        installation=told.get(INSTALLATION),
        format_id=metadata.uuid if snapshot.parent_id is None else None,
        redefines=schema_id != snapshot.schema_id,
    )


def _parent(snapshot: TableSnapshot, parent: TableSnapshot | None) -> int | None:
    if snapshot.parent_id is None:
        return None
    return parent.sequence if parent is not None and parent.sequence else UNKNOWN_PARENT
