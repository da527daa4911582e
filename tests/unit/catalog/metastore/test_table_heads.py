"""Heads that a metastore keeps: asked once for a database, and not again for a moment."""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lakewarden.catalog.errors import CatalogAwayError, EntryAwayError, MetastoreAwayError
from lakewarden.catalog.formats.spec import CatalogHead
from lakewarden.catalog.metastore.port import METADATA_FILE, Entry
from lakewarden.catalog.metastore.table_heads import CATALOG_ENTRY, CATALOG_NAME, TableHeads
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.system.port import TABLES
from support.builders.system_samples import table_row
from support.fakes.metastore import FakeMetastore
from support.fakes.system_store import FakeSystemStore


@dataclass
class Stage:
    """A metastore with two databases of Iceberg tables, all of them managed by name."""

    metastore: FakeMetastore = field(default_factory=FakeMetastore)
    store: FakeSystemStore = field(default_factory=FakeSystemStore)
    now: float = 100.0
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = ("a.t", "a.u", "b.t")
        rows = [
            replace(
                table_row(number),
                name=name,
                location=f"file:///{name}",
                format="iceberg",
                properties={CATALOG_ENTRY: name},
            )
            for number, name in enumerate(names, 1)
        ]
        self.store.create(rows)
        for name in names:
            database, table = name.split(".")
            self.metastore.create_database(database)
            file = f"file:/{name}/metadata/00000-{name}.metadata.json"
            parameters = {"table_type": "ICEBERG", METADATA_FILE: file}
            self.metastore.create(
                Entry(
                    database=database, table=table, location=f"file:/{name}", provider=None,
                    table_type="EXTERNAL_TABLE", parameters=parameters,
                )
            )  # fmt: skip
        plain = self.metastore.metadata_files

        def noted(database: str, tables: Any) -> Any:
            self.asked.append((database, tuple(tables)))
            return plain(database, tables)

        self.metastore.records = False
        self.metastore.metadata_files = noted  # type: ignore[method-assign]  # the fake, which counts
        self.heads = TableHeads(lambda: self.metastore, lambda: self.store.rows(TABLES), lambda: self.now)


def test_a_database_is_asked_once_for_all_of_its_tables() -> None:
    stage = Stage()
    for name in ("a.t", "a.u", "a.t", "b.t"):
        told = stage.heads(f"file:///{name}")
        assert told == CatalogHead(entry=name, file=f"file:/{name}/metadata/00000-{name}.metadata.json")
    assert stage.asked == [("a", ("t", "u")), ("b", ("t",))]
    stage.now += 2
    stage.heads("file:///a.t")
    assert stage.asked[2:] == [("a", ("t", "u"))], "an answer counts for a moment"


def test_entries_that_did_not_move_are_not_read_again_where_the_metastore_records_each_change() -> None:
    stage = Stage()
    stage.metastore.records = True
    for _ in range(3):
        stage.now += 2
        assert stage.heads("file:///a.t") is not None
    assert stage.asked == [("a", ("t", "u"))]
    entry = stage.metastore.get("a", "t")
    assert entry is not None
    moved = {**entry.parameters, METADATA_FILE: "file:/a.t/metadata/00001-x.metadata.json"}
    stage.metastore.replace(replace(entry, parameters=moved), expected=entry)
    stage.now += 2
    told = stage.heads("file:///a.t")
    assert told is not None and told.file == moved[METADATA_FILE]
    stage.heads.forget()
    stage.heads("file:///a.t")
    assert stage.asked[-1] == ("a", ("t", "u"))


def test_who_acts_by_the_answer_asks_each_time() -> None:
    """He reads again what he has just committed."""
    stage = Stage()
    heads = TableHeads(lambda: stage.metastore, lambda: stage.store.rows(TABLES), lambda: 0.0, moment=0.0)
    before, entry = heads("file:///a.t"), stage.metastore.get("a", "t")
    assert entry is not None
    stage.metastore.replace(
        replace(
            entry,
            parameters={**entry.parameters, METADATA_FILE: "file:/a.t/metadata/00001-x.metadata.json"},
        ),
        expected=entry,
    )
    after = heads("file:///a.t")
    assert after != before and after is not None and (after.file or "").endswith("00001-x.metadata.json")
    assert stage.asked == [("a", ("t",))] * 2, "for this table alone"


def test_who_decides_by_what_has_just_happened_has_it_asked_anew() -> None:
    stage = Stage()
    stage.heads("file:///a.t")
    stage.heads.forget()
    stage.heads("file:///a.t")
    assert stage.asked == [("a", ("t", "u"))] * 2


def test_rows_are_asked_once_in_a_moment_too() -> None:
    stage, asked = Stage(), list[float]()

    def rows() -> Any:
        asked.append(stage.now)
        return stage.store.rows(TABLES)

    heads = TableHeads(lambda: stage.metastore, rows, lambda: stage.now)
    for number in range(9):
        stage.now = 100 + number / 4
        assert heads("file:///a.t") is not None
    assert asked == [100, 101, 102]


def test_a_table_that_somebody_else_has_just_registered_is_known_at_once() -> None:
    stage = Stage()
    assert stage.heads("file:///a.t") is not None
    row = replace(
        table_row(9),
        name="a.u2",
        location="file:///new",
        format="iceberg",
        properties={CATALOG_ENTRY: "a.u2"},
    )
    entry = stage.metastore.get("a", "u")
    assert entry is not None
    stage.metastore.create(replace(entry, table="u2"))
    stage.store.edit(TABLES, lambda rows: [row], because="test")
    told = stage.heads("file:///new")
    assert told is not None and (told.entry, told.file) == ("a.u2", entry.parameters[METADATA_FILE])


def test_of_other_tables_nobody_is_asked() -> None:
    stage = Stage()
    assert stage.heads("file:///lake/hadoop") is None
    assert stage.asked == []


def test_a_table_that_is_about_to_be_managed_is_known() -> None:
    stage = Stage()
    stage.heads("file:///a.t")
    stage.heads.know("file:///new", CatalogAddress(entry="a.new"))
    assert stage.heads("file:///new") == CatalogHead(entry="a.new", file=None)
    assert stage.asked[-1] == ("a", ("new", "t", "u"))


def test_an_entry_that_is_gone_names_no_file() -> None:
    stage = Stage()
    stage.metastore.drop("a", "t")
    assert stage.heads("file:///a.t") == CatalogHead(entry="a.t", file=None)


def test_a_metastore_that_does_not_answer_is_not_asked_for_every_table() -> None:
    stage = Stage()
    stage.metastore.down, asked = True, stage.metastore.questions
    for name in ("a.t", "a.u", "a.t"):
        with pytest.raises(MetastoreAwayError):
            stage.heads(f"file:///{name}")
    assert stage.metastore.questions == asked + 1
    stage.metastore.down = False
    stage.now += 11
    assert stage.heads("file:///a.t") is not None


def test_without_a_metastore_nothing_is_concluded() -> None:
    stage = Stage()
    heads = TableHeads(lambda: None, lambda: stage.store.rows(TABLES), lambda: stage.now)
    with pytest.raises(
        MetastoreAwayError, match="A metastore keeps the heads of tables in a, and none is configured."
    ):
        heads("file:///a.t")


class Declared:
    """A declared catalog that answers for every table, or not, or not at once."""

    bulk = True

    def __init__(
        self, *, down: bool = False, waits: threading.Event | None = None, refuses: str = ""
    ) -> None:
        self.asked, self.down, self.waits = list[str](), down, waits
        self.refuses, self.bulk = refuses, not refuses

    def metadata_files(self, database: str, tables: Sequence[str], /) -> Mapping[str, str]:
        self.asked.append(database)
        if self.waits is not None:
            assert self.waits.wait(10)
        if self.down:
            raise CatalogAwayError("away")
        if self.refuses in tables:
            raise EntryAwayError("refused")
        return {table: f"file:/{table}/metadata/1.metadata.json" for table in tables}

    def naming(self, location: str) -> tuple[str, ...]:
        return ()


def heads_in(catalogs: Mapping[str, Declared], *entries: str, now: Sequence[float] = (0.0,)) -> TableHeads:
    """Tables at `file:///<entry>` whose heads declared catalogs keep."""
    store = FakeSystemStore()
    told = [one.partition(".") for one in entries]
    store.create(
        replace(
            table_row(number),
            location=f"file:///{catalog}.{entry}",
            format="iceberg",
            properties={CATALOG_NAME: catalog, CATALOG_ENTRY: entry},
        )
        for number, (catalog, _, entry) in enumerate(told, 1)
    )
    return TableHeads(lambda: None, lambda: store.rows(TABLES), lambda: now[0], declared=catalogs.__getitem__)


def test_a_catalog_that_does_not_answer_is_asked_for_one_of_its_namespaces_alone() -> None:
    catalogs = {"up": Declared(), "off": Declared(down=True)}
    heads = heads_in(catalogs, "off.a.t", "off.b.t", "up.a.t")
    for name in ("off.a.t", "off.b.t", "off.a.t"):
        with pytest.raises(CatalogAwayError):
            heads(f"file:///{name}")
    told = heads("file:///up.a.t")
    assert told == CatalogHead(entry="a.t", file="file:/t/metadata/1.metadata.json", catalog="up")
    assert (catalogs["off"].asked, catalogs["up"].asked) == (["a"], ["a"])


def test_a_table_that_a_catalog_refuses_keeps_no_other_back_and_is_asked_for_again_later() -> None:
    catalogs, now = {"web": Declared(refuses="x")}, [0.0]
    heads = heads_in(catalogs, "web.a.x", "web.a.t", "web.b.u", now=now)
    for moment in (0.0, 2.0, 4.0):
        now[0] = moment
        with pytest.raises(EntryAwayError):
            heads("file:///web.a.x")
        assert heads("file:///web.a.t") is not None and heads("file:///web.b.u") is not None
    assert catalogs["web"].asked == ["a", "a", "b", "a", "b", "a", "b"], "once for x"
    catalogs["web"].refuses, now[0] = "", 11.0
    assert heads("file:///web.a.x") is not None


def test_who_waits_for_one_catalog_does_not_keep_another_waiting() -> None:
    answered = threading.Event()
    catalogs = {"up": Declared(), "slow": Declared(waits=answered)}
    heads = heads_in(catalogs, "slow.a.t", "up.a.t")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(heads, "file:///slow.a.t")
        while not catalogs["slow"].asked:
            time.sleep(0.001)
        assert heads("file:///up.a.t") is not None and not waiting.done()
        answered.set()
        assert waiting.result(10) is not None


@pytest.mark.parametrize(
    ("file", "is_other"),
    [
        ("hdfs://nn/w/t/metadata/00002-x.metadata.json", True),
        ("hdfs://lake/w//t/metadata/00002-x.metadata.json", True),
        ("hdfs://nn:8020/w/t/metadata/00002-x.metadata.json", True),
        ("hdfs://nn:8020/w/t_too/metadata/00002-x.metadata.json", False),
        ("s3a://nn/w/t/metadata/00002-x.metadata.json", False),
    ],
)
def test_another_entry_of_a_folder_is_seen_whatever_it_calls_the_storage(file: str, is_other: bool) -> None:
    location = "hdfs://nn:8020/w/t"
    metastore, store = FakeMetastore(), FakeSystemStore()
    metastore.create_database("a")
    files = {"t": f"{location}/metadata/00001-x.metadata.json", "second": file}
    for table, one in files.items():
        metastore.create(
            Entry(
                database="a", table=table, location=location, provider=None, table_type="EXTERNAL_TABLE",
                parameters={"table_type": "ICEBERG", METADATA_FILE: one},
            )
        )  # fmt: skip
    row = replace(table_row(1), location=location, format="iceberg", properties={CATALOG_ENTRY: "a.t"})
    store.create([row])
    heads = TableHeads(lambda: metastore, lambda: store.rows(TABLES))
    told = heads(location)
    assert told is not None and told.others() == (("a.second",) if is_other else ())
    entries = TakenEntries(heads=heads, metastore=lambda: metastore)
    assert entries.naming(location, row.table_id, kept=True) == (("a.second",) if is_other else ())
