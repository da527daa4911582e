"""What was read before anybody managed it is on record by its place, and counts once somebody manages it."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.edges import NOT_KNOWN, rows_of
from lakewarden.catalog.lineage.graph.build import build_graph
from lakewarden.catalog.lineage.queries import EDGE_COLUMNS, Direction, edges_around
from lakewarden.catalog.lineage.versions import Version, history_of
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, RecordVerdict
from lakewarden.catalog.model.rows import PolicySettings
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.daemon.usecases.lineage.edges import named_edges
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.plan.request import RollbackRequest, ToVersion
from lakewarden.jobs.rollback.plan.rollback_planner import plan_rollback
from support.builders.commits import counted
from support.builders.daemons import World
from support.builders.tables_by_hand import NO_ROWS, facts, history
from support.histories.fleet_logs import NOW

PLACE = "file:///w/a"
READ = LineageInput(location=PLACE, format="delta", version=2, format_id="u1")
A = history("create", "append", "append")


def derived(*inputs: LineageInput) -> tuple[Version, ...]:
    """Table `b`: made, then appended to from these."""
    made = counted(version=0, committed_at=NOW, operation="CREATE TABLE", format_id="u-b")
    record = LineageRecord(run_id="r", operation=Operation.APPEND, user="ana", inputs=inputs)
    read = counted(
        version=1,
        committed_at=NOW,
        operation="WRITE",
        parameters={"mode": "Append"},
        data_change=True,
        added_files=1,
        lineage=record,
        lineage_verdict=RecordVerdict.COMPLETE,
    )
    return history_of([made, read])


def on_record(history: tuple[Version, ...]) -> pa.Table:
    return codec(LINEAGE).encode([row for one in history for row in rows_of("b", one, at=NOW)])


def planned(rows: pa.Table, b: tuple[Version, ...], **places: str) -> RollbackPlan:
    """What a rollback of `a` to version 1 comes to; `places` are tables by name that are managed, and where."""
    histories = {"a": A, "b": b}
    graph = build_graph(rows, histories, places={place: table for table, place in places.items()})
    request = RollbackRequest(seeds=(ToVersion(table_id="a", version=1),), cascade=True)
    return plan_rollback(request, graph, histories, {one: facts(one) for one in histories})


@pytest.mark.parametrize("recorded", [False, True], ids=["in the log", "in the log and on record"])
def test_a_version_that_read_a_table_before_it_was_registered_is_known_afterwards(recorded: bool) -> None:
    b = derived(READ)
    rows = on_record(b) if recorded else NO_ROWS
    made = planned(rows, b, a=PLACE)
    assert [(one.table_id, one.to_version, one.unknown) for one in made.tables] == [
        ("a", 1, ()),
        ("b", 0, ()),
    ]
    assert made.applicable


def test_it_is_known_from_its_rows_alone_once_the_log_is_gone() -> None:
    rows = on_record(derived(READ))
    managed = build_graph(rows, {"a": A}, places={PLACE: "a"})
    nobodys = build_graph(rows, {"a": A})
    assert managed.known[managed.head("b")] == 1 and nobodys.known[nobodys.head("b")] == 0


@pytest.mark.parametrize(
    "other",
    [
        LineageInput(location="file:///w/nobodys", format="delta", version=7, format_id="u7"),
        LineageInput(location="", format="rdd"),
        LineageInput(location="file:///w/c", format="delta"),
    ],
    ids=["another table that nobody manages", "rows of an RDD", "a version that nobody pinned"],
)
def test_it_stays_unknown_while_anything_else_is_missing(other: LineageInput) -> None:
    b = derived(READ, other)
    assert b[1].known is False
    for rows in (NO_ROWS, on_record(b)):
        graph = build_graph(rows, {"a": A, "b": b}, places={PLACE: "a"})
        assert graph.known[graph.head("b")] == 0
    alone = build_graph(on_record(b), {"a": A}, places={PLACE: "a"})
    assert alone.known[alone.head("b")] == 0


def test_without_a_uuid_only_the_log_tells() -> None:
    rows = on_record(derived(replace(READ, format_id=None)))
    assert NOT_KNOWN in rows["input_id"].to_pylist()


def test_what_came_from_a_table_is_shown_although_it_was_read_before_its_registration() -> None:
    rows = on_record(derived(READ)).select(list(EDGE_COLUMNS))
    found = edges_around(rows, "a", Direction.DOWNSTREAM, places={PLACE: "a"})
    assert [(one.output_id, one.input_id, one.input_version) for one in found] == [("b", "a", 2)]
    assert edges_around(rows, "a", Direction.DOWNSTREAM) == ()


@pytest.fixture
def world() -> World:
    """`db.derived` has read `db.source` by its place."""
    world = World()
    source = world.add("db.source")
    policy = PolicySettings(rollback_promise_seconds=30 * 86_400)
    place = world.add("db.derived", policy=policy).location or ""
    read = replace(READ, location=source.location or "", version=0)
    world.reader.history[place] = [_made_from(read, world)]
    world.sweep()
    return world


def _made_from(read: LineageInput, world: World) -> Commit:
    told: dict[str, Any] = {"operation": "CREATE TABLE AS SELECT", "data_change": True, "added_files": 1}
    record = LineageRecord(run_id="r1", operation=Operation.REPLACE, user="ana", inputs=(read,))
    complete = RecordVerdict.COMPLETE
    return counted(
        version=0, committed_at=world.clock.now(), lineage=record, lineage_verdict=complete, **told
    )


def test_lineage_show_finds_readers_by_place(world: World) -> None:
    edges = named_edges(world.store, world.row("db.source"), Direction.DOWNSTREAM, versions=False)
    assert [(one.input, one.output) for one in edges] == [("db.source", "db.derived")]


def test_a_source_keeps_what_a_reader_by_place_promises(world: World) -> None:
    governed = world.cycle.parts.cache.governed()[world.row("db.source").table_id]
    assert governed.policy.held_by == "db.derived is derived from it and promises 30 days"
