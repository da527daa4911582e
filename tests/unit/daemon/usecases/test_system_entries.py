"""The system tables get entries in the metastore: seven, once, and none in the place of somebody else's table."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.errors import RefusedError, UsageError
from lakewarden.catalog.metastore.parameters import INSTALLATION
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.metastore.system_database import with_system_database
from lakewarden.catalog.registry.discovery import in_metastore
from lakewarden.catalog.storage.file_store import from_hadoop
from lakewarden.catalog.system.port import SYSTEM_TABLES, TABLES
from lakewarden.catalog.system.schema import row_schema
from lakewarden.daemon.usecases.doctor.diagnosis import CheckResult
from lakewarden.daemon.usecases.doctor.examinations import examine_only
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.system_entries import enlist_system_tables
from support.builders.installations import WithMetastore, on_one_metastore
from support.fakes.metastore import FakeMetastore


@pytest.fixture
def services(tmp_path: Path) -> WithMetastore:
    made = on_one_metastore(tmp_path, FakeMetastore(strict=False))
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


def another(first: WithMetastore, home: Path, **settings: str) -> WithMetastore:
    """A second installation on the same metastore."""
    return on_one_metastore(home, first.metastore, **settings)


def test_a_second_installation_takes_over_no_entry(services: WithMetastore, tmp_path: Path) -> None:
    second, before = another(services, tmp_path / "second"), entry_of(services, "tables")
    with pytest.raises(RefusedError, match="another installation") as refused:
        initialise(second, second.user)
    assert "system.database" in refused.value.hint
    assert services.store.installation() in str(refused.value)
    assert not second.store.exists()
    assert entry_of(services, "tables") == before


def test_an_entry_of_an_older_lakewarden_elsewhere_is_not_taken_over(
    services: WithMetastore, tmp_path: Path
) -> None:
    entry = entry_of(services, "runs")
    older = {key: value for key, value in entry.parameters.items() if key != INSTALLATION}
    services.metastore.replace(replace(entry, parameters=older), expected=entry)
    second = another(services, tmp_path / "second")
    with pytest.raises(RefusedError, match="another installation"):
        initialise(second, second.user)
    assert enlist_system_tables(services) == 1
    assert entry_of(services, "runs").parameters[INSTALLATION] == services.store.installation()


def test_a_second_installation_has_a_database_of_its_own(services: WithMetastore, tmp_path: Path) -> None:
    before = {table.name: entry_of(services, table.name) for table in SYSTEM_TABLES}
    second = another(services, tmp_path / "second", system_database="lakewarden_test")
    initialise(second, second.user)
    assert {table.name: entry_of(services, table.name) for table in SYSTEM_TABLES} == before
    theirs = services.metastore.get("lakewarden_test", "tables")
    assert theirs is not None
    assert theirs.parameters[INSTALLATION] == second.store.installation()
    assert from_hadoop(theirs.location or "") == second.store.location(TABLES)
    assert enlist_system_tables(second) == 0
    assert list(in_metastore(second.metastore, second.readers, frozenset())) == [None] * 2 * len(
        SYSTEM_TABLES
    )


def test_entries_are_taken_over_by_who_says_so_and_doctor_tells_the_other(
    services: WithMetastore, tmp_path: Path
) -> None:
    second = another(services, tmp_path / "second")
    initialise(second, second.user, take_over=True)
    assert entry_of(services, "tables").parameters[INSTALLATION] == second.store.installation()
    services.settings = replace(services.settings, metastore_uri="thrift://somewhere:9083")
    [found] = examine_only(services, ["metastore"])
    assert found.verdict is CheckResult.FAIL
    assert second.store.installation() in found.message
    with pytest.raises(RefusedError):
        enlist_system_tables(services)


def test_a_table_of_users_is_never_taken_over(services: WithMetastore, tmp_path: Path) -> None:
    entry = entry_of(services, "runs")
    services.metastore.drop("lakewarden", "runs")
    services.metastore.create(replace(entry, location="file:/elsewhere", parameters={"EXTERNAL": "TRUE"}))
    with pytest.raises(RefusedError, match="another table"):
        enlist_system_tables(services, take_over=True)


def test_the_name_of_a_database_is_one(services: WithMetastore) -> None:
    with pytest.raises(UsageError, match="not the name of a database"):
        with_system_database(services.metastore, "lake.warden")
