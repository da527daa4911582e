"""A table whose entry was dropped is looked at once, not in every sweep: to say who has its folder now costs a reading
of all entries of its database."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.metastore.port import METADATA_FILE, Entry
from lakewarden.catalog.metastore.table_heads import CATALOG_ENTRY, TableHeads
from lakewarden.catalog.model.rows import TableState
from lakewarden.catalog.policy.scopes import govern
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.fleet.look import OnRecord, TableLook
from lakewarden.daemon.fleet.observer import Observer
from support.builders.iceberg_tables import IcebergWriter
from support.builders.tables import FakeInspector
from support.builders.worlds import NOW, health, row
from support.fakes.clock import ManualClock
from support.fakes.metastore import FakeMetastore
from support.fakes.system_store import FakeSystemStore


class OrphanStage:
    """A daemon that looks at one table, whose head `db.t` of a metastore keeps."""

    def __init__(self, folder: Path) -> None:
        self.table = IcebergWriter(root=folder / "t")
        self.table.commit(add=(("a.parquet", 100),))
        self.metastore, self.store, self.listed = FakeMetastore(), FakeSystemStore(), list[str]()
        self.metastore.create_database("db")
        plain = self.metastore.tables

        def noted(database: str) -> tuple[str, ...]:
            self.listed.append(database)
            return plain(database)

        self.metastore.tables = noted  # type: ignore[method-assign]  # the fake, which counts
        self.row = row(
            "db.t",
            location=f"file://{self.table.root}",
            format="iceberg",
            format_ids=(self.table.table_id,),
            properties={CATALOG_ENTRY: "db.t"},
        )
        self.store.create([*system_rows(self.store, now=NOW, actor="root"), replace(self.row, row=99)])
        heads = TableHeads(lambda: self.metastore, lambda: self.store.rows(TABLES), moment=0)
        self.observer = Observer(
            readers=(IcebergReader(lambda _: StorageOptions(), heads),),
            inspector=FakeInspector(),
            store=self.store,
            clock=ManualClock(NOW),
            checks_every=timedelta(days=1),
        )
        self.before = replace(health(), version=1)

    def point(self, entry: str) -> None:
        """An entry that names the table's metadata."""
        place, (database, table) = f"file:{self.table.root}", entry.split(".")
        self.metastore.create(
            Entry(
                database=database, table=table, location=place, provider=None, table_type="EXTERNAL_TABLE",
                parameters={
                    "table_type": "ICEBERG", METADATA_FILE: f"{place}/metadata/{self.table.head.name}",
                },
            )
        )  # fmt: skip

    def look(self, *, checks: bool = False) -> TableLook | None:
        one = govern(replace(self.row, state=TableState.QUARANTINED), {})
        found = self.observer.look(
            one, self.before, must=False, checks=checks, on_record=OnRecord(schema=True)
        )
        if found is not None and found.health is not None:
            self.before = found.health
        return found

    def said(self) -> list[str]:
        return [one.message for one in self.before.findings]


def test_a_table_without_its_entry_is_looked_at_once(tmp_path: Path) -> None:
    stage = OrphanStage(tmp_path)
    assert [stage.look() is not None for _ in range(4)] == [True, False, False, False]
    assert stage.said() == ["The metastore has no Iceberg table db.t any more."]
    assert stage.listed == ["db"], "its database was read once"


def test_daily_checks_say_which_entry_has_its_folder_by_now(tmp_path: Path) -> None:
    stage = OrphanStage(tmp_path)
    stage.look()
    stage.point("db.renamed")
    assert stage.look() is None and stage.look(checks=True) is not None
    assert stage.said() == [
        "The metastore has no Iceberg table db.t any more. Its folder is that of db.renamed now."
    ]


def test_a_table_that_has_its_entry_again_is_looked_at(tmp_path: Path) -> None:
    stage = OrphanStage(tmp_path)
    assert stage.look() is not None and stage.look() is None
    stage.point("db.t")
    assert stage.look() is not None and stage.said() == []
