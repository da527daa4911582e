"""From checkpoints and from what sessions noted to lineage on record: both ways give the same, in any order."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.lineage.edges import NOT_KNOWN
from lakewarden.catalog.lineage.stream_batches import tables_by_uuid
from lakewarden.catalog.lineage.streams.offsets import Began, SourceOffsets, StreamBatch
from lakewarden.catalog.lineage.streams.session_notes import StreamNote, StreamNotes, waiting
from lakewarden.catalog.model.rows import Confidence, LineageRow, TableState
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.port import LINEAGE, TABLES
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from support.builders.delta_logs import add, remove
from support.builders.stream_files import QUERY, Creek, offset
from support.fakes.clock import ManualClock

pytestmark = pytest.mark.heavy

CONTENT = Began(content=True)
Edges = Mapping[int, list[tuple[str, int | None, int | None, str]]]
KNOWN: Edges = {
    1: [("id-source", None, 1, "stream")],
    2: [("id-source", 1, 2, "stream")],
    3: [("id-source", 2, 3, "stream")],
}
UNKNOWN: Edges = {version: [(NOT_KNOWN, None, None, "hint")] for version in KNOWN}


@pytest.fixture
def creek(tmp_path: Path) -> Creek:
    return Creek(tmp_path)


def batches(creek: Creek) -> Edges:
    return {version: edges for version, edges in creek.edges().items() if version > 0}


def tainted(creek: Creek, *versions: int) -> list[int]:
    """What a plan that undoes versions of the source calls tainted in the sink."""
    request = RollbackRequest(seeds=(BadVersions(table_id="id-source", versions=versions),), cascade=True)
    (sink,) = [one for one in creek.gatherer().gather(request).plan.tables if one.name == "db.sink"]
    return list(sink.tainted)


def test_a_declared_checkpoint_is_harvested_by_the_sweep_that_sees_the_table_move(creek: Creek) -> None:
    creek.declare(creek.checkpoint(0, 1, 2), CONTENT)
    creek.flow(0, 1, 2)
    creek.sweep()
    assert batches(creek) == KNOWN
    runs = {row.run_id for row in creek.store.rows(LINEAGE).all() if row.confidence is Confidence.STREAM}
    assert runs == {QUERY}


def test_what_sessions_noted_gives_the_same_edges(creek: Creek) -> None:
    creek.flow(0, 1, 2)
    creek.note(0, 1)
    creek.note(2)
    creek.sweep()
    assert batches(creek) == KNOWN
    assert creek.notes.names() == ()


def test_both_ways_at_once_leave_one_row_each(creek: Creek) -> None:
    creek.declare(creek.checkpoint(0, 1, 2), CONTENT)
    creek.flow(0, 1, 2)
    creek.note(0, 1, 2)
    creek.sweep()
    assert batches(creek) == KNOWN


def test_a_note_that_comes_late_overrules_that_nothing_was_known(creek: Creek) -> None:
    creek.flow(0, 1, 2)
    creek.sweep()
    assert batches(creek) == UNKNOWN
    creek.note(0, 1, 2)
    creek.sweep()
    assert batches(creek) == KNOWN
    assert tainted(creek, 2) == [2]


def test_a_note_on_a_commit_that_no_sweep_has_seen_waits_for_it(creek: Creek) -> None:
    creek.flow(0)
    creek.sweep()
    creek.flow(1)
    creek.note(0, 1)
    creek.clerk().record(creek.fence)
    assert batches(creek) == {1: KNOWN[1]}
    assert len(creek.notes.names()) == 1
    creek.sweep()
    assert batches(creek) == {1: KNOWN[1], 2: KNOWN[2]}
    assert creek.notes.names() == ()


def test_ten_sweeps_after_the_last_note_make_no_commit(creek: Creek) -> None:
    creek.flow(0, 1)
    creek.note(0, 1)
    creek.sweep()
    before = creek.store.rows(LINEAGE).version
    for _ in range(10):
        creek.sweep()
    assert creek.store.rows(LINEAGE).version == before


def test_a_note_on_a_table_that_nobody_manages_waits_ten_minutes_for_it(tmp_path: Path) -> None:
    creek = Creek(tmp_path)
    clock = ManualClock(creek.clock.now())
    creek.notes = StreamNotes(canonical(str(tmp_path / "system")), StorageOptions(), clock=clock)
    (row,) = creek.store.rows(TABLES).find(name="db.sink")
    creek.flow(0)
    creek.store.edit(TABLES, lambda _: [], delete=lambda _: [row], because="test")
    creek.note(0)
    creek.sweep()
    assert len(creek.notes.names()) == 1, "it may be adopted yet"
    clock.advance(timedelta(minutes=-11))
    creek.note(0)
    creek.sweep()
    assert len(creek.notes.names()) == 1
    creek.change(row)
    creek.sweep()
    assert creek.notes.names() == () and batches(creek) == {1: KNOWN[1]}


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"v": 2, "notes": []}', b'{"v": 1, "notes": [{"sink": 3}]}']
)
def test_a_note_that_cannot_be_read_is_put_aside(creek: Creek, content: bytes) -> None:
    creek.flow(0)
    creek.note(0)
    (creek.folder / "system" / "streams" / "000-bad.json").write_bytes(content)
    with pytest.raises(UnreadableError, match="no notes on streams"):
        creek.notes.read("streams/000-bad.json")
    assert [note.batch for note in waiting(creek.notes)] == [creek.batch(0)]
    creek.sweep()
    assert batches(creek) == {1: KNOWN[1]}
    assert (creek.folder / "system" / "streams" / "unreadable" / "000-bad.json").exists()


@pytest.mark.parametrize("way", ["declared", "noted", "noted and on record"])
def test_a_plan_sees_what_no_sweep_has_written_down_yet(creek: Creek, way: str) -> None:
    creek.flow(0, 1, 2)
    if way == "declared":
        creek.declare(creek.checkpoint(0, 1, 2), CONTENT)
    if way == "noted and on record":
        creek.sweep()
    if way != "declared":
        creek.note(0, 1, 2)
    assert tainted(creek, 2) == [2]
    assert tainted(creek, 1) == [1]


@pytest.mark.parametrize(
    ("skips", "takes_away", "after"),
    [(True, True, 2), (False, True, 1), (True, False, 1)],
    ids=["it is skipped", "it is not skipped", "it only adds"],
)
def test_a_commit_that_a_query_was_told_to_begin_with_and_skips_was_not_read(
    creek: Creek, skips: bool, takes_away: bool, after: int
) -> None:
    creek.source.commit(*((remove("first"),) if takes_away else (add("more"),)), operation="RESTORE")
    creek.source.commit(add("next"), operationParameters={"mode": "Append"})
    creek.flow(0)
    end = offset(4, table=creek.source.table_id)
    began = Began(version=2, skips=skips)
    batch = StreamBatch(query_id=QUERY, epoch=0, sources=(SourceOffsets(start=None, end=end),), began=began)
    creek.notes.put([StreamNote(sink=creek.location(creek.sink), batch=batch)])
    creek.sweep()
    assert batches(creek) == {1: [("id-source", after, 3, "stream")]}


def test_a_stream_that_nobody_declared_stays_unknown(creek: Creek) -> None:
    creek.flow(0, 1, 2)
    creek.checkpoint(0, 1, 2)
    creek.sweep()
    assert batches(creek) == UNKNOWN


def test_batches_that_spark_has_purged_stay_unknown_and_the_next_one_is_wide(creek: Creek) -> None:
    folder = creek.checkpoint(0, 1, 2)
    for epoch in (0, 1):
        (folder / "offsets" / str(epoch)).unlink()
    creek.declare(folder, CONTENT)
    creek.flow(0, 1, 2)
    creek.sweep()
    assert batches(creek) == {
        1: [(NOT_KNOWN, None, None, "hint")],
        2: [(NOT_KNOWN, None, None, "hint")],
        3: [("id-source", -1, 3, "stream")],
    }


def test_a_checkpoint_that_cannot_be_read_stops_no_sweep(creek: Creek) -> None:
    creek.declare(creek.folder / "nowhere")
    creek.flow(0)
    creek.sweep()
    assert batches(creek) == {1: [(NOT_KNOWN, None, None, "hint")]}


def test_what_a_plan_was_seen_to_read_does_not_hide_the_commit_from_the_planner(creek: Creek) -> None:
    creek.sweep()
    creek.flow(0, 1)
    seen = LineageRow(
        output_id="id-sink",
        output_version=2,
        input_id="id-other",
        input_version=0,
        operation="append",
        confidence=Confidence.PLAN,
        recorded_at=datetime.now(UTC),
    )
    creek.store.append(LINEAGE, [seen], because="test")
    creek.declare(creek.checkpoint(0, 1), CONTENT)
    assert tainted(creek, 2) == [2]


def test_a_uuid_names_the_live_table_that_has_it_and_none_if_two_have(creek: Creek) -> None:
    source, sink = (creek.store.rows(TABLES).find(name=f"db.{name}")[0] for name in ("source", "sink"))
    uuid = creek.source.table_id
    assert tables_by_uuid([source, sink])[uuid] == "id-source"
    copy = replace(sink, format_ids=(uuid,))
    assert uuid not in tables_by_uuid([source, copy])
    gone = [replace(copy, state=TableState.DROPPED), source]
    assert tables_by_uuid(gone)[uuid] == "id-source"


def test_a_note_keeps_where_a_source_began(tmp_path: Path) -> None:
    notes = StreamNotes(canonical(str(tmp_path)), StorageOptions())
    sources = (
        SourceOffsets(start=None, end=offset(2), initial=offset(1)),
        SourceOffsets(start=None, end="5"),
    )
    note = StreamNote(sink="file:///s", batch=StreamBatch(query_id="q", epoch=0, sources=sources))
    notes.put([note])
    assert tuple(waiting(notes)) == (note,)
