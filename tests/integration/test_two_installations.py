"""Two homes on one real Delta table: each sees the other's commits, by delta-rs alone."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.formats.port import Head, Observation
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.model.rows import Finding, Outcome
from lakewarden.catalog.system.port import HEALTH, TABLES
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.workers.pool import worker_config
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.engines.registry import InstalledTools
from lakewarden.jobs.runs.installation import installation_of
from lakewarden.jobs.runs.worker_config import read_config
from lakewarden.jobs.worker.runner import Runner
from support.builders.runs import request_of
from support.fakes.clock import one_clock
from support.processes.commands import command
from support.processes.daemon_process import FakeWorkerServices
from support.processes.house import House
from support.servers.metastores import without_system_tables


@pytest.fixture
def houses(tmp_path: Path) -> Iterator[tuple[House, House]]:
    both = House(tmp_path / "one"), House(tmp_path / "two")
    yield both
    for house in both:
        house.end()


def maintained_by(house: House, name: str) -> int:
    """A run of this home's on the table, by the product's own worker and engine. Returns the version it made."""
    services = house.services
    row = services.registry.resolve(name)
    config = read_config(worker_config(services.settings, "worker"))
    seen = services.readers[0].observe(row.location or "")
    assert isinstance(seen, Observation)
    days = f"interval {3_000 + seen.version} days"
    action = SetProperties(requires=Head(seen.version), properties=(("delta.logRetentionDuration", days),))
    request = request_of(
        row.location or "", action, run_id=f"run-{seen.version}", table_id=row.table_id, name=row.name
    )
    services.queue.enqueue([request])
    done = Runner(
        worker="worker",
        queue=services.queue,
        tools=InstalledTools(config),
        metastore=None,
        clock=services.clock,
        storage=services.storage,
        lease=timedelta(minutes=1),
        heartbeat=timedelta(seconds=10),
        longest_run=timedelta(hours=1),
        clocks=one_clock(services.clock),
        installation=installation_of(config),
    ).run_next()
    assert done is not None and done.result.outcome is Outcome.SUCCEEDED, done
    assert done.result.committed_version is not None
    return done.result.committed_version


def noticed(house: House) -> tuple[Finding, ...]:
    """What a sweep of this home's has on record about others."""
    with house.daemon("once") as daemon:
        assert daemon.wait(120) == 0, house.log()
    rows = house.services.store.rows(HEALTH).all()
    return tuple(one for row in rows for one in row.findings if one.check == "another_installation")


def test_each_of_two_homes_that_manage_one_table_notices_the_other(houses: tuple[House, House]) -> None:
    one, two = houses
    first, second = (house.services.store.installation() for house in houses)
    assert first != second
    table = one.table("t")
    version = maintained_by(one, "db.t")
    told = (
        f"Another installation of lakewarden ({first}) looks after the table, too: "
        f"it committed version {version}."
    )

    registered = command(two.home, "tables", "register", table, "--name", "db.t")
    assert registered.returncode == 0 and told in registered.stderr, registered.stderr
    listed = command(two.home, "tables", "list", "--finding", "another_installation", "-o", "json")
    assert told in listed.stdout
    drop = ("tables", "drop", "db.t", "--purge", "--at-version", str(version), "--yes")
    asked = command(two.home, *drop)
    assert asked.returncode == 4 and f"--other-installations {first}" in asked.stderr, asked.stderr
    why = command(two.home, "why", "db.t")
    assert why.returncode == 0 and told in why.stderr
    assert noticed(one) == (), "the second home has written nothing yet"

    answer = maintained_by(two, "db.t")
    [found] = noticed(one)
    assert second in found.message and f"version {answer}" in found.message
    row = one.services.registry.resolve("db.t")
    health = one.services.store.rows(HEALTH).get(row.table_id)
    assert noticed(one) == (found,)
    assert one.services.store.rows(HEALTH).get(row.table_id) == health, (
        "it is written once, not by every sweep"
    )


def test_a_list_of_tables_says_which_of_them_others_look_after(houses: tuple[House, House]) -> None:
    one, two = houses
    mine, theirs = two.folder / "lake" / "mine", one.table("t")
    two.append(mine)
    maintained_by(one, "db.t")
    done = command(two.home, "tables", "register", str(mine), theirs)
    assert done.returncode == 0
    assert theirs in done.stdout and one.services.store.installation() in done.stdout
    assert str(mine) not in done.stdout, "nobody has to look at it"


def test_a_copy_of_a_home_is_the_same_installation(houses: tuple[House, House], tmp_path: Path) -> None:
    one, _ = houses
    one.table("t")
    shutil.copytree(one.home, tmp_path / "copy")
    copy = FakeWorkerServices(load_settings(home=tmp_path / "copy", environment={}))
    assert copy.store.rows(TABLES).version == one.services.store.rows(TABLES).version
    assert copy.store.installation() == one.services.store.installation()
    copy.store.create([])
    assert copy.store.installation() == one.services.store.installation(), "as an upgrade leaves it"


@pytest.mark.long
@pytest.mark.metastore
def test_the_system_tables_of_two_homes_stand_side_by_side_in_one_metastore(
    tmp_path: Path, metastore: EmbeddedMetastore
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    settings = {"LAKEWARDEN_METASTORE_URI": without_system_tables(metastore.uri)}
    store = HiveMetastore(metastore.uri)
    try:
        assert command(one, "init", settings=settings).returncode == 0
        before = store.get("lakewarden", "tables")
        refused = command(two, "init", settings=settings)
        assert refused.returncode == 5 and "system.database" in refused.stderr, refused.stderr
        assert not (two / "system").exists() and store.get("lakewarden", "tables") == before

        apart = {**settings, "LAKEWARDEN_SYSTEM_DATABASE": "two_homes"}
        made = command(two, "init", settings=apart)
        assert made.returncode == 0, made.stderr
        assert store.get("lakewarden", "tables") == before
        assert len(store.tables("two_homes")) == 7
        found = command(two, "doctor", "-o", "json", settings=settings)
        assert "of another installation of lakewarden" in found.stdout
        assert "of another installation" not in command(two, "doctor", "-o", "json", settings=apart).stdout
    finally:
        without_system_tables(metastore.uri)
        store.close()
