"""Versions, schemas and lineage that a cycle writes down, on fakes."""

from dataclasses import replace
from datetime import timedelta

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.edges import NOT_KNOWN
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, RecordVerdict
from lakewarden.catalog.model.rows import (
    Column,
    Confidence,
    LineageRow,
    PolicySettings,
)
from lakewarden.catalog.system.port import LINEAGE, SCHEMAS, TABLES
from support.builders.commits import counted
from support.builders.daemons import World
from support.builders.tables import observation

OLD = timedelta(days=9)


def test_schema_changes_are_recorded_with_stable_ids(world: World) -> None:
    row = world.add("db.a")
    world.settle()
    columns = (Column(id=1, path="b", type="string"), Column(id=2, path="a", type="long"))
    world.write(row, schema=columns)
    world.sweep()
    first, second = sorted(world.store.rows(SCHEMAS).find(table_id=row.table_id), key=lambda one: one.version)
    assert {one.path: one.id for one in first.columns} == {"a": 1}
    assert {one.path: one.id for one in second.columns} == {"a": 1, "b": 2}


def test_every_version_of_a_moved_table_gets_its_lineage_once(world: World) -> None:
    row = world.add("db.a")
    place = row.location or ""
    inputs = (LineageInput(table_id="id-db.b", location="file:///lake/db.b", format="delta", version=7),)
    record = LineageRecord(run_id="r1", operation=Operation.APPEND, user="ana", inputs=inputs)

    def commit(version: int, lineage: LineageRecord | None) -> Commit:
        return counted(
            version=version,
            committed_at=world.clock.now(),
            operation="WRITE",
            parameters={"mode": "Append"},
            data_change=True,
            added_files=1,
            lineage=lineage,
            lineage_verdict=RecordVerdict.ABSENT if lineage is None else RecordVerdict.COMPLETE,
        )

    world.reader.history[place] = [commit(0, None)]
    world.sweep()
    world.write(row)
    world.reader.history[place].append(commit(1, record))
    world.sweep()
    world.restart()
    world.sweep()
    edges = [
        (one.output_version, one.input_id, one.input_version, one.confidence)
        for one in world.store.rows(LINEAGE).find(output_id=row.table_id)
    ]
    assert sorted(edges) == [
        (0, NOT_KNOWN, None, Confidence.HINT),
        (1, "id-db.b", 7, Confidence.COMMITTED),
    ]


def test_a_table_made_anew_gets_lineage_of_its_own_beside_its_predecessors(world: World) -> None:
    row = world.add("db.a")
    place = row.location or ""
    world.reader.history[place] = [
        counted(
            version=number,
            committed_at=world.clock.now(),
            operation="WRITE",
            data_change=True,
            format_id="old",
        )
        for number in range(3)
    ]
    world.write(row)
    world.write(row)
    world.sweep()
    before = len(world.store.rows(LINEAGE).all())
    world.reader.tables[place] = observation(place, world.clock.now(), version=0, format_id="new")
    world.reader.history[place] = [
        counted(
            version=0, committed_at=world.clock.now(), operation="WRITE", data_change=True, format_id="new"
        )
    ]
    for _ in range(2):
        world.sweep()
        world.restart()
    rows = world.store.rows(LINEAGE).all()
    assert len(rows) == before + 1
    assert sorted({one.output_format_id or "" for one in rows}) == ["new", "old"]


def test_a_source_keeps_removed_files_as_long_as_what_is_derived_from_it_promises(world: World) -> None:
    source = world.add("db.source")
    derived = world.add("db.derived", policy=PolicySettings(rollback_promise_seconds=30 * 86_400))
    place = derived.location or ""
    read = LineageInput(table_id=source.table_id, location=source.location or "", format="delta", version=0)
    record = LineageRecord(run_id="r1", operation=Operation.REPLACE, user="ana", inputs=(read,))
    world.write(source, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.reader.history[place] = [
        counted(
            version=0,
            committed_at=world.clock.now(),
            operation="CREATE TABLE AS SELECT",
            data_change=True,
            added_files=1,
            lineage=record,
            lineage_verdict=RecordVerdict.COMPLETE,
        )
    ]
    for _ in range(2):
        assert world.sweep().queued == 0
        governed = world.cycle.parts.cache.governed()[source.table_id]
        assert governed.policy.vacuum_retention_seconds == 30 * 86_400
        assert governed.policy.held_by == "db.derived is derived from it and promises 30 days"
        world.restart()
    world.store.edit(TABLES, lambda _: [replace(derived, policy=PolicySettings())], because="test")
    assert world.sweep().queued == 1


def test_what_a_session_recorded_of_a_commit_does_not_hide_the_commit(world: World) -> None:
    row = world.add("db.a")
    world.reader.history[row.location or ""] = [
        counted(version=0, committed_at=world.clock.now(), operation="WRITE", data_change=True)
    ]
    seen = LineageRow(
        output_id=row.table_id,
        output_version=0,
        input_id="id-db.b",
        input_version=3,
        operation="append",
        confidence=Confidence.PLAN,
        recorded_at=world.clock.now(),
    )
    world.store.append(LINEAGE, [seen], because="test")
    world.sweep()
    found = {one.confidence for one in world.store.rows(LINEAGE).find(output_id=row.table_id)}
    assert found == {Confidence.PLAN, Confidence.HINT}
