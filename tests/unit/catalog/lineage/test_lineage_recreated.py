"""Sweeps over tables that are replaced, dropped and made again:
every version goes on record, each under its own UUID."""

import random
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.lineage.edges import NOTHING
from lakewarden.catalog.model.rows import DELTA, LineageRow, Source, TableRow
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import HEALTH, LINEAGE, TABLES, Fence, R, SystemTable
from lakewarden.daemon.control.sweep_writer import SweepWriter
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.look import OnRecord
from lakewarden.daemon.fleet.observer import Observer
from lakewarden.daemon.telemetry.webhook import Silence
from lakewarden.jobs.rollback.plan.request import RollbackRequest, ToVersion
from lakewarden.jobs.rollback.planning_service import Gatherer
from support.builders.delta_logs import LogWriter, add, remove
from support.builders.tables import FakeInspector
from support.fakes.clock import ManualClock
from support.fakes.system_store import FakeSystemStore


class KilledError(Exception):
    """What nothing handles."""


class MortalStore(FakeSystemStore):
    """A store at `folder` whose process is killed before it records lineage, if somebody says so."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.dies = folder, False

    def location(self, table: SystemTable[Any]) -> str:
        return canonical(str(self.folder / table.name))

    def append(
        self, table: SystemTable[R], rows: Iterable[R], *, fence: Fence | None = None, because: str
    ) -> int:
        if self.dies and table.name == LINEAGE.name:
            raise KilledError
        return super().append(table, rows, fence=fence, because=because)


@dataclass
class Site:
    """One managed table, and the truth about it: by version of each log that ever was there, its UUID."""

    folder: Path
    clock: ManualClock = field(default_factory=lambda: ManualClock(moment=datetime(2026, 6, 1, tzinfo=UTC)))

    def __post_init__(self) -> None:
        self.store = MortalStore(self.folder / "system")
        self.store.create(system_rows(self.store, now=self.clock.now(), actor="root"))
        self.fence = self.store.raise_fence("one", at_least=1)
        self.truth: set[tuple[int, str]] = set()
        self.made: dict[str, str] = {}
        self.lives, self.files = 0, 0
        self.recreate()
        row = TableRow(
            row=50,
            table_id="t",
            name="db.t",
            owner="ana",
            source=Source.REGISTER,
            format=DELTA,
            location=canonical(str(self.log.root)),
            registered_at=self.clock.now(),
            registered_by="ana",
            updated_at=self.clock.now(),
            updated_by="ana",
        )
        self.store.edit(TABLES, lambda _: [row], because="test")
        self.restart()

    def restart(self) -> None:
        """A daemon that remembers nothing."""
        self.reader = DeltaReader()
        self.cache = FleetCache(self.store, self.clock)
        self.observer = Observer(
            readers=(self.reader,),
            inspector=FakeInspector(),
            store=self.store,
            clock=self.clock,
            checks_every=timedelta(days=1),
        )

    def recreate(self) -> None:
        """DROP TABLE, CREATE TABLE: another log at the same place."""
        shutil.rmtree(self.folder / "t", ignore_errors=True)
        self.lives += 1
        at = self.clock.now() + timedelta(minutes=self.lives)
        self.log = LogWriter(root=self.folder / "t", now=at)
        self.log.table_id = f"life-{self.lives}"
        self.log.create()
        self._happened()

    def append(self) -> None:
        self.files += 1
        self.log.commit(add(f"f{self.files}"), operationParameters={"mode": "Append"})
        self._happened()

    def replace(self) -> None:
        """CREATE OR REPLACE TABLE: the log goes on under another UUID."""
        self.files += 1
        before, self.log.table_id = self.log.table_id, f"{self.log.table_id}+{self.files}"
        gone = [remove(path) for path, _ in self.log.live]
        self.log.commit(*gone, self.log.metadata(), operation="CREATE OR REPLACE TABLE")
        self.made[self.log.table_id] = before
        self._happened()

    def _happened(self) -> None:
        self.truth.add((self.log.head, self.log.table_id))

    def register_again(self) -> None:
        """A command that looks at the table and enters what it saw of its health, as `tables register` does."""
        before = self.cache.health("t")
        assert before is not None
        seen = replace(before, version=self.log.head, observed_at=self.clock.now())
        self.store.edit(HEALTH, lambda _: [seen], because="register")

    def sweep(self, *, must: bool = True) -> None:
        self.cache.refresh()
        governed = self.cache.governed()["t"]
        known = OnRecord(schema=self.cache.has_schema("t"), lineage=self.cache.lineage_of("t"))
        before = self.cache.health("t")
        look = self.observer.look(governed, before, must=must, checks=False, on_record=known)
        assert look is not None
        writer = SweepWriter(store=self.store, cache=self.cache, notifier=Silence(), clock=self.clock)
        writer.write([look], (), self.fence)

    def killed_while_sweeping(self) -> None:
        self.store.dies = True
        try:
            self.sweep()
        except KilledError:
            self.restart()
        self.store.dies = False

    def rows(self) -> tuple[LineageRow, ...]:
        return self.store.rows(LINEAGE).find(output_id="t")

    def recorded(self) -> set[tuple[int, str | None]]:
        return {(one.output_version, one.output_format_id) for one in self.rows()}

    def planned(self) -> set[tuple[int, str | None]]:
        """The versions that a plan knows of."""
        gatherer = Gatherer(
            store=self.store, readers=[self.reader], storage=lambda _: StorageOptions(), clock=self.clock
        )
        found = gatherer.gather(RollbackRequest(seeds=(ToVersion(table_id="t", version=0),)))
        columns = (found.lineage[name].to_pylist() for name in ("output_version", "output_format_id"))
        return set(zip(*columns, strict=True))

    def here(self) -> set[tuple[int, str]]:
        """Of the log that is there."""
        life = f"life-{self.lives}"
        return {(version, uuid) for version, uuid in self.truth if uuid.partition("+")[0] == life}

    def replacements(self) -> dict[str, str]:
        """What rows say was replaced: by UUID, the one before."""
        return {
            one.output_format_id or "": one.input_format_id
            for one in self.rows()
            if one.input_id == NOTHING and one.input_format_id is not None
        }


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_table_made_again_up_to_the_same_version_goes_on_record(site: Site) -> None:
    site.append()
    site.sweep()
    site.recreate()
    site.append()
    site.sweep()
    assert site.recorded() == site.truth == {(0, "life-1"), (1, "life-1"), (0, "life-2"), (1, "life-2")}


def test_a_daemon_that_started_since_notices_a_table_made_again_up_to_the_same_version(site: Site) -> None:
    site.append()
    site.sweep()
    site.restart()
    site.recreate()
    site.append()
    site.sweep(must=False)
    assert site.recorded() == site.truth
    row, health = site.store.rows(TABLES).get("t"), site.store.rows(HEALTH).get("t")
    assert row is not None and health is not None and health.head is not None
    assert (row.format_ids[-1], health.head.partition("@")[0]) == ("life-2", "life-2")


def test_a_plan_knows_a_table_made_again_up_to_the_same_version_that_no_sweep_saw(site: Site) -> None:
    site.append()
    site.sweep()
    site.restart()
    site.recreate()
    site.append()
    assert site.planned() == site.truth


def test_versions_that_a_command_has_seen_first_go_on_record(site: Site) -> None:
    site.append()
    site.sweep()
    site.recreate()
    site.append()
    site.append()
    site.register_again()
    site.sweep(must=False)
    assert site.recorded() == site.truth


def test_a_table_made_again_goes_on_record_though_its_row_was_written_before_a_crash(site: Site) -> None:
    site.append()
    site.sweep()
    site.recreate()
    site.append()
    site.append()
    site.killed_while_sweeping()
    site.sweep()
    assert site.recorded() == site.truth


def test_a_replacement_goes_on_record_with_what_it_replaced_whatever_is_killed(site: Site) -> None:
    site.append()
    site.sweep()
    site.replace()
    site.killed_while_sweeping()
    site.append()
    site.sweep()
    assert site.recorded() == site.truth and site.replacements() == site.made


def test_a_plan_knows_what_a_table_made_again_has_read_although_no_sweep_recorded_it(site: Site) -> None:
    site.append()
    site.sweep()
    site.recreate()
    site.append()
    site.killed_while_sweeping()
    assert site.planned() == site.truth


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_between_sweeps_all_of_the_log_is_on_record_under_its_uuids(
    site: Site, seed: int
) -> None:
    chance = random.Random(seed)
    deeds = (site.append, site.append, site.append, site.replace, site.recreate, site.sweep, site.sweep)
    for _ in range(25):
        chance.choice((*deeds, site.killed_while_sweeping, site.restart))()
    site.sweep()
    assert site.here() <= site.recorded() <= site.truth
    assert {uuid for _, uuid in site.here() if "+" in uuid} <= site.replacements().keys()
    assert site.replacements().items() <= site.made.items()
    commits = len(site.store.commits)
    site.sweep()
    assert len(site.store.commits) == commits, "a sweep that finds nothing new writes nothing"
