"""A table that its users rename in the metastore: the row follows, whoever has the old name by now."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.model.left_by_users import left
from lakewarden.catalog.model.rows import TableRow, TableState
from lakewarden.catalog.registry.discovery import DiscoveredTable
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.removal import rename
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.control.adoption import Adoption
from lakewarden.daemon.control.followed_renames import follow_rename
from lakewarden.daemon.telemetry.outages import Outage
from support.builders.registries import ANA, NOW, ROOT, folder, made_registry
from support.builders.tables import FakeReader
from support.fakes.metastore import FakeMetastore

T = TypeVar("T")


class Lake:
    """`db.t` in a metastore, managed by that name, and a daemon that adopts what it hears of or finds."""

    def __init__(self, path: Path) -> None:
        self.path, self.reader, self.metastore = path, FakeReader(), FakeMetastore()
        self.metastore.create_database("db")
        self.registry: Registry = replace(made_registry(self.reader), metastore=self.metastore)
        self.enter("t", self.table("t"))
        self.row = register(self.registry, "db.t", actor=ANA).row
        self.adoption = Adoption(self._guard, lambda: None, Outage("metastore", "away", "back"))

    def table(self, name: str, *, uuid: str | None = None) -> str:
        return folder(self.reader, self.path / name, uuid=uuid)

    def enter(self, table: str, place: str) -> None:
        entry = Entry(
            database="db", table=table, location=place, provider="delta", table_type="EXTERNAL_TABLE"
        )
        self.metastore.create(entry)

    def renamed(self, table: str, to: str, place: str | None = None) -> None:
        """ALTER TABLE ... RENAME TO; a managed table's folder goes along."""
        entry = self.metastore.get("db", table)
        assert entry is not None
        self.metastore.drop("db", table)
        self.metastore.create(replace(entry, table=to, location=place or entry.location))

    def hears_of(self, *names: str) -> None:
        self.adoption.run(self.registry, names, None, threads=1)

    def finds(self, *names: str) -> int:
        def search() -> Iterator[DiscoveredTable]:
            yield from (DiscoveredTable(where=name, location=None) for name in names)

        return self.adoption.run(self.registry, (), search, threads=1)

    def names(self) -> dict[str, str]:
        """By `table_id`, of live tables."""
        rows = self.registry.store.rows(TABLES).all()
        return {
            row.table_id: row.name
            for row in rows
            if row.name.startswith("db.") and row.state is TableState.ACTIVE
        }

    def now(self) -> TableRow:
        return self.registry.get(self.row.table_id)

    def _guard(self, what: str, do: Callable[[], T]) -> T | None:
        return do()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_a_rename_is_followed_and_the_old_name_is_another_tables(lake: Lake) -> None:
    lake.renamed("t", "t_old")
    lake.enter("t", lake.table("anew"))
    assert lake.finds("db.t", "db.t_old") == 1, "the new one, once its name is free"
    assert (lake.now().name, lake.now().aliases) == ("db.t_old", ("db.t",))
    assert sorted(lake.names().values()) == ["db.t", "db.t_old"]
    assert lake.registry.resolve("db.t").table_id != lake.row.table_id


def test_a_rename_that_the_metastore_tells_of_is_followed_at_once(lake: Lake) -> None:
    lake.renamed("t", "t_old")
    lake.hears_of("db.t_old")
    assert lake.now().name == "db.t_old"


@pytest.mark.parametrize("swept", [False, True], ids=["before a sweep", "after a sweep took it for dropped"])
def test_a_rename_that_moves_the_folder_keeps_the_row(lake: Lake, swept: bool) -> None:
    before = lake.reader.tables.pop(lake.row.location or "")
    assert isinstance(before, Observation)
    Path(lake.path / "t").rmdir()
    if swept:
        gone = left(lake.now(), "dropped by its users", NOW)
        lake.registry.store.edit(TABLES, lambda _: [gone], because="test")
    lake.renamed("t", "u", lake.table("u", uuid=before.format_id))
    lake.hears_of("db.u")
    row = lake.now()
    assert (row.name, row.location, row.state) == ("db.u", f"file://{lake.path}/u", TableState.ACTIVE)


def test_a_second_rename_is_followed_though_nobody_looked_in_between(lake: Lake) -> None:
    for before, after in (("t", "u"), ("u", "v")):
        lake.renamed(before, after)
        lake.hears_of(f"db.{after}")
    assert (lake.now().name, lake.now().aliases) == ("db.v", ("db.t", "db.u"))


def test_a_name_that_somebody_gives_it_meanwhile_is_not_overwritten(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    def follow(location: str) -> str:
        """Asked last before the row is written."""
        if lake.now().name == "db.t":
            rename(lake.registry, "db.t", "sales.flights", actor=ROOT)
        return location

    lake.renamed("t", "u")
    assert not follow_rename(lake.registry, lake.row, "db.u", follow=follow)
    assert (lake.now().name, lake.now().aliases) == ("sales.flights", ("db.t",))
    assert "because=db.t is called sales.flights by now." in caplog.text


def test_a_second_name_in_the_metastore_is_no_rename(lake: Lake) -> None:
    lake.enter("also", lake.row.location or "")
    lake.hears_of("db.also")
    assert lake.now().name == "db.t"


def test_a_name_that_lakewarden_gave_stays(lake: Lake) -> None:
    rename(lake.registry, "db.t", "sales.flights", actor=ROOT)
    lake.hears_of("db.t")
    lake.renamed("t", "u")
    lake.hears_of("db.u")
    assert lake.now().name == "sales.flights"


def test_a_name_that_another_managed_table_has_is_not_taken(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    register(lake.registry, lake.table("other"), actor=ANA, name="db.u")
    lake.renamed("t", "u")
    lake.hears_of("db.u")
    assert lake.now().name == "db.t"
    assert "not renamed (table=db.t, to=db.u" in caplog.text
