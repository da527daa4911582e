"""Snapshots as commits, in words that all formats share. Pure."""

from collections.abc import Mapping
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.iceberg.governed import changed_rows, kind_told, record_in
from lakewarden.catalog.formats.iceberg.metadata import TableMetadata, TableSnapshot
from lakewarden.catalog.formats.iceberg.references import SnapshotNames
from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.model.lineage_record import (
    INSTALLATION,
    OPERATION_ID,
    OPERATION_NUMBER,
    RUN_ID,
)
from lakewarden.catalog.model.rows import UNKNOWN_PARENT

__all__ = ["COMPACTION", "LEFT", "RESTORED", "commit_of", "is_compaction"]

COMPACTION: Final = "replace"
"""Iceberg's operation of a snapshot without changes of rows."""
LEFT: Final = "lakewarden.left"
"""Key of the version that main was at before a snapshot of a rollback of ours, which became main by the commit that
made it."""
RESTORED: Final = "lakewarden.restored"
"""Key of the version whose files such a snapshot has."""
_FILES: Final = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
_TOTAL: Final = "total-data-files"
"""Who writes this, counts files at all."""
_STAGED: Final = "wap.id"
_QUERY: Final = "spark.sql.streaming.queryId"
_EPOCH: Final = "spark.sql.streaming.epochId"
"""Keys by which Spark's streaming sink says whose batch a snapshot is."""
_PICKED: Final = "source-snapshot-id"
_MANY_NAMES: Final = "overwrite"
"""Iceberg's operation of a snapshot that replaced rows: of UPDATE and MERGE, too."""
_KINDS: Final = {
    "append": CommitKind.APPEND,
    "delete": CommitKind.DELETE,
    _MANY_NAMES: CommitKind.PARTIAL_OVERWRITE,
    COMPACTION: CommitKind.MAINTENANCE,
}


def commit_of(metadata: TableMetadata, snapshot: TableSnapshot, names: SnapshotNames) -> Commit:
    """What a snapshot did, as its summary says. A run of ours has done what is in main, or was when it was made: what
    it made on a branch, it may not have come to publish."""
    told = snapshot.summary
    parent = None if snapshot.parent_id is None else metadata.snapshots.get(snapshot.parent_id)
    restored = as_whole(told.get(RESTORED, ""))
    schema_id = snapshot.schema_id if parent is None else parent.schema_id
    engine = " ".join(told[key] for key in ("engine-name", "engine-version") if key in told)
    added, reading = told.get("added-records"), record_in(told)
    batch = _batch(told)
    told_kind = kind_told(reading.record, snapshot.operation) or _streamed_kind(batch, snapshot)
    without: Mapping[str, str] | None = {} if snapshot.parent_id is None else None  # it has expired
    rows = changed_rows(reading.record, told, without if parent is None else parent.summary)
    return Commit(
        version=snapshot.sequence,
        parent=_parent(metadata, snapshot, parent),
        committed_at=snapshot.at,
        stamped_at=snapshot.at,
        kind=(told_kind or _KINDS.get(snapshot.operation or "", CommitKind.UNKNOWN))
        if restored is None
        else CommitKind.RESTORE,
        operation=(snapshot.operation or "unknown") if restored is None else "restore",
        metrics={**told, **({} if added is None else {"num_added_rows": added}), **rows},
        data_change=restored is not None or snapshot.operation != COMPACTION,
        added_files=as_whole(told.get("added-data-files", "")) or 0,
        removed_files=as_whole(told.get("deleted-data-files", "")) or 0,
        idle=_TOTAL in told and not any(as_whole(told.get(key, "0")) != 0 for key in _FILES),
        may_look=told_kind is None and snapshot.operation == _MANY_NAMES,
        engine=engine or None,
        run_id=told.get(RUN_ID) if names.in_main or LEFT in told else None,
        installation=told.get(INSTALLATION),
        transactions=_transactions(told, batch),
        lineage=reading.record,
        lineage_verdict=reading.verdict,
        format_id=metadata.uuid if snapshot.parent_id is None else None,
        redefines=schema_id != snapshot.schema_id,
        changes_columns=_changes_columns(metadata, snapshot, parent),
        restored=restored,
        branches=names.branches,
        tags=names.tags,
        beside=not (names.in_main or names.was_main) and (bool(names.branches) or _STAGED in told),
        copied=_copied(metadata, told),
        batch=batch,
        own_id=str(snapshot.id),
    )


def _copied(metadata: TableMetadata, told: Mapping[str, str]) -> int | None:
    """The version that was cherry-picked; None where it has expired, too."""
    picked = told.get(_PICKED)
    if picked is None:
        return None
    return next((one.sequence for one in metadata.snapshots.values() if str(one.id) == picked), None)


def _changes_columns(metadata: TableMetadata, snapshot: TableSnapshot, parent: TableSnapshot | None) -> bool:
    """Whether its columns are others than those it was made from; where that has expired, than those of any snapshot
    that is older."""
    if snapshot.parent_id is None:
        return False  # a table made anew
    if parent is not None:
        return parent.schema_id != snapshot.schema_id
    older = (one for one in metadata.snapshots.values() if one.sequence < snapshot.sequence)
    return any(one.schema_id != snapshot.schema_id for one in older)


def _streamed_kind(batch: tuple[str, int] | None, snapshot: TableSnapshot) -> CommitKind | None:
    """The sink's mode `complete` replaces all rows, each time; None for anything else."""
    is_whole = batch is not None and snapshot.operation == _MANY_NAMES
    return CommitKind.OVERWRITE if is_whole else None


def _batch(told: Mapping[str, str]) -> tuple[str, int] | None:
    """The batch that a streaming sink wrote."""
    query, number = told.get(_QUERY), as_whole(told.get(_EPOCH, ""))
    return (query, number) if query and number is not None else None


def _transactions(told: Mapping[str, str], batch: tuple[str, int] | None) -> tuple[tuple[str, int], ...]:
    """The operation, or the batch of a query, that a snapshot was made for."""
    name, number = told.get(OPERATION_ID), as_whole(told.get(OPERATION_NUMBER, ""))
    operation = () if name is None or number is None else ((name, number),)
    return operation if batch is None else (*operation, batch)


def is_compaction(snapshot: TableSnapshot) -> bool:
    """Whether a snapshot has the rows of the one before it in other files."""
    return snapshot.operation == COMPACTION and LEFT not in snapshot.summary


def _parent(metadata: TableMetadata, snapshot: TableSnapshot, parent: TableSnapshot | None) -> int | None:
    """What head was before: of a snapshot that went back, not the one whose files it has."""
    left = as_whole(snapshot.summary.get(LEFT, ""))
    if left is not None:
        return left if any(one.sequence == left for one in metadata.snapshots.values()) else UNKNOWN_PARENT
    if snapshot.parent_id is None:
        return None
    return parent.sequence if parent is not None and parent.sequence else UNKNOWN_PARENT
