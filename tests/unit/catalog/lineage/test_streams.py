"""What a batch of a stream read, as offsets, checkpoints and commits tell it; and what that leaves on record."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.formats.stream_sources import KnownTables
from lakewarden.catalog.lineage.edges import NOT_KNOWN, NOTHING
from lakewarden.catalog.lineage.recording import rows_from, rows_of_upserts
from lakewarden.catalog.lineage.streams.checkpoints import began_of, read_batches
from lakewarden.catalog.lineage.streams.offsets import (
    NOT_SAID,
    Began,
    SourceOffsets,
    StreamBatch,
    StreamReads,
    batch_key,
    inside_version,
    parse_offsets,
    reads_of,
)
from lakewarden.catalog.lineage.versions import Effect, history_of, version_of
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, RecordVerdict
from lakewarden.catalog.model.rows import Confidence, LineageRow
from lakewarden.catalog.storage.file_store import canonical, open_store
from support.builders.commits import counted
from support.builders.stream_files import checkpoint, offset

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TABLES = KnownTables(by_format_id={"u-a": "a", "u-b": "b"})
CONTENT = Began(content=True)


def batch(
    *sources: SourceOffsets, epoch: int = 1, stateful: bool = False, began: Began = NOT_SAID
) -> StreamBatch:
    return StreamBatch(query_id="q", epoch=epoch, sources=sources, stateful=stateful, began=began)


def ranges(one: StreamBatch) -> list[tuple[str | None, int | None, int | None]]:
    """(table, after, up to) of what a batch read; the last of a batch that is not all known is (None, None, None)."""
    found = reads_of(one, TABLES)
    told: list[tuple[str | None, int | None, int | None]] = [
        (read.table_id or read.location, read.from_version, read.version) for read in found.inputs
    ]
    return told if found.complete else [*told, (None, None, None)]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (offset(3), offset(5), [("a", 2, 4)]),
        (offset(3, 4), offset(5), [("a", 2, 4)]),
        (offset(3), offset(3, 7), [("a", 2, 3)]),
        (offset(3, 7), offset(3, 9), [("a", 2, 3)]),
        (offset(3), offset(3), []),
        (offset(3, -100, form=3), offset(5, -20, form=3), [("a", 2, 4)]),
        (offset(3, 0, snapshot=True), offset(3, 4, snapshot=True), [("a", None, 3)]),
        (offset(3, 4, snapshot=True), offset(4), [("a", None, 3)]),
        (offset(3, 4, snapshot=True), offset(6), [("a", None, 3), ("a", 3, 5)]),
        (offset(3, -1, snapshot=True), offset(3, 0, snapshot=True), [("a", None, 3)]),
        (None, offset(5), [("a", -1, 4)]),
        (None, None, []),
    ],
    ids=[
        "whole versions",
        "the rest of a version",
        "a part of a version",
        "a part in the middle",
        "nothing new",
        "offsets of version 3",
        "some of the first content",
        "the rest of the first content",
        "the rest of the first content, and what came since",
        "the begin of the first content",
        "the batch before is purged",
        "a source that was silent",
    ],
)
def test_a_batch_read_what_lies_between_two_offsets(
    start: str | None, end: str | None, expected: list[tuple[str, int | None, int]]
) -> None:
    assert ranges(batch(SourceOffsets(start=start, end=end))) == expected


@pytest.mark.parametrize(
    ("began", "end", "expected"),
    [
        (NOT_SAID, offset(5), [("a", -1, 4)]),
        (CONTENT, offset(5), [("a", None, 4)]),
        (Began(version=3), offset(5), [("a", 2, 4)]),
        (Began(version=5), offset(5), [("a", -1, 4)]),
        (NOT_SAID, offset(5, 2, snapshot=True), [("a", None, 5)]),
        (NOT_SAID, offset(5, -1, snapshot=True), []),
    ],
    ids=[
        "not said",
        "with the content",
        "with a version",
        "with one it has not come to",
        "still the content",
        "before the content",
    ],
)
def test_the_first_batch_began_where_somebody_says(
    began: Began, end: str, expected: list[tuple[str, int | None, int]]
) -> None:
    assert ranges(batch(SourceOffsets(start=None, end=end), epoch=0, began=began)) == expected


@pytest.mark.parametrize(
    ("began", "first", "expected"),
    [
        (NOT_SAID, offset(3), [("a", -1, 6)]),
        (NOT_SAID, None, [("a", -1, 6)]),
        (CONTENT, None, [("a", -1, 6)]),
        (CONTENT, offset(3), [("a", None, 2), ("a", 2, 6)]),
        (NOT_SAID, offset(3, 1, snapshot=True), [("a", None, 3), ("a", 3, 6)]),
        (Began(version=2), None, [("a", 1, 6)]),
    ],
    ids=["not said", "nothing is left", "purged", "the content", "still the content", "a version"],
)
def test_a_stateful_batch_read_everything_since_its_query_began(
    began: Began, first: str | None, expected: list[tuple[str, int | None, int]]
) -> None:
    source = SourceOffsets(start=offset(6), end=offset(7), first=first)
    assert ranges(batch(source, epoch=9, stateful=True, began=began)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SourceOffsets(start=None, end='{"orders":{"0":7,"1":3}}'), [("kafka://orders", None, None)]),
        (SourceOffsets(start="4", end="5"), [("stream://q/0", None, None)]),
        (SourceOffsets(start=None, end='{"logOffset":3}'), [("stream://q/0", None, None)]),
        (SourceOffsets(start=offset(1, table="u-x"), end=offset(2, table="u-x")), [(None, None, None)]),
        (SourceOffsets(start=None, end='{"version":1,"snapshot_id":4,"position":0}'), [(None, None, None)]),
        (SourceOffsets(start=offset(1), end=offset(2, form=9)), [(None, None, None)]),
        (SourceOffsets(start=offset(1, table="u-b"), end=offset(2)), [(None, None, None)]),
    ],
    ids=["kafka", "rate", "files", "not managed", "Iceberg", "of tomorrow", "another table"],
)
def test_other_sources_come_from_outside_and_lake_tables_that_nobody_manages_are_not_known(
    source: SourceOffsets, expected: list[tuple[str | None, None, None]]
) -> None:
    assert ranges(batch(source)) == expected


def test_a_starting_version_is_believed_only_where_it_can_mean_one_table() -> None:
    two = (SourceOffsets(start=None, end=offset(5)), SourceOffsets(start=None, end=offset(9, table="u-b")))
    assert ranges(batch(*two, epoch=0, began=Began(version=3))) == [("a", -1, 4), ("b", -1, 8)]
    assert ranges(batch(*two, epoch=0, began=CONTENT)) == [("a", None, 4), ("b", None, 8)]


def test_a_starting_version_is_a_number_or_none() -> None:
    assert (began_of("none"), began_of("7")) == (CONTENT, Began(version=7))
    with pytest.raises(UsageError, match="latest is not a starting version"):
        began_of("latest")


# checkpoints


def batches(folder: Path, *epochs: int, query: str = "q", **changes: Any) -> dict[int, StreamBatch]:
    store = open_store(canonical(str(folder)))
    return {
        key[1]: one for key, one in read_batches(store, {(query, one) for one in epochs}, **changes).items()
    }


def test_a_checkpoint_tells_of_its_own_batches(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, [offset(2), "-"], [offset(4), "5"])
    found = batches(folder, 0, 1, 7, began=CONTENT)
    assert found == {
        0: batch(
            SourceOffsets(start=None, end=offset(2)),
            SourceOffsets(start=None, end=None),
            epoch=0,
            began=CONTENT,
        ),
        1: batch(
            SourceOffsets(start=offset(2), end=offset(4)), SourceOffsets(start=None, end="5"), began=CONTENT
        ),
    }
    assert batches(folder, 0, 1, query="another") == {}


def test_a_checkpoint_with_state_tells_where_its_query_began(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, [offset(2)], [offset(4)], [offset(5)])
    (folder / "state" / "0").mkdir(parents=True)
    (source,) = batches(folder, 2)[2].sources
    assert (source.first, source.start, source.end) == (offset(2), offset(4), offset(5))


def test_an_offset_stands_in_the_middle_of_a_version_or_between_two() -> None:
    inside = json.dumps(json.loads(offset(5)) | {"index": 3})
    assert inside_version(inside) == 5 and inside_version(offset(5)) is None
    assert inside_version(json.dumps(json.loads(inside) | {"isStartingVersion": True})) is None
    assert inside_version(None) is inside_version("{}") is None


@pytest.mark.parametrize("text", ["", "v1", "v9\n{}\n0", "no words of ours", "v1\n{}"])
def test_offsets_of_another_layout_are_not_read(tmp_path: Path, text: str) -> None:
    folder = checkpoint(tmp_path, [offset(2)])
    (folder / "offsets" / "0").write_text(text)
    assert batches(folder, 0) == {}
    with pytest.raises(ValueError, match="offsets of version"):
        parse_offsets(text)


def test_a_folder_that_is_no_checkpoint_tells_nothing(tmp_path: Path) -> None:
    assert batches(tmp_path / "nowhere", 0) == {}
    (tmp_path / "metadata").write_text("[]")
    assert batches(tmp_path, 0) == {}


# commits and rows


def commit(version: int, epoch: object = 0, operation: str = "STREAMING UPDATE", **changes: Any) -> Commit:
    """A commit of the sink."""
    told: dict[str, Any] = {
        "version": version,
        "committed_at": NOW,
        "operation": operation,
        "parameters": {"outputMode": "Append", "queryId": "q", "epochId": str(epoch)},
        "data_change": True,
        "added_files": 1,
    }
    return counted(**{**told, **changes})


def rows(*commits: Commit, reads: StreamReads, epoch: int = 0) -> list[tuple[int, str, int | None, str]]:
    made = rows_from("t", commits, format_id="u-t", at=NOW, streams={("q", epoch): reads})
    assert {row.run_id for row in made if row.confidence == "stream"} <= {"q"}
    return [_short(row) for row in made]


def _short(row: LineageRow) -> tuple[int, str, int | None, str]:
    return row.output_version, row.input_id, row.input_version, row.confidence.value


@pytest.mark.parametrize(
    ("one", "key"),
    [
        (commit(1, 7), ("q", 7)),
        (commit(1, "x"), None),
        (commit(1, 7, "WRITE"), None),
        (commit(1, parameters={}), None),
    ],
    ids=["a batch", "no number", "no stream", "nothing said"],
)
def test_a_sink_says_which_batch_a_commit_holds(one: Commit, key: tuple[str, int] | None) -> None:
    assert batch_key(one) == key


def test_of_an_upserted_batch_the_record_says_what_it_read_and_whose_it_is() -> None:
    read = LineageInput(table_id="a", location="file:///a", format="delta", version=4, from_version=2)
    record = LineageRecord(run_id="r", operation=Operation.MERGE, user="ana", inputs=(read,), query="q")
    told = {"lineage": record, "lineage_verdict": RecordVerdict.COMPLETE, "removed_files": 1, "run_id": "r"}
    upserted = commit(1, operation="MERGE", **told)
    (on_record,) = rows_from("t", [upserted], format_id="u-t", at=NOW)
    assert (on_record.confidence, on_record.run_id) == (Confidence.COMMITTED, "r")
    (of_query,) = rows_of_upserts("t", history_of([upserted, commit(2, 8)]), at=NOW)
    assert replace(of_query, confidence=on_record.confidence, run_id="r", output_format_id="u-t") == on_record
    assert (of_query.confidence, of_query.run_id) == (Confidence.STREAM, "q")


def test_what_a_batch_read_is_on_record_as_told_by_its_stream() -> None:
    reads = reads_of(batch(SourceOffsets(start=offset(3), end=offset(5))), TABLES)
    assert rows(commit(6, 0), commit(7, 1), reads=reads, epoch=1) == [
        (6, NOT_KNOWN, None, "hint"),
        (7, "a", 4, "stream"),
    ]


def test_a_batch_that_read_no_table_is_known_to_have_read_none() -> None:
    assert rows(commit(6), reads=StreamReads(inputs=(), complete=True)) == [(6, NOTHING, None, "stream")]


def test_what_a_checkpoint_leaves_open_is_not_overruled_by_what_it_tells() -> None:
    sources = (
        SourceOffsets(start=offset(3), end=offset(5)),
        SourceOffsets(start=None, end=offset(2, table="u-x")),
    )
    assert rows(commit(6), reads=reads_of(batch(*sources), TABLES)) == [
        (6, "a", 4, "stream"),
        (6, NOT_KNOWN, None, "stream"),
    ]


def test_of_a_batch_that_was_written_twice_only_the_last_is_known() -> None:
    reads = StreamReads(inputs=(), complete=True)
    assert rows(commit(6), commit(8), reads=reads) == [
        (6, NOT_KNOWN, None, "hint"),
        (8, NOTHING, None, "stream"),
    ]


def test_a_batch_without_rows_has_read_all_the_same() -> None:
    reads = reads_of(batch(SourceOffsets(start=offset(3), end=offset(5))), TABLES)
    assert rows(commit(6, data_change=False, added_files=0), reads=reads) == [(6, "a", 4, "stream")]


def test_complete_mode_replaces_all_rows() -> None:
    complete = {"outputMode": "Complete", "queryId": "q", "epochId": "1"}
    assert version_of(commit(6, parameters=complete, removed_files=1)).effect is Effect.FRESH
    assert version_of(commit(6)).effect is Effect.APPEND
