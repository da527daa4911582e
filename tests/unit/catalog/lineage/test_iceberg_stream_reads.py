"""What a batch read of an Iceberg table, as its offsets and the table's snapshots tell it."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from lakewarden.catalog.errors import UnavailableError, UnreadableError
from lakewarden.catalog.formats.port import CommitKind, TableReader
from lakewarden.catalog.formats.stream_sources import KnownTable, KnownTables
from lakewarden.catalog.lineage.streams.checkpoints import read_batches
from lakewarden.catalog.lineage.streams.offsets import (
    SourceOffsets,
    StreamBatch,
    batch_key,
    inside_version,
    reads_of,
    uuid_in,
)
from lakewarden.catalog.lineage.streams.versions_found import VersionSearch
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.model.rows import TableRow, TableState
from lakewarden.catalog.storage.file_store import canonical, open_store
from support.builders.iceberg_histories import SnapshotTable, location, uuid_of
from support.builders.iceberg_streams_by_hand import Shelf, iceberg_offset, managed
from support.builders.stream_files import checkpoint

TWO_FILES: dict[str, Any] = {"added_data_files": "2"}
UNKNOWN = (None, None, None)


def table() -> SnapshotTable:
    """Two appends, of one and of two files; a compaction, an append, a delete, an append."""
    made = SnapshotTable(table_id="a").write(1).write(2, **TWO_FILES).compacted(3).write(4)
    return made.write(5, operation=Operation.DELETE, made="delete").write(6)


def ranges(
    start: str | None,
    end: str | None,
    *,
    of: SnapshotTable | None = None,
    initial: str | None = None,
    stateful: bool = False,
    epoch: int = 1,
) -> list[tuple[str | None, int | None, int | None]]:
    """(table, after, up to); the last of a batch that is not all known is `UNKNOWN`."""
    known = KnownTable(table_id="a", format_id=uuid_of("a"), commits=(of or table()).commits)

    def find(format_: str, own_id: str, near: str | None) -> KnownTable | None:
        return known if any(one.own_id == own_id for one in known.commits) else None

    source = SourceOffsets(start=start, end=end, initial=initial)
    batch = StreamBatch(query_id="q", epoch=epoch, sources=(source,), stateful=stateful)
    found = reads_of(batch, KnownTables(find=find))
    assert all(one.format == "iceberg" and one.format_id == uuid_of("a") for one in found.inputs)
    told: list[tuple[str | None, int | None, int | None]] = [
        (one.table_id, one.from_version, one.version) for one in found.inputs
    ]
    return told if found.complete else [*told, UNKNOWN]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (iceberg_offset(1, 1), iceberg_offset(2, 2), [("a", 1, 2)]),
        (iceberg_offset(1, 0), iceberg_offset(2, 2), [("a", 0, 2)]),
        (iceberg_offset(1, 1), iceberg_offset(2, 1), [("a", 1, 2)]),
        (iceberg_offset(2, 1), iceberg_offset(2, 2), [("a", 1, 2)]),
        (iceberg_offset(2, 1), iceberg_offset(4, 1), [("a", 1, 2), ("a", 3, 4)]),
        (iceberg_offset(2, 2), iceberg_offset(3, 1), []),
        (iceberg_offset(2, 2), iceberg_offset(4, 1), [("a", 3, 4)]),
        (iceberg_offset(4, 1), iceberg_offset(6, 1), [("a", 5, 6)]),
        (iceberg_offset(4, 1), iceberg_offset(6, 0), []),
        (iceberg_offset(2, 2), iceberg_offset(2, 2), []),
        (iceberg_offset(2, 0, whole=True), iceberg_offset(4, 1), [("a", None, 2), ("a", 3, 4)]),
        (iceberg_offset(-1, -1), iceberg_offset(2, 2), [("a", 0, 2)]),
        (None, iceberg_offset(2, 2), [("a", 0, 2)]),
        (None, iceberg_offset(-1, -1), []),
    ],
    ids=[
        "what came between",
        "from the beginning of the first",
        "a part of the last",
        "the rest of it",
        "the rest, and past a compaction",
        "nothing but a compaction",
        "past a compaction",
        "past a delete",
        "not yet the last one",
        "nothing new",
        "what the table held, and what came",
        "from when it had no snapshot",
        "nobody says from where",
        "the table was empty",
    ],
)
def test_a_batch_read_what_was_appended_between_its_offsets(
    start: str | None, end: str, expected: list[tuple[str | None, int | None, int | None]]
) -> None:
    assert ranges(start, end) == expected


def test_it_goes_along_mains_line_and_not_by_numbers() -> None:
    """Version 3 is on a branch, 4 was undone; the rollback's own snapshot changes no row."""
    made = SnapshotTable(table_id="a").write(1).write(2).write(3, on=1, branch="audit").write(4)
    made = made.restored(5, to=2, run_id="rollback-1").write(6)
    assert ranges(iceberg_offset(1, 1), iceberg_offset(6, 1), of=made) == [("a", 1, 2), ("a", 5, 6)]
    assert ranges(iceberg_offset(2, 1), iceberg_offset(4, 1), of=made) == [("a", 2, 4)], "before the rollback"


def test_the_first_batch_began_where_its_checkpoint_says() -> None:
    told = ranges(None, iceberg_offset(4, 1), initial=iceberg_offset(4, 0), epoch=0)
    assert told == [("a", 3, 4)]


def test_a_query_with_state_has_read_everything_since_it_began() -> None:
    told = ranges(iceberg_offset(4, 1), iceberg_offset(6, 1), initial=iceberg_offset(2, 0), stateful=True)
    assert told == [("a", 1, 2), ("a", 3, 4), ("a", 5, 6)]
    assert ranges(iceberg_offset(4, 1), iceberg_offset(6, 1), stateful=True)[0] == ("a", 0, 2)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (iceberg_offset(1, 1), [("a", 3, 4), UNKNOWN]),
        (None, [("a", 3, 4), UNKNOWN]),
        (iceberg_offset(3, 1), [("a", 3, 4)]),
        (iceberg_offset(4, 0), [("a", 3, 4)]),
    ],
    ids=["the way is cut", "nobody says from where", "behind the gap", "the last alone"],
)
def test_where_snapshots_have_expired_it_is_said(
    start: str | None, expected: list[tuple[str | None, int | None, int | None]]
) -> None:
    assert ranges(start, iceberg_offset(4, 1), of=table().expire(1, 2)) == expected


def test_a_snapshot_that_is_the_oldest_counts_with_all_that_the_table_held() -> None:
    """It was made from one that has expired: what it added alone has no name."""
    oldest = table().expire(1, 2, 3)
    assert ranges(iceberg_offset(4, 0), iceberg_offset(4, 1), of=oldest) == [("a", None, 4)]


@pytest.mark.parametrize(
    "end",
    [
        iceberg_offset(99, 1),
        json.dumps({"version": 2, "snapshot_id": 100, "position": 1, "scan_all_files": False}),
        json.dumps({"version": 1, "snapshot_id": "100", "position": 1, "scan_all_files": False}),
        json.dumps({"version": 1, "snapshot_id": 100, "position": 1}),
    ],
    ids=["no such snapshot", "an offset of tomorrow", "an odd id", "something missing"],
)
def test_what_cannot_be_told_is_unknown(end: str) -> None:
    assert ranges(iceberg_offset(1, 1), end) == [UNKNOWN]
    assert ranges("garbage", iceberg_offset(2, 2)) == [UNKNOWN]


def test_its_offsets_name_no_table_and_no_place_inside_a_change() -> None:
    assert uuid_in(iceberg_offset(2, 1)) is None and inside_version(iceberg_offset(2, 1)) is None


# checkpoints


def test_a_checkpoint_keeps_where_each_source_began(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, [iceberg_offset(2, 2)], [iceberg_offset(4, 1)])
    kept = folder / "sources" / "0" / "offsets" / "0"
    kept.parent.mkdir(parents=True)
    kept.write_text(iceberg_offset(1, 0))
    found = read_batches(open_store(canonical(str(folder))), {("q", 0), ("q", 1)})
    ((first,), (second,)) = (found["q", epoch].sources for epoch in (0, 1))
    assert (first.start, first.initial) == (None, iceberg_offset(1, 0))
    assert (second.start, second.initial) == (iceberg_offset(2, 2), None)
    kept.unlink()
    (first,) = read_batches(open_store(canonical(str(folder))), {("q", 0)})["q", 0].sources
    assert first.initial is None


# commits


def test_a_snapshot_of_the_sink_says_whose_batch_it_is() -> None:
    told: dict[str, Any] = {"spark__sql__streaming__queryId": "q", "spark__sql__streaming__epochId": "7"}
    made = SnapshotTable(table_id="s").write(1, operation=None, **told)
    made = made.write(2, operation=None, made="overwrite", **told).write(3, operation=None)
    made = made.write(4, operation=None, **{**told, "spark__sql__streaming__epochId": "x"})
    batch, complete, other, odd = made.commits
    assert (batch_key(batch), batch.transactions, batch.kind) == (("q", 7), (("q", 7),), CommitKind.APPEND)
    assert (batch_key(complete), complete.kind, complete.may_look) == (("q", 7), CommitKind.OVERWRITE, False)
    assert batch_key(other) is batch_key(odd) is None and other.transactions == ()


# which table it is


def found_in(rows: list[TableRow], shelf: Shelf, remembered: dict[str, str] | None = None) -> VersionSearch:
    return VersionSearch(rows, [cast(TableReader, shelf)], {} if remembered is None else remembered)


def test_the_table_is_found_by_its_snapshots_and_looked_for_where_it_was_before() -> None:
    shelf = Shelf({"a": table(), "b": SnapshotTable(table_id="b").write(7)})
    remembered: dict[str, str] = {}
    rows = [managed("a"), managed("b"), managed("c", format_="delta")]
    found = found_in(rows, shelf, remembered)("iceberg", "700", None)
    assert found is not None and (found.table_id, found.format_id) == ("b", uuid_of("b"))
    assert shelf.read == [location("a"), location("b")]
    shelf.read.clear()
    shelf.tables["b"].write(8)
    found = found_in(rows, shelf, remembered)("iceberg", "800", "700")
    assert found is not None and shelf.read == [location("b")], "nobody else is asked"
    assert found_in(rows, shelf, remembered)("iceberg", "999", None) is None
    assert found_in(rows, shelf, remembered)("iceberg", "1000", "999") is None
    shelf.read.clear()
    for own, near in (("1001", "1000"), ("1002", "1001"), ("1001", "1000"), ("1003", "999")):
        assert found_in(rows, shelf, remembered)("iceberg", own, near) is None
    assert shelf.read == [], "a source that nobody manages is not looked for at each of its batches"
    shelf.tables["d"] = SnapshotTable(table_id="d").write(11)
    found = found_in([*rows, managed("d")], shelf, remembered)("iceberg", "1100", "1000")
    assert found is not None and found.table_id == "d", "until there are other tables"


@pytest.mark.parametrize("why", ["an old head", "broken"])
def test_a_batch_that_was_not_found_once_does_not_hide_the_next(why: str) -> None:
    """A head may have been asked a moment before the batch's snapshot came."""
    source = SnapshotTable(table_id="b").write(7)
    troubles = dict[str, Exception]()
    shelf = Shelf({"b": source}, troubles=troubles)
    remembered, rows = dict[str, str](), [managed("b")]
    assert found_in(rows, shelf, remembered)("iceberg", "700", None) is not None
    if why == "broken":
        troubles[location("b")] = UnreadableError("broken")
    for own, near in (("800", "700"), ("800", "700"), ("900", "800")):
        assert found_in(rows, shelf, remembered)("iceberg", own, near) is None
    troubles.clear()
    source.write(8).write(9).write(10)
    found = found_in(rows, shelf, remembered)("iceberg", "1000", "900")
    assert found is not None and found.table_id == "b"


def test_the_first_batch_that_came_before_its_head_was_asked_does_not_hide_the_next() -> None:
    source = SnapshotTable(table_id="b").write(1)
    shelf, remembered, rows = Shelf({"b": source}), dict[str, str](), [managed("b")]
    assert found_in(rows, shelf, remembered)("iceberg", "700", None) is None
    source.write(7)
    assert found_in(rows, shelf, remembered)("iceberg", "800", "700") is None
    source.write(8)
    for own, near in (("800", "700"), ("700", None)):
        found = found_in(rows, shelf, remembered)("iceberg", own, near)
        assert found is not None and found.table_id == "b"


def test_a_table_that_is_broken_or_gone_hides_no_other_and_one_that_is_away_is_waited_for() -> None:
    shelf = Shelf({"b": table()}, troubles={location("a"): UnreadableError("broken")})
    rows = [managed("a"), managed("b")]
    found = found_in(rows, shelf)("iceberg", "100", None)
    assert found is not None and found.table_id == "b"
    away = Shelf({"b": table()}, troubles={location("a"): UnavailableError("away")})
    found = found_in(rows, away)("iceberg", "100", None)
    assert found is not None and found.table_id == "b"
    with pytest.raises(UnavailableError, match="away"):
        found_in(rows, away)("iceberg", "999", None)
    gone = [managed("b", state=TableState.DROPPED)]
    assert found_in(gone, Shelf({"b": table()}))("iceberg", "100", None) is None
