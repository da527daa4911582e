"""What a governed write says in the summary of its snapshot, and how many rows it changed. Pure."""

from collections.abc import Mapping
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.port import CommitKind
from lakewarden.catalog.model.lineage_record import (
    RECORD_KEY,
    LineageRecord,
    Operation,
    RecordReading,
    read_record,
)

__all__ = ["changed_rows", "kind_told", "record_in", "taken_rows"]

_KINDS: Final[Mapping[Operation, CommitKind]] = {
    Operation.APPEND: CommitKind.APPEND,
    Operation.MERGE: CommitKind.MERGE,
    Operation.UPDATE: CommitKind.UPDATE,
    Operation.DELETE: CommitKind.DELETE,
    Operation.OVERWRITE: CommitKind.OVERWRITE,
    Operation.PARTIAL_OVERWRITE: CommitKind.PARTIAL_OVERWRITE,
}
_MADE: Final[Mapping[Operation, frozenset[str]]] = {
    Operation.APPEND: frozenset({"append"}),
    Operation.DELETE: frozenset({"delete", "overwrite"}),
}
"""What Iceberg calls the snapshots of these; of others, it is any that changes rows."""
_CHANGING: Final = frozenset({"append", "delete", "overwrite"})
_OF_MERGES: Final = "spark.merge-into.num-target-rows-"
_UNKNOWN: Final = ""
_TAKEN: Final = ("numTargetRowsUpdated", "numTargetRowsDeleted", "numDeletedRows")
_DELETES: Final = ("total-position-deletes", "total-equality-deletes")

Summary = Mapping[str, str]


def record_in(summary: Summary) -> RecordReading:
    """The record, and what it is worth."""
    return read_record(summary.get(RECORD_KEY), None)


def kind_told(record: LineageRecord | None, made: str | None) -> CommitKind | None:
    """What a write did, by its record and by what Iceberg calls its snapshot, which tells less: it has one word for
    MERGE, UPDATE and overwrites. None where there is no record, or one that contradicts."""
    if record is None or made not in _MADE.get(record.operation, _CHANGING):
        return None
    return _KINDS.get(record.operation)


def changed_rows(record: LineageRecord | None, told: Summary, before: Summary | None) -> Summary:
    """The rows that a write changed, named as Delta names them; `before` is the summary of the snapshot before, empty
    where there was none, None where it has expired. Empty without a record."""
    if record is None:
        return {}
    added = told.get("added-records", "0")
    rows: Summary = {}
    match record.operation:
        case Operation.APPEND | Operation.REPLACE:  # none of ours replaces a table that is there
            rows = {"numOutputRows": added}
        case Operation.MERGE:
            rows = _merged(told, before, added)
        case Operation.UPDATE:
            rows = {"numUpdatedRows": added if "added-delete-files" in told else _UNKNOWN}
        case Operation.DELETE:
            rows = _deleted(told, before)
        case Operation.OVERWRITE | Operation.PARTIAL_OVERWRITE:
            rows = {"numOutputRows": added, **_deleted(told, before, added="0")}
        case _:
            pass
    sizes = {"numAddedBytes": told.get("added-files-size"), "numRemovedBytes": told.get("removed-files-size")}
    return {**rows, **{name: size for name, size in sizes.items() if size is not None}}


def taken_rows(made: str, told: Summary, before: Summary | None) -> int | None:
    """How many rows a snapshot, which Iceberg calls `made`, took or replaced by others, whoever wrote it; None where
    its summary (`told`) does not tell, and for overwrites. `before`: as for `changed_rows`."""
    numbers = {key: as_whole(value) or 0 for key, value in told.items()}
    if "added-delete-files" in told:
        is_told = "added-equality-deletes" not in told and "deleted-data-files" not in told
        return _less(numbers, "added-position-deletes", "removed-position-deletes") if is_told else None
    record = record_in(told).record
    if any(key.startswith(_OF_MERGES) for key in told):
        rows = _merged(told, before, "")
    elif made == "delete" if record is None else record.operation is Operation.DELETE:
        rows = _deleted(told, before)
    else:
        return None
    counts = [as_whole(rows.get(name, "")) for name in _TAKEN if name in rows]
    known = [one for one in counts if one is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _merged(told: Summary, before: Summary | None, added: str) -> Summary:
    """What Spark counted, which counts nothing where rows are only inserted, and a row that is deleted as often as it
    is matched."""
    inserted, updated, deleted = (
        told.get(f"{_OF_MERGES}{one}") for one in ("inserted", "updated", "deleted")
    )
    if inserted is updated is deleted is None:
        # An upsert that reads nothing has delete files, and knows of no row before.
        if "added-delete-files" not in told:
            inserted, updated, deleted = added, "0", "0"
    elif deleted != "0":
        deleted = _deleted_once(told, before, as_whole(inserted or ""), as_whole(updated or ""))
    return {
        "numTargetRowsInserted": inserted or _UNKNOWN,
        "numTargetRowsUpdated": updated or _UNKNOWN,
        "numTargetRowsDeleted": deleted or _UNKNOWN,
    }


def _deleted_once(told: Summary, before: Summary | None, inserted: int | None, updated: int | None) -> str:
    """The rows that a MERGE deleted: by files that went and came, or by the places that were added."""
    if inserted is None or updated is None:
        return _UNKNOWN
    numbers = {key: as_whole(value) or 0 for key, value in told.items()}
    if "added-delete-files" in told:
        return str(_less(numbers, "added-position-deletes", "removed-position-deletes") - updated)
    if _may_have_deletes(before):
        return _UNKNOWN
    return str(_less(numbers, "deleted-records", "added-records") + inserted)


def _deleted(told: Summary, before: Summary | None, added: str | None = None) -> Summary:
    """By deletes that were added, or by files that went; unknown where some of what went had been deleted before."""
    numbers = {key: as_whole(value) or 0 for key, value in told.items()}
    if "added-delete-files" in told and "deleted-data-files" not in told:
        return {"numDeletedRows": str(_less(numbers, "added-position-deletes", "removed-position-deletes"))}
    if _may_have_deletes(before):
        return {}
    gone = numbers.get("deleted-records", 0)
    return {"numDeletedRows": str(gone - (numbers.get("added-records", 0) if added is None else int(added)))}


def _may_have_deletes(before: Summary | None) -> bool:
    return before is None or any(as_whole(before.get(key, "0")) for key in _DELETES)


def _less(numbers: Mapping[str, int], one: str, other: str) -> int:
    return numbers.get(one, 0) - numbers.get(other, 0)
