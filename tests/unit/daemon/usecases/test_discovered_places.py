"""Which places discovery passes over: those of rows, but for rows whose places are free."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.model.left_by_users import left
from lakewarden.catalog.model.rows import TableRow, TableState
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.discovery import candidates
from lakewarden.daemon.usecases.init import initialise
from support.builders.callers import actor
from support.builders.runs import delta_table
from support.fakes.metastore import FakeMetastore


@pytest.fixture
def services(tmp_path: Path) -> Services:
    made = open_services(home=tmp_path / "home", flags={"discovery.roots": str(tmp_path / "lake")})
    initialise(made, made.user)
    return made


def found(services: Services) -> list[str]:
    return sorted(Path(one.where).name for one in candidates(services) if one is not None)


def test_what_was_purged_or_dropped_by_its_users_long_ago_keeps_its_place_from_nobody(
    services: Services, tmp_path: Path
) -> None:
    now, long_ago = services.clock.now(), services.clock.now() - timedelta(days=31)
    by_users = "dropped by its users: neither its files nor its metastore entry are left"

    def states(row: TableRow) -> TableRow:
        match row.name:
            case "default.purged":
                return replace(row, state=TableState.PURGED)
            case "default.left":
                return left(row, by_users, long_ago)
            case "default.just_left":
                return left(row, by_users, now)
            case "default.dropped":
                return replace(row, state=TableState.DROPPED)
            case _:
                return row

    names = ("active", "dropped", "just_left", "left", "purged")
    for name in names:
        delta_table(tmp_path / "lake" / name, commits=1)
    assert found(services) == list(names)
    rows = [
        register(services.registry, str(tmp_path / "lake" / name), actor=actor("ana")).row for name in names
    ]
    assert found(services) == []
    services.store.edit(TABLES, lambda _: map(states, rows), because="test")
    assert found(services) == ["left", "purged"]


def test_a_table_that_the_metastore_has_by_another_name_than_its_row_is_found_by_the_daemon(
    services: Services, tmp_path: Path
) -> None:
    services.__dict__["metastore"] = metastore = FakeMetastore()
    metastore.create_database("db")
    delta_table(tmp_path / "t", commits=1)
    entry = Entry(
        database="db", table="t", location=f"file:{tmp_path}/t", provider="delta", table_type="EXTERNAL_TABLE"
    )
    metastore.create(entry)
    registry = replace(services.registry, metastore=metastore)
    row = register(registry, "db.t", actor=actor("ana")).row
    metastore.drop("db", "t")
    metastore.create(replace(entry, table="t_old"))
    assert found(services) == []
    assert [one.where for one in candidates(services, renamed=True) if one is not None] == ["db.t_old"]
    metastore.create(entry)
    assert [one for one in candidates(services, renamed=True) if one is not None] == [], "a second entry"
    metastore.drop("db", "t")
    named = replace(row, name="sales.t")
    services.store.edit(TABLES, lambda _: [named], because="test")
    assert [one for one in candidates(services, renamed=True) if one is not None] == [], (
        "lakewarden's own name"
    )
