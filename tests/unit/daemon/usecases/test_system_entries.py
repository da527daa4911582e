"""The system tables get entries in the metastore: seven, once, and none in the place of somebody else's table."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.system.port import SYSTEM_TABLES
from lakewarden.catalog.system.schema import row_schema
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.system_entries import enlist_system_tables
from support.fakes.metastore import FakeMetastore


class WithMetastore(Services):
    """An installation whose metastore is in memory."""

    metastore = FakeMetastore(strict=False)


@pytest.fixture
def services(tmp_path: Path) -> WithMetastore:
    made = WithMetastore(load_settings(home=tmp_path, environment={}))
    made.metastore = FakeMetastore(strict=False)
    initialise(made, made.user)
    return made


def entry_of(services: WithMetastore, table: str) -> Entry:
    found = services.metastore.get("lakewarden", table)
    assert found is not None
    return found


def test_every_system_table_has_an_external_entry_with_its_columns(services: WithMetastore) -> None:
    for table in SYSTEM_TABLES:
        entry = entry_of(services, table.name)
        assert (entry.table_type, entry.parameters["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
        columns = [column.name for column in entry.columns]
        assert set(row_schema(table).names) <= set(columns)


def test_enlisting_again_changes_nothing(services: WithMetastore) -> None:
    assert enlist_system_tables(services) == 0


def test_an_entry_that_fell_behind_is_mended(services: WithMetastore) -> None:
    entry = entry_of(services, "runs")
    services.metastore.replace(replace(entry, columns=entry.columns[:-1]), expected=entry)
    assert enlist_system_tables(services) == 1
    assert entry_of(services, "runs").columns == entry.columns


def test_a_name_that_belongs_to_another_table_is_refused(services: WithMetastore) -> None:
    entry = entry_of(services, "runs")
    services.metastore.drop("lakewarden", "runs")
    foreign = replace(entry, location="file:/elsewhere", serde_parameters={}, parameters={"EXTERNAL": "TRUE"})
    services.metastore.create(foreign)
    with pytest.raises(RefusedError):
        enlist_system_tables(services)
    assert entry_of(services, "runs").location == "file:/elsewhere"
