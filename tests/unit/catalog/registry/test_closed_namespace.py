"""The namespace `lakewarden` belongs to the system tables:
no other table gets a name in it, and nobody sets their policy."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakewarden.catalog.errors import LakewardenError, RefusedError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.model.rows import Finding, Source, TableRow
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.registry.convert import WantedConversion, begin_conversion, foreseen_conversion
from lakewarden.catalog.registry.governance import set_pause, set_policy
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.removal import drop, rename
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.sql import execute
from lakewarden.jobs.sql.parser import parse
from support.builders.callers import actor
from support.builders.runs import delta_table, parquet_file
from support.builders.tables import FakeReader, observation
from support.fakes.clock import ManualClock
from support.fakes.metastore import FakeMetastore
from support.fakes.system_store import FakeSystemStore

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ROOT = actor("root", admin=True)
CLOSED = "The namespace lakewarden is closed"


def inspect(row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem) -> tuple[Finding, ...]:
    return ()


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def metastore() -> FakeMetastore:
    return FakeMetastore()


@pytest.fixture
def registry(reader: FakeReader, metastore: FakeMetastore) -> Registry:
    store = FakeSystemStore()
    store.create(system_rows(store, now=NOW, actor="root"))
    return Registry(
        store=store, readers=(reader,), metastore=metastore, clock=ManualClock(moment=NOW), inspect=inspect,
        storage=lambda _: StorageOptions(),
    )  # fmt: skip


def known(reader: FakeReader, path: Path) -> str:
    path.mkdir(parents=True)
    location = canonical(str(path))
    reader.tables[location] = observation(location, NOW)
    return location


def names(registry: Registry) -> set[str]:
    return {row.name for row in registry.store.rows(TABLES).all() if row.source is not Source.SELF}


@pytest.mark.parametrize(
    "name", ["lakewarden.mine", "lakewarden.tables2", "LakeWarden.mine", "`lakewarden`.mine"]
)
@pytest.mark.parametrize("source", [Source.REGISTER, Source.DISCOVER])
def test_no_table_is_registered_into_it(
    registry: Registry, reader: FakeReader, tmp_path: Path, name: str, source: Source
) -> None:
    with pytest.raises(RefusedError, match=CLOSED):
        register(registry, known(reader, tmp_path / "t"), actor=ROOT, name=name, source=source)
    assert names(registry) == set()


def test_nor_adopted_under_its_name_in_the_metastore(
    registry: Registry, reader: FakeReader, metastore: FakeMetastore, tmp_path: Path
) -> None:
    location = known(reader, tmp_path / "t")
    metastore.create_database("lakewarden")
    entry = Entry(
        database="lakewarden", table="mine", table_type="EXTERNAL_TABLE", location=location, provider="delta"
    )
    metastore.create(entry)
    with pytest.raises(RefusedError, match=CLOSED):
        register(registry, "lakewarden.mine", actor=ROOT, source=Source.DISCOVER)
    assert names(registry) == set()


@pytest.mark.parametrize("convert", [begin_conversion, foreseen_conversion])
def test_nor_converted_into_it(registry: Registry, tmp_path: Path, convert: object) -> None:
    parquet_file(tmp_path / "raw" / "a.parquet")
    wanted = WantedConversion(name="lakewarden.mine")
    with pytest.raises(RefusedError, match=CLOSED):
        convert(registry, str(tmp_path / "raw"), wanted, actor=ROOT)  # type: ignore[operator]  # both take the same
    assert names(registry) == set()


def test_nor_renamed_into_it(registry: Registry, reader: FakeReader, tmp_path: Path) -> None:
    register(registry, known(reader, tmp_path / "t"), actor=ROOT, name="db.t")
    with pytest.raises(RefusedError, match=CLOSED):
        rename(registry, "db.t", "lakewarden.t", actor=ROOT)
    assert names(registry) == {"db.t"}


@pytest.mark.parametrize("where", ["lakewarden.tables", "lakewarden.audit", "lakewarden.*"])
def test_nobody_sets_the_policy_of_system_tables(registry: Registry, where: str) -> None:
    before = registry.store.rows(TABLES).all()
    with pytest.raises(RefusedError, match="lakewarden's own"):
        set_policy(registry, where, {"log.retention": 86_400}, actor=ROOT)
    assert registry.store.rows(TABLES).all() == before


def test_they_can_be_paused_and_not_dropped(registry: Registry) -> None:
    assert set_pause(registry, "lakewarden.tables", "looking", actor=ROOT).paused == "looking"
    with pytest.raises(RefusedError):
        drop(registry, "lakewarden.tables", actor=ROOT)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lakewarden.tables SET policy.log.retention = '1 day' WHERE name = 'lakewarden.audit'",
        "UPDATE lakewarden.tables SET policy.log.retention = '40 days' WHERE name LIKE '%'",
        "CONVERT TO DELTA lakewarden.mine",
    ],
)
def test_sql_has_the_same_doors_and_changes_all_rows_or_none(tmp_path: Path, statement: str) -> None:
    services = Services(load_settings(home=tmp_path / "home", environment={}), user="root")
    initialise(services, "root")
    register(services.registry, delta_table(tmp_path / "t"), actor=ROOT, name="db.t")
    before = {row.table_id: replace(row) for row in services.store.rows(TABLES).all()}
    with pytest.raises(LakewardenError):
        execute(services, parse(statement), caller=ROOT, tell=lambda _: None)
    assert {row.table_id: row for row in services.store.rows(TABLES).all()} == before
