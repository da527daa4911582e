"""A table looked at alone is the table that the daemon sees among all others."""

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE
from lakewarden.catalog.model.rows import (
    Action,
    Confidence,
    Dependency,
    OnRollback,
    Outcome,
    PolicySettings,
    RollbackState,
    RollbackStep,
    RowKind,
    RunRow,
    TableRow,
    TableState,
)
from lakewarden.catalog.model.unread_lineage import LINEAGE_UNREAD
from lakewarden.catalog.policy.original_properties import leaving
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import HEALTH, LINEAGE, ROLLBACKS, RUNS, TABLES
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.one_table import world_of
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.actions.world import World
from lakewarden.jobs.rollback.journal.stored_plan import StoredPlan, encode_plan
from lakewarden.jobs.rollback.plan.model import Step, TablePlan
from support.builders.rollbacks import NO_PLAN
from support.builders.system_samples import NOW, sample
from support.fakes.clock import ManualClock

SIZE = 30


@pytest.fixture
def store(tmp_path: Path) -> DeltaSystemStore:
    made = DeltaSystemStore(canonical(str(tmp_path / "system")), StorageOptions(), actor="tests")
    made.create(system_rows(made, now=NOW, actor="tests"))
    return made


def chosen_row(number: int, dice: random.Random) -> TableRow:
    state = dice.choice([TableState.ACTIVE] * 5 + [TableState.DROPPED, TableState.PURGING, TableState.PURGED])
    promise = dice.choice([None, 86_400, 864_000])
    upstream = f"table-{dice.randrange(10, 10 + SIZE):06d}"
    made: TableRow = sample(TABLES, number)
    row = replace(
        made,
        state=state,
        policy=PolicySettings(rollback_promise_seconds=promise),
        properties={
            **made.properties,
            **({} if dice.random() < 0.2 else {READS_ELSEWHERE: ""}),
            **({LINEAGE_UNREAD: NOW.isoformat()} if number % 5 == 0 else {}),
        },
        dependencies=(Dependency(upstream=upstream),) if dice.random() < 0.4 else (),
    )
    return leaving(row, (), NOW.isoformat()) if state is TableState.DROPPED and dice.random() < 0.5 else row


def chosen_run(number: int, dice: random.Random) -> RunRow:
    outcome = dice.choice([Outcome.SUCCEEDED, Outcome.FAILED, Outcome.SKIPPED, Outcome.CANCELLED])
    finished = NOW - timedelta(days=dice.randrange(90), seconds=number)
    made: RunRow = sample(RUNS, number)
    return replace(
        made,
        table_id=f"table-{dice.randrange(10, 10 + SIZE):06d}",
        action=dice.choice([Action.VACUUM, Action.COMPACT]),
        outcome=outcome,
        queued_at=finished,
        started_at=finished,
        finished_at=finished,
    )


def fill(store: DeltaSystemStore, dice: random.Random) -> None:
    rows = [chosen_row(number, dice) for number in range(10, 10 + SIZE)]
    scope = replace(sample(TABLES, 99), kind=RowKind.SCOPE, name="db1.*", location=None, dependencies=())
    store.edit(TABLES, lambda _: [*rows, scope], because="fleet")
    seen = [sample(HEALTH, number) for number in range(10, 10 + SIZE) if dice.random() < 0.8]
    store.edit(HEALTH, lambda _: seen, because="sweep")
    store.append(RUNS, [chosen_run(number, dice) for number in range(60)], because="runs")
    ids = [one.table_id for one in rows]
    reads = [
        replace(
            sample(LINEAGE, number),
            output_id=dice.choice(ids),
            output_version=number,
            input_id=dice.choice([*ids, *(one.location or "" for one in rows)]),
            confidence=Confidence.COMMITTED,
        )
        for number in range(SIZE)
    ]
    store.append(LINEAGE, reads, because="lineage")
    held = dice.choice(ids)
    steps = [
        replace(sample(ROLLBACKS, 0), table_id=held, kind=RollbackStep.PLAN, state=RollbackState.INTENT),
        replace(sample(ROLLBACKS, 2), table_id=held, state=RollbackState.DONE),
    ]
    left = TablePlan(
        table_id=dice.choice(ids),
        name="db.left",
        location=None,
        from_version=9,
        to_version=7,
        step=Step.RESTORE,
        trigger=OnRollback.PLAN,
        waits=True,
        tainted=(8,),
    )
    stored = StoredPlan(plan=replace(NO_PLAN, tables=(left,)))
    done = replace(
        sample(ROLLBACKS, 1),
        rollback_id="done",
        table_id="elsewhere",
        kind=RollbackStep.PLAN,
        state=RollbackState.DONE,
        payload=encode_plan(stored),
    )
    store.append(ROLLBACKS, [*steps, done], because="rollback")


@pytest.mark.few(3)
@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(6))
def test_it_is_seen_as_among_the_fleet(store: DeltaSystemStore, seed: int) -> None:
    fill(store, random.Random(seed))
    clock, cache = ManualClock(NOW), FleetCache(store, ManualClock(NOW))
    cache.refresh()
    fleet = cache.world((), Budget(), has_metastore=True)
    for row in store.rows(TABLES).all():
        mine = tuple(view for view in fleet.tables if view.table_id == row.table_id)
        alone = world_of(store, clock, row.table_id, has_metastore=True)
        beside = World(
            locations=fleet.locations,
            unlooked=fleet.unlooked,
            unread=fleet.unread,
            budget=Budget(),
            has_metastore=True,
            tables=(),
        )
        assert alone == replace(beside, tables=mine), row
    assert fleet.unlooked, "every table was looked at"
    assert fleet.unread, "every log was read"
    assert any(one.governed.policy.downstream for one in fleet.tables), "no promise was inherited"
    assert any(one.rollback for one in fleet.tables), "nothing is held"
    assert any(one.taken_back for one in fleet.tables), "nothing was taken back"
    assert any(one.past for one in fleet.tables), "nothing was ever done"


def test_a_table_that_nobody_knows_has_no_view(store: DeltaSystemStore) -> None:
    assert world_of(store, ManualClock(NOW), "nowhere").tables == ()
