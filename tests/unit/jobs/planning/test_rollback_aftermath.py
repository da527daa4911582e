"""After a rollback: its tables are hinted, and the planner brings metastore and statistics up to date."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.model.rows import Action, Outcome, RunRow, Source
from lakewarden.catalog.observation.health import health_of
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.port import HEALTH, RUNS, TABLES
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.inspector import Inspection
from lakewarden.daemon.fleet.one_table import world_of
from lakewarden.jobs.actions.answers import Due
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.planning.planner import judge
from lakewarden.jobs.rollback.execute.run import JournaledRollbacks
from support.builders.entries import enlist
from support.builders.rollbacks import Lake
from support.builders.runs import Bench, request_of
from support.fakes.state import FakeInbox


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def lake(tmp_path: Path, bench: Bench) -> Lake:
    """A managed table whose last commit brought a column, known to the metastore, with statistics of that version."""
    lake = Lake(tmp_path)
    for number in (1, 2):
        lake.append("source", number)
    more = pa.table({"id": pa.array([3], pa.int64()), "new": pa.array(["x"])})
    write_deltalake(str(lake.path("source")), more, mode="append", schema_mode="merge")
    lake.manage("source")
    converted = replace(lake.row("source"), source=Source.CONVERT)
    lake.store.edit(TABLES, lambda _: [converted], because="test")
    enlist(
        bench.metastore,
        lake.seen("source"),
        database="db",
        table="source",
        table_id="id-source",
        location=lake.location("source"),
    )
    an_hour_ago = lake.clock.now() - timedelta(hours=1)
    run = RunRow(
        run_id="statistics",
        table_id="id-source",
        name="db.source",
        action=Action.STATISTICS,
        because="a test said so",
        requires_version=2,
        predicted_bytes=lake.seen("source").bytes,
        outcome=Outcome.SUCCEEDED,
        queued_at=an_hour_ago,
        started_at=an_hour_ago,
        finished_at=an_hour_ago,
    )
    lake.store.append(RUNS, [run], because="test")
    return lake


def look(lake: Lake, bench: Bench) -> FleetCache:
    """The table is looked at, as a sweep would, and remembered."""
    inspection = Inspection(
        clock=lake.clock,
        store=lake.store,
        readers=(lake.reader,),
        metastore=lambda: bench.metastore,
        storage=lambda _: StorageOptions(),
    )
    cache = FleetCache(lake.store, lake.clock)
    cache.refresh()
    governed, seen, now = cache.governed()["id-source"], lake.seen("source"), lake.clock.now()
    findings = inspection.changed(governed, seen, None, now)
    health = health_of(governed.row, governed.policy, seen, findings, now=now)
    cache.wrote_health(lake.store.edit(HEALTH, lambda _: [health], because="test"))
    return cache


def reasons(lake: Lake, bench: Bench) -> dict[Action, str]:
    """What the planner finds due, and why."""
    world = look(lake, bench).world((), Budget(), has_metastore=True)
    view = next(one for one in world.tables if one.table_id == "id-source")
    assert world_of(lake.store, lake.clock, "id-source").tables == (view,), "looked at alone, it is the same"
    now = lake.clock.now() + timedelta(days=1)
    answers = (judge(view, action, world, now) for action in (Action.SYNC, Action.STATISTICS))
    return {Action(answer.action.kind): answer.because for answer in answers if isinstance(answer, Due)}


@pytest.mark.heavy
def test_metastore_and_statistics_follow_a_rollback_as_queued_work(lake: Lake, bench: Bench) -> None:
    assert reasons(lake, bench) == {}
    inbox = FakeInbox()
    lake.begin(lake.step("source", 1))
    journal = JournaledRollbacks(
        journal=lake.journal,
        tools=bench.tools,
        storage=lambda _: StorageOptions(),
        undo_for=timedelta(days=7),
        hints=inbox,
    )
    run = request_of(lake.location("source"), RollBack(rollback_id="r1"), table_id="id-source")
    bench.queue.enqueue([run])
    finished = bench.runner(rollbacks=journal).run_next()
    assert finished is not None and finished.result.outcome is Outcome.SUCCEEDED
    assert [hint.subject for hint in inbox.claim(9)] == [lake.location("source")]
    due = reasons(lake, bench)
    assert "new" in due[Action.SYNC], due
    assert due[Action.STATISTICS] == "a rollback took version 2 back, which they were made of"


def test_a_metastore_that_is_down_keeps_neither_the_rollback_nor_the_sync_from_coming(
    lake: Lake, bench: Bench
) -> None:
    bench.metastore.down = True
    lake.begin(lake.step("source", 1))
    lake.go_on()
    assert lake.rows("source") == [1, 2]
    bench.metastore.down = False
    assert Action.SYNC in reasons(lake, bench)
