"""What the summary of a governed snapshot says: its kind, and the rows that it changed."""

import pytest

from lakewarden.catalog.formats.iceberg.governed import changed_rows, kind_told, taken_rows
from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.model.lineage_record import RECORD_KEY, LineageRecord, Operation, encode_record
from lakewarden.jobs.session.row_counts import counts_of
from support.builders.iceberg_tables import START


def record(operation: Operation) -> LineageRecord:
    return LineageRecord(run_id="r", operation=operation, user="ana")


@pytest.mark.parametrize(
    ("operation", "made", "kind"),
    [
        (Operation.APPEND, "append", CommitKind.APPEND),
        (Operation.MERGE, "append", CommitKind.MERGE),
        (Operation.MERGE, "delete", CommitKind.MERGE),
        (Operation.UPDATE, "overwrite", CommitKind.UPDATE),
        (Operation.DELETE, "overwrite", CommitKind.DELETE),
        (Operation.OVERWRITE, "delete", CommitKind.OVERWRITE),
        (Operation.APPEND, "overwrite", None),
        (Operation.DELETE, "append", None),
        (Operation.MERGE, "replace", None),
        (Operation.REMOVE_FILES, "delete", None),
    ],
)
def test_a_record_is_believed_where_the_snapshot_does_not_contradict(
    operation: Operation, made: str, kind: CommitKind | None
) -> None:
    assert kind_told(record(operation), made) is kind


MATCHED_TWICE = {
    "spark.merge-into.num-target-rows-inserted": "1",
    "spark.merge-into.num-target-rows-updated": "2",
    "spark.merge-into.num-target-rows-deleted": "6",
    "deleted-records": "10",
    "added-records": "8",
}
CASES = {
    "insert": (Operation.APPEND, {"added-records": "3"}, {}, (3, 0, 0)),
    "delete by files": (Operation.DELETE, {"deleted-data-files": "1", "deleted-records": "4"}, {}, (0, 0, 4)),
    "delete that copies": (
        Operation.DELETE,
        {"deleted-data-files": "1", "deleted-records": "4", "added-records": "3"},
        {"total-position-deletes": "0"},
        (0, 0, 1),
    ),
    "delete by vectors, of which one was there": (
        Operation.DELETE,
        {"added-delete-files": "1", "added-position-deletes": "5", "removed-position-deletes": "3"},
        {"total-position-deletes": "3"},
        (0, 0, 2),
    ),
    "delete of files with deletes": (
        Operation.DELETE,
        {"deleted-data-files": "1", "deleted-records": "4"},
        {"total-position-deletes": "1"},
        (0, 0, None),
    ),
    "delete of files, of which nobody knows any more whether they had deletes": (
        Operation.DELETE,
        {"deleted-data-files": "1", "deleted-records": "4"},
        None,
        (0, 0, None),
    ),
    "update that copies": (
        Operation.UPDATE,
        {"added-records": "3", "deleted-records": "3"},
        {},
        (0, None, 0),
    ),
    "update by deletes": (
        Operation.UPDATE,
        {"added-records": "2", "added-delete-files": "1", "added-position-deletes": "2"},
        {},
        (0, 2, 0),
    ),
    "overwrite": (
        Operation.OVERWRITE,
        {"added-records": "2", "deleted-data-files": "1", "deleted-records": "7"},
        {},
        (2, 0, 7),
    ),
    "merge that inserts": (Operation.MERGE, {"added-records": "2"}, {}, (2, 0, 0)),
    "merge": (
        Operation.MERGE,
        {
            **{f"spark.merge-into.num-target-rows-{one}": "1" for one in ("inserted", "updated", "deleted")},
            "deleted-records": "9",
            "added-records": "9",
        },
        {},
        (1, 1, 1),
    ),
    "upsert that reads nothing": (
        Operation.MERGE,
        {"added-records": "2", "added-delete-files": "1", "added-equality-deletes": "3"},
        {},
        (None, None, None),
    ),
    "a table that is made by a query": (Operation.REPLACE, {"added-records": "2"}, {}, (2, 0, 0)),
    "merge by files, with rows that matched twice": (Operation.MERGE, MATCHED_TWICE, {}, (1, 2, 3)),
    "merge by deletes, with rows that matched twice": (
        Operation.MERGE,
        {**MATCHED_TWICE, "added-records": "3", "added-delete-files": "1", "added-position-deletes": "5"},
        {"total-position-deletes": "4"},
        (1, 2, 3),
    ),
    "merge by files of which some rows had gone": (
        Operation.MERGE,
        MATCHED_TWICE,
        {"total-position-deletes": "4"},
        (1, 2, None),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_are_counted_where_the_summary_tells(case: str) -> None:
    operation, told, before, expected = CASES[case]
    commit = Commit(
        version=2,
        parent=1,
        committed_at=START,
        kind=CommitKind.UNKNOWN,
        operation="x",
        metrics=changed_rows(record(operation), told, before),
        removed_files=int(told.get("deleted-data-files", "0")),
    )
    counts = counts_of(commit)
    assert (counts.num_inserted_rows, counts.num_updated_rows, counts.num_deleted_rows) == expected


NONE_BEFORE = {"total-position-deletes": "0"}
BY_FILES = {"deleted-data-files": "1", "deleted-records": "4"}
TAKEN = {
    "by vectors, of which one was there": (
        "overwrite",
        {"added-delete-files": "1", "added-position-deletes": "5", "removed-position-deletes": "3"},
        None,
        2,
    ),
    "by keys": ("overwrite", {"added-delete-files": "1", "added-equality-deletes": "3"}, NONE_BEFORE, None),
    "by deletes, beside files that went": (
        "overwrite",
        {**BY_FILES, "added-delete-files": "1", "added-position-deletes": "5"},
        NONE_BEFORE,
        None,
    ),
    "whole files": ("delete", BY_FILES, NONE_BEFORE, 4),
    "whole files that had deletes": ("delete", BY_FILES, {"total-position-deletes": "1"}, None),
    "whole files of nobody knows which": ("delete", BY_FILES, None, None),
    "copied, by whoever": ("overwrite", {**BY_FILES, "added-records": "3"}, NONE_BEFORE, None),
    "a merge that copies": ("overwrite", MATCHED_TWICE, NONE_BEFORE, 5),
    "a merge that copies files with deletes": (
        "overwrite",
        MATCHED_TWICE,
        {"total-position-deletes": "4"},
        None,
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_rows_that_a_change_took_are_told_whoever_made_it(case: str) -> None:
    made, told, before, expected = TAKEN[case]
    assert taken_rows(made, told, before) == expected


def test_the_record_tells_a_delete_that_copies_from_other_changes_and_overwrites() -> None:
    told = {**BY_FILES, "added-records": "3"}
    taken = {
        one: taken_rows("overwrite", {**told, RECORD_KEY: encode_record(record(one))}, NONE_BEFORE)
        for one in (Operation.DELETE, Operation.UPDATE, Operation.OVERWRITE)
    }
    assert taken == {Operation.DELETE: 1, Operation.UPDATE: None, Operation.OVERWRITE: None}
    assert (
        taken_rows("delete", {**BY_FILES, RECORD_KEY: encode_record(record(Operation.OVERWRITE))}, {}) is None
    )
