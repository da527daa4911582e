"""The cycle on fakes: what it writes, and what it does not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import (
    Source,
    TableState,
)
from lakewarden.catalog.system.port import HEALTH, TABLES, SystemTableName
from lakewarden.daemon.telemetry.webhook import EventKind
from support.builders.daemons import World
from support.builders.tables import observation


def test_ten_idle_sweeps_make_no_commit(world: World) -> None:
    world.add("db.a")
    world.settle()
    before = len(world.store.commits)
    reports = [world.sweep() for _ in range(10)]
    assert world.store.commits[before:] == []
    assert all(report.idle for report in reports)
    assert reports[-1].sentence().startswith("Looked at 8 tables, none changed; nothing due; took ")


def test_a_restart_makes_no_commit_either(world: World) -> None:
    world.add("db.a")
    world.settle()
    before = len(world.store.commits)
    world.restart()
    world.sweep()
    world.sweep()
    assert world.store.commits[before:] == []


def test_a_row_of_an_older_lakewarden_is_looked_at_by_the_first_sweep_though_nothing_moved(
    world: World,
) -> None:
    row, clone = world.add("db.a"), world.add("db.clone")
    world.settle()
    assert world.row("db.clone").properties == {READS_ELSEWHERE: ""}
    source = world.reader.tables[clone.location or ""]
    assert isinstance(source, Observation)
    world.reader.tables[clone.location or ""] = replace(source, elsewhere=(row.location or "",))
    old = replace(world.row("db.clone"), properties={})
    world.store.edit(TABLES, lambda _: [old], because="an older lakewarden wrote it")
    world.restart()
    world.sweep()
    assert world.row("db.clone").properties == {READS_ELSEWHERE: row.location}
    reads = world.reader.reads
    assert world.sweep().idle and world.reader.reads == reads


def test_one_whose_log_cannot_be_read_counts_as_looked_at(world: World) -> None:
    row = world.add("db.a")
    world.reader.tables[row.location or ""] = LogProblem(check="log_readable", message="Commit 1 is garbage.")
    world.sweep()
    assert world.row("db.a").properties == {READS_ELSEWHERE: ""}


def test_a_moved_table_is_read_once_and_written_in_one_commit_per_table(world: World) -> None:
    rows = [world.add(f"db.t{number}") for number in range(9)]
    world.settle()
    reads, before = world.reader.reads, len(world.store.commits)
    for row in rows:
        world.write(row, files=11)
    report = world.sweep()
    assert (report.changed, world.reader.reads - reads) == (9, 9)
    assert [name for name, _ in world.store.commits[before:]] == [SystemTableName.HEALTH]
    assert {world.health(row.name).files for row in rows} == {11}


def test_a_broken_table_is_quarantined_told_and_released_when_repaired(world: World) -> None:
    row, other = world.add("db.a"), world.add("db.b")
    world.settle()
    good = world.reader.tables[row.location or ""]
    assert isinstance(good, Observation)
    world.reader.tables[row.location or ""] = LogProblem(check="log_readable", message="Commit 1 is garbage.")
    world.sweep()
    assert world.row("db.a").state is TableState.QUARANTINED
    assert [(one.kind, one.name) for one in world.told.events] == [(EventKind.QUARANTINED, "db.a")]
    reads = world.reader.reads
    world.sweep()
    assert world.reader.reads == reads, "a broken log is not read again by every sweep"
    world.reader.tables[row.location or ""] = replace(good, version=2)
    world.sweep()
    assert world.row("db.a").state is TableState.ACTIVE
    assert world.row(other.name).state is TableState.ACTIVE
    assert len(world.told.events) == 1


@pytest.mark.parametrize(
    ("dropped", "state"),
    [
        pytest.param(False, TableState.QUARANTINED, id="lost"),
        pytest.param(True, TableState.DROPPED, id="dropped by its users"),
    ],
)
def test_a_table_that_vanishes(world: World, dropped: bool, state: TableState) -> None:
    row = world.add("db.a")
    world.settle()
    if dropped:
        world.inspector.dropped_names.add("db.a")
    del world.reader.tables[row.location or ""]
    world.sweep()
    assert world.row("db.a").state is state
    kind = EventKind.DROPPED if dropped else EventKind.QUARANTINED
    assert [(one.kind, one.name) for one in world.told.events] == [(kind, "db.a")]
    before = len(world.store.commits)
    world.sweep()
    assert world.store.commits[before:] == []
    assert len(world.told.events) == 1


def test_a_table_that_its_users_drop_and_make_again_keeps_its_row(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    row = world.add("db.a")
    world.settle()
    del world.reader.tables[row.location or ""]
    world.inspector.dropped_names.add("db.a")
    world.sweep()
    assert world.row("db.a").state is TableState.DROPPED
    world.reader.tables[row.location or ""] = replace(
        observation(row.location or "", world.clock.now()), format_id="anew"
    )
    report = world.sweep()
    back = world.row("db.a")
    assert (back.table_id, back.state, back.format_ids) == (
        row.table_id, TableState.ACTIVE, (*row.format_ids, "anew"),
    )  # fmt: skip
    assert report.adopted == 1 and "came back (table=db.a" in caplog.text


def test_daily_checks_come_once_a_day(world: World) -> None:
    world.add("db.a")
    world.settle()
    assert world.inspector.daily_looks.count("db.a") == 1
    world.clock.advance(timedelta(days=1))
    world.sweep()
    world.sweep()
    assert world.inspector.daily_looks.count("db.a") == 2


def test_the_system_tables_are_rows_with_health(world: World) -> None:
    world.settle()
    rows = [row for row in world.store.rows(TABLES).all() if row.source is Source.SELF]
    assert min(rows, key=lambda row: row.row).name == "lakewarden.tables" and len(rows) == 7
    assert {row.table_id for row in world.store.rows(HEALTH).all()} == {row.table_id for row in rows}
