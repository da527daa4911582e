"""What a commit's metrics say of rows, by what Delta really writes there."""

from collections.abc import Mapping

import pytest

from lakewarden.jobs.session.row_counts import RowCounts, counts_of, with_rows_before
from support.builders.commits import counted as commit
from support.builders.verdicts import NOW

MERGE = {
    "numTargetRowsUpdated": "2", "numTargetRowsDeleted": "1", "numTargetRowsInserted": "3",
    "numTargetBytesAdded": "70", "numTargetBytesRemoved": "50", "numOutputRows": "9",
}  # fmt: skip


def counted(metrics: Mapping[str, str], *, added: int = 1, removed: int = 0) -> RowCounts:
    made = commit(
        version=3,
        committed_at=NOW,
        operation="WRITE",
        metrics=metrics,
        added_files=added,
        removed_files=removed,
    )
    return counts_of(made)


@pytest.mark.parametrize(
    ("metrics", "files", "rows"),
    [
        (MERGE, (2, 1), (2, 1, 3)),
        ({"numFiles": "1", "numOutputRows": "4", "numOutputBytes": "9"}, (1, 0), (0, 0, 4)),
        ({"numFiles": "1", "numOutputRows": "4", "numRemovedFiles": "2"}, (1, 2), (0, None, 4)),
        ({"numOutputRows": "4", "numDeletedRows": "3", "numRemovedFiles": "2"}, (1, 2), (0, 3, 4)),
        (
            {"numOutputRows": "100", "numCopiedRows": "99", "numDeletedRows": "1", "numRemovedFiles": "1"},
            (1, 1),
            (0, 1, 1),
        ),
        ({"numOutputRows": "100", "numCopiedRows": "?", "numDeletedRows": "1"}, (1, 1), (0, 1, None)),
        ({"numUpdatedRows": "5", "numCopiedRows": "1"}, (1, 1), (5, 0, 0)),
        ({"numDeletedRows": "7", "numRemovedFiles": "2"}, (0, 2), (0, 7, 0)),
        ({"numRemovedFiles": "2"}, (0, 2), (0, None, 0)),
    ],
    ids=[
        "merge",
        "append",
        "overwrite",
        "replace where",
        "replace where on data",
        "copies that nobody can read",
        "update",
        "delete",
        "delete without statistics",
    ],
)
def test_rows_are_counted(
    metrics: Mapping[str, str], files: tuple[int, int], rows: tuple[int | None, ...]
) -> None:
    found = counted(metrics, added=files[0], removed=files[1])
    assert (found.num_updated_rows, found.num_deleted_rows, found.num_inserted_rows) == rows
    assert (found.num_added_files, found.num_removed_files) == files
    assert found.num_affected_rows == (None if None in rows else sum(row or 0 for row in rows))


def test_bytes_are_those_of_the_metrics_or_none_where_nothing_came_or_went() -> None:
    merged = counted(MERGE, removed=1)
    assert (merged.num_added_bytes, merged.num_removed_bytes) == (70, 50)
    appended = counted({"numOutputRows": "1", "numOutputBytes": "9"})
    assert (appended.num_added_bytes, appended.num_removed_bytes) == (9, 0)
    assert counted({}, removed=1).num_removed_bytes is None


def test_what_an_overwrite_took_away_follows_from_the_rows_before_and_after() -> None:
    overwrite = counted({"numOutputRows": "4", "numRemovedFiles": "2"}, removed=2)
    known = with_rows_before(overwrite, 10, 4)
    assert (known.num_deleted_rows, known.num_affected_rows) == (10, 14)
    assert with_rows_before(overwrite, None, 4) == overwrite


def test_rows_that_were_only_copied_are_no_inserted_ones_there_either() -> None:
    overwrite = counted({"numOutputRows": "100", "numCopiedRows": "99", "numRemovedFiles": "1"}, removed=1)
    known = with_rows_before(overwrite, 101, 100)
    assert (known.num_deleted_rows, known.num_inserted_rows, known.num_affected_rows) == (2, 1, 3)


def test_a_condition_that_takes_rows_away_and_puts_none_is_counted_too() -> None:
    gone = counted({"numFiles": "0", "numRemovedFiles": "1"}, added=0, removed=1)
    known = with_rows_before(gone, 3, 2)
    assert (known.num_deleted_rows, known.num_inserted_rows, known.num_affected_rows) == (1, 0, 1)
