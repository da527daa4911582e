"""A rollback goes on by itself whatever became of the table that it is about."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.model.rows import Action, TableRow, TableState
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.model.rows import RollbackStep as Kind
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.one_table import world_of
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.planning.planner import due_for
from support.builders.rollbacks import Lake

pytestmark = pytest.mark.heavy


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """`source` and `derived`, both managed."""
    lake = Lake(tmp_path)
    for name in ("source", "derived"):
        for number in (1, 2):
            lake.append(name, number)
        lake.manage(name)
    return lake


def due(lake: Lake) -> list[tuple[str, object]]:
    """What a daemon that has just started queues of rollbacks, which is what a command says of the tables alone."""
    cache = FleetCache(lake.store, lake.clock)
    cache.refresh()
    now = lake.clock.now()
    worlds = [world_of(lake.store, lake.clock, f"id-{name}") for name in ("source", "derived")]
    alone = [run for world in worlds for run in due_for(world, Action.ROLLBACK, now)]
    found = due_for(cache.world((), Budget(), has_metastore=False), Action.ROLLBACK, now)
    assert [*found] == alone
    return [(run.name, run.due.action) for run in found]


def changed(lake: Lake, name: str, **to: object) -> TableRow:
    row = replace(lake.row(name), **to)  # type: ignore[arg-type]  # by name
    lake.store.edit(TABLES, lambda _: [row], because="test")
    return row


@pytest.mark.parametrize("kind", [Kind.DROP, Kind.QUARANTINE])
def test_a_rollback_that_sets_its_own_table_aside_goes_on_with_the_others(lake: Lake, kind: Kind) -> None:
    lake.begin(lake.aside("source", kind), lake.step("derived", 0, wave=1))

    class KilledError(Exception):
        """The worker was killed here."""

    calls = iter(range(100))

    def killed_before_the_second_wave() -> None:
        if next(calls) == 4:  # two verifications, then the first step and its permit
            raise KilledError

    with pytest.raises(KilledError):
        lake.go_on(still_ours=killed_before_the_second_wave)
    assert lake.row("source").state is not TableState.ACTIVE
    assert due(lake) == [("db.source", RollBack(rollback_id="r1"))]
    assert lake.go_on().head.state is State.DONE
    assert due(lake) == []


@pytest.mark.parametrize(
    "state", [one for one in TableState if one is not TableState.CONVERTING], ids=lambda one: one.value
)
def test_whoever_took_the_table_away_the_others_are_not_left_half_way(lake: Lake, state: TableState) -> None:
    lake.begin(lake.step("source", 0), lake.step("derived", 0, wave=1))
    changed(lake, "source", state=state, state_reason="its owner said so")
    assert due(lake) == [("db.source", RollBack(rollback_id="r1"))]


def test_a_table_that_is_gone_and_leads_nothing_is_not_planned_for(lake: Lake) -> None:
    lake.begin(lake.step("source", 0), lake.step("derived", 0, wave=1))
    changed(lake, "derived", state=TableState.DROPPED)
    cache = FleetCache(lake.store, lake.clock)
    cache.refresh()
    views = cache.world((), Budget(), has_metastore=False).tables
    assert {view.name for view in views} >= {"db.source"} and "db.derived" not in {
        view.name for view in views
    }
