"""Going on with older system tables that lie where newer ones were: settled, paused, fenced, wherever it is killed."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import FencedError
from lakewarden.catalog.model.pending_purge import PURGE_AFTER, PURGE_HEAD, PURGE_VERSION
from lakewarden.catalog.model.rows import RollbackState, TableState
from lakewarden.catalog.model.unread_lineage import LINEAGE_UNREAD
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import AUDIT, ROLLBACKS, TABLES
from lakewarden.catalog.system.recovery.damage import Damage, Problem
from lakewarden.catalog.system.recovery.repair import repair
from lakewarden.catalog.system.recovery.repair_plan import TakeAsItIs, plan_repair
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.catalog.validation.system_history import SystemHistory
from support.builders.system_samples import NOW, sample, table_row
from support.crashes.killed import Killed
from support.fakes.state import FakeSystemHeads

pytestmark = pytest.mark.heavy

OLDER = (TABLES, ROLLBACKS, AUDIT)
NOTE = Note(actor="tests", because="repair")


class Home:
    """System tables as they were before a purge was called off and a rollback ended; a database that has seen both."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.aside, self.heads = folder / "system", folder / "aside", FakeSystemHeads()
        store = self.opened()
        store.create(system_rows(store, now=NOW, actor="tests"))
        marks = {
            PURGE_AFTER: (NOW - timedelta(days=1)).isoformat(),
            PURGE_VERSION: "3",
            PURGE_HEAD: "uuid@3@0",
        }
        self.waiting = replace(table_row(40), state=TableState.PURGING, properties=marks)
        self.begun = replace(sample(ROLLBACKS, 1), step=0, state=RollbackState.INTENT)
        store.edit(TABLES, lambda _: [self.waiting], because="purge")
        store.edit(ROLLBACKS, lambda _: [self.begun], because="rollback")
        shutil.copytree(self.folder, self.aside)
        called_off = replace(self.waiting, state=TableState.ACTIVE, properties={})
        store.edit(TABLES, lambda _: [called_off], because="undrop")
        done = replace(self.begun, state=RollbackState.DONE)
        store.edit(ROLLBACKS, lambda _: [done], because="rollback")
        self.frozen = store.raise_fence("a leader that fell asleep", at_least=0)
        self.history().follow()
        self.seen = self.heads.get()
        self.put_back()

    def opened(self) -> DeltaSystemStore:
        return DeltaSystemStore(canonical(str(self.folder)), StorageOptions(), actor="tests")

    def history(self) -> SystemHistory:
        return SystemHistory(self.opened(), self.heads)

    def put_back(self) -> None:
        """Somebody puts older tables in the place of newer ones, which the database has seen."""
        for table in OLDER:
            shutil.rmtree(self.folder / table.name)
            shutil.copytree(self.aside / table.name, self.folder / table.name)
        self.heads = FakeSystemHeads()
        self.heads.put(self.seen)

    def repaired(self) -> list[type]:
        plan = plan_repair(tuple(self.history().problems()), None)
        repair(self.opened(), plan, source=None, consent=True, now=NOW, note=NOTE)
        self.history().accept()
        return [type(step) for step in plan.steps]

    def require_settled(self) -> None:
        rows = self.opened().rows(TABLES)
        back = rows.get(self.waiting.table_id)
        assert back is not None and back.state is TableState.DROPPED
        assert back.properties == {LINEAGE_UNREAD: NOW.isoformat()}
        (everything,) = rows.find(name="*")
        assert (everything.paused or "").startswith("an older lakewarden.")
        (rollback,) = self.opened().rows(ROLLBACKS).all()
        assert rollback.state is RollbackState.CONFLICT
        self.history().require()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_nothing_of_then_acts_and_a_leader_of_before_is_refused(home: Home) -> None:
    assert [one.table for one in home.history().problems()] == list(OLDER)
    assert home.repaired() == [TakeAsItIs] * len(OLDER)
    home.require_settled()
    for table in (TABLES, AUDIT):
        with pytest.raises(FencedError):
            home.opened().edit(table, _nothing, fence=home.frozen, because="awake")
    assert home.opened().raise_fence("new", at_least=0).token > home.frozen.token


def _nothing(rows: Any) -> Iterator[Any]:
    return iter(())


def test_everything_is_paused_whichever_table_is_older(home: Home) -> None:
    shutil.rmtree(home.folder)
    store = home.opened()
    store.create(system_rows(store, now=NOW, actor="tests"))
    problem = Problem(table=AUDIT, damage=Damage.OLDER, message="It is at version 1.")
    repair(store, plan_repair([problem], None), source=None, consent=True, now=NOW, note=NOTE)
    assert store.rows(TABLES).find(name="*")[0].paused is not None


@pytest.mark.long
def test_a_repair_that_is_killed_anywhere_is_ended_by_the_next_one(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = 0
    while _killed_at(home, kills, monkeypatch):
        assert TakeAsItIs in home.repaired(), "until it is decided, it is not decided"
        home.require_settled()
        home.put_back()
        kills += 1
    assert kills > 2 * len(OLDER)


def _killed_at(home: Home, number: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Repair until the failpoint of this number is reached. False: it came to its end."""
    left = number

    def listener(reached: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "listener", listener)
        try:
            home.repaired()
        except Killed:
            return True
    return False
