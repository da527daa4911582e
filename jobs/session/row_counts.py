"""How many rows, files and bytes a commit changed, as the result of a governed statement says it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.port import Commit

__all__ = ["COUNTS", "NOTHING", "UNKNOWN", "RowCounts", "counts_of", "with_rows_before"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RowCounts:
    """Named as Delta names those that it reports itself. None: nobody knows."""

    num_affected_rows: int | None
    num_updated_rows: int | None
    num_deleted_rows: int | None
    num_inserted_rows: int | None
    num_added_files: int | None
    num_removed_files: int | None
    num_added_bytes: int | None
    num_removed_bytes: int | None
    version: int | None
    """The version of the commit, None where nothing was to be changed."""


NOTHING: Final = RowCounts(
    num_affected_rows=0, num_updated_rows=0, num_deleted_rows=0, num_inserted_rows=0, num_added_files=0,
    num_removed_files=0, num_added_bytes=0, num_removed_bytes=0, version=None,
)  # fmt: skip
"""Of a statement that made no commit."""
COUNTS: Final = tuple(one.name for one in fields(RowCounts))
"""What the columns of a result are called."""
UNKNOWN: Final = RowCounts(**dict.fromkeys(COUNTS))
"""Of a commit that cannot be looked at just now."""
_UPDATED: Final = ("numTargetRowsUpdated", "numUpdatedRows")
_DELETED: Final = ("numTargetRowsDeleted", "numDeletedRows")
_INSERTED: Final = ("numTargetRowsInserted", "numOutputRows")
_COPIED: Final = ("numCopiedRows",)
"""Of what a write by a condition on data columns wrote, the rows that were there before."""
_ADDED_BYTES: Final = ("numTargetBytesAdded", "numAddedBytes", "numOutputBytes")
_REMOVED_BYTES: Final = ("numTargetBytesRemoved", "numRemovedBytes")
_INSERTS: Final = ("numTargetRowsInserted", "numOutputRows", "numFiles")
"""One of these is in the metrics of whatever can insert."""


def counts_of(commit: Commit) -> RowCounts:
    """What a commit's own metrics say. Rows that an overwrite took away are not among them."""
    metrics = commit.metrics
    updated = _number(metrics, _UPDATED, default=0)
    inserts = any(name in metrics for name in _INSERTS)
    # Of a write by a condition that wrote no row Delta tells the files alone.
    inserted = _inserted(metrics, default=None if inserts and commit.added_files else 0)
    deletes_none = inserts and commit.removed_files == 0
    deleted = _number(metrics, _DELETED, default=0 if deletes_none or "numUpdatedRows" in metrics else None)
    return RowCounts(
        num_affected_rows=_sum(updated, deleted, inserted),
        num_updated_rows=updated,
        num_deleted_rows=deleted,
        num_inserted_rows=inserted,
        num_added_files=commit.added_files,
        num_removed_files=commit.removed_files,
        num_added_bytes=_number(metrics, _ADDED_BYTES, default=None if commit.added_files else 0),
        num_removed_bytes=_number(metrics, _REMOVED_BYTES, default=None if commit.removed_files else 0),
        version=commit.version,
    )


def with_rows_before(counts: RowCounts, before: int | None, after: int | None) -> RowCounts:
    """The same, with the deleted rows that follow from how many there were before and are now."""
    if before is None or after is None or counts.num_inserted_rows is None:
        return counts
    deleted = before + counts.num_inserted_rows - after
    affected = _sum(counts.num_updated_rows, deleted, counts.num_inserted_rows)
    return replace(counts, num_deleted_rows=deleted, num_affected_rows=affected)


def _inserted(metrics: Mapping[str, str], *, default: int | None) -> int | None:
    name = next((one for one in _INSERTED if one in metrics), None)
    if name is None:
        return default
    found = as_whole(metrics[name])
    copied = _number(metrics, _COPIED, default=0) if name == "numOutputRows" else 0
    return None if found is None or copied is None else found - copied


def _number(metrics: Mapping[str, str], names: tuple[str, ...], *, default: int | None) -> int | None:
    found = next((metrics[name] for name in names if name in metrics), None)
    return default if found is None else as_whole(found)


def _sum(*numbers: int | None) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
