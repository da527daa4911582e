"""A Parquet table becomes an Iceberg table in place, on real Spark and a real metastore: the rows that Spark read
before are those that Iceberg reads afterwards, and whoever comes in between, or kills it, loses nothing."""

import datetime
import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession

import lakewarden
from lakewarden.catalog import failpoints
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError, LakewardenError, RefusedError, UnavailableError
from lakewarden.catalog.formats.iceberg.observation import ICEBERG
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.port import head_file
from lakewarden.catalog.metastore.table_heads import TableHeads
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.storage.file_store import StorageOptions, canonical, from_hadoop
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.engines.iceberg.engine import IcebergEngine
from lakewarden.jobs.executors.convert import convert
from lakewarden.jobs.runs.port import JobContext, Report, Target
from support.builders.spark_iceberg import iceberg_catalogs
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.crashes.killed import Killed
from support.fakes.system_store import FakeRows
from support.servers.metastores import without_system_tables

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

RUN = "0123456789abcdef0123456789abcdef"
RETENTION = (("history.expire.max-snapshot-age-ms", "2592000000"),)
NUMBERS = itertools.count()
POINTS = points_of("test_killed_anywhere_it_comes_to_its_end")


@pytest.fixture(scope="module")
def hive(metastore: EmbeddedMetastore) -> Iterator[HiveMetastore]:
    client = HiveMetastore(metastore.uri)
    yield client
    client.close()


@pytest.fixture(scope="module", autouse=True)
def db(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    spark.sql("CREATE DATABASE convice")
    with iceberg_catalogs(spark, metastore.uri, tmp_path_factory.mktemp("iceberg")):
        yield "convice"


@dataclass
class ParquetTable:
    """A Parquet table in the metastore, or in a folder alone, and its conversion."""

    spark: SparkSession
    hive: HiveMetastore
    folder: Path | None = None
    partitioned_by: tuple[tuple[str, str], ...] = ()
    name: str = field(default_factory=lambda: f"convice.t{next(NUMBERS)}")

    def made(self, columns: str, rows: str, stored: str = "USING parquet") -> "ParquetTable":
        self.spark.sql(f"CREATE TABLE {self.name} ({columns}) {stored}")
        if rows:
            self.spark.sql(f"INSERT INTO {self.name} VALUES {rows}")
        return self

    @property
    def location(self) -> str:
        if self.folder is not None:
            return canonical(str(self.folder))
        entry = self.hive.get(*self.name.split("."))
        assert entry is not None and entry.location is not None
        return from_hadoop(entry.location)

    @property
    def files(self) -> list[str]:
        root = Path(self.location.removeprefix("file://"))
        return sorted(str(one.relative_to(root)) for one in root.rglob("*.parquet"))

    def convert(self, location: str | None = None) -> Report:
        place = location or self.location
        heads = TableHeads(lambda: self.hive, lambda: FakeRows(TABLES, 0, {}), moment=0.0)
        if self.folder is None:
            heads.know(place, CatalogAddress(entry=self.name))
        engine = IcebergEngine(
            lambda: self.spark, storage=lambda _: StorageOptions(), heads=heads, metastore=lambda: self.hive
        )
        ctx = JobContext(
            target=Target(table_id="t", name=self.name, location=place, format=ICEBERG),
            run_id=RUN,
            reader=IcebergReader(lambda _: StorageOptions(), heads),
            clock=SystemClock(),
            engine=engine,
            metastore=self.hive,
            still_ours=lambda: None,
        )
        action = Convert(
            name=None if self.folder is not None else self.name,
            location=place,
            partitioned_by=self.partitioned_by,
            properties=RETENTION,
        )
        report = convert(ctx, action)
        seen = ctx.reader.observe(place)
        assert isinstance(seen, Observation), seen
        assert dict(RETENTION).items() <= seen.properties.items()
        assert [one.run_id for one in ctx.reader.commits(place, after=0)] == [RUN]
        return report

    def parquet_rows(self) -> list[Row]:
        self.spark.catalog.refreshTable(self.name)
        return rows_of(self.spark.table(self.name).collect())

    def iceberg_rows(self) -> list[Row]:
        if self.folder is not None:
            return rows_of(self.spark.read.format("iceberg").load(str(self.folder)).collect())
        return rows_of(self.spark.table(f"by_name.{self.name}").collect())

    @property
    def is_iceberg(self) -> bool:
        entry = self.hive.get(*self.name.split("."))
        return entry is not None and head_file(entry.parameters) is not None


def rows_of(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=str)


@pytest.fixture
def table(spark: SparkSession, hive: HiveMetastore) -> ParquetTable:
    return ParquetTable(spark, hive)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["USING parquet", "STORED AS parquet"], ids=["Spark table", "Hive table"])
def test_a_partitioned_table_keeps_its_rows_files_columns_and_comments(
    table: ParquetTable, kind: str
) -> None:
    spark = table.spark
    columns = "Id tinyint COMMENT 'the key', S struct<A: int, b: array<struct<C: string>>>, M map<string, decimal(9,2)>"
    if "USING" in kind:
        table.made(f"{columns}, P string, n int", "", f"{kind} PARTITIONED BY (P, n)")
    else:
        table.made(columns, "", f"PARTITIONED BY (p string, n int) {kind}")
    value = "named_struct('A', {0}, 'b', array(named_struct('C', '{0}'))), map('k', 1.50)"
    spark.sql(
        f"INSERT INTO {table.name} VALUES (1, {value.format(1)}, 'a/b', 7), (2, {value.format(2)}, 'x y', NULL), "
        f"(3, NULL, NULL, 'ü%41', -1), (NULL, {value.format(4)}, NULL, 2)"
    )
    before, files = table.parquet_rows(), table.files
    report = table.convert()
    assert report.files == len(files) == 4
    assert table.is_iceberg and table.files == files
    assert [tuple(one) for one in table.iceberg_rows()] == [tuple(one) for one in before]
    schema = spark.table(f"by_name.{table.name}").schema
    assert [one.name.lower() for one in schema] == ["id", "s", "m", "p", "n"]
    assert schema[0].metadata.get("comment") == "the key"
    spark.sql(f"DELETE FROM by_name.{table.name} WHERE n = 7")
    spark.sql(f"INSERT INTO by_name.{table.name} SELECT * FROM by_name.{table.name} WHERE n = -1")
    assert len(table.iceberg_rows()) == 4


def test_columns_are_found_however_files_spell_them(table: ParquetTable) -> None:
    table.made("id bigint, name string", "", "STORED AS parquet")
    root = table.location.removeprefix("file://")
    for first, names in ((0, "id, name"), (5, "ID, Name"), (10, "Id, NAME")):
        one, two = names.split(", ")
        table.spark.range(first, first + 5).selectExpr(
            f"CAST(id AS int) AS {one}", f"CAST(id AS string) AS {two}"
        ).coalesce(1).write.mode("append").parquet(root)
    before = table.parquet_rows()
    assert all(None not in one for one in before) and len(before) == 15
    table.convert()
    assert table.iceberg_rows() == before


def test_a_folder_becomes_a_table_of_its_own(
    spark: SparkSession, hive: HiveMetastore, tmp_path: Path
) -> None:
    folder = tmp_path / "a b"
    spark.sql(
        "SELECT id, CAST(id % 2 = 0 AS boolean) AS Even, DATE '2024-01-05' AS d FROM range(10)"
    ).write.partitionBy("Even", "d").parquet(str(folder))
    (folder / "Even=true").rename(folder / "even=true")  # the same column, as Spark has it
    table = ParquetTable(spark, hive, folder, (("Even", "BOOLEAN"), ("d", "DATE")))
    before = rows_of(spark.read.schema("id bigint, Even boolean, d date").parquet(str(folder)).collect())
    table.convert()
    assert table.iceberg_rows() == before
    assert table.convert().committed_version is not None  # done again, it finds that it is done


def test_files_of_a_folder_may_spell_a_column_otherwise_and_have_to_agree_on_its_type(
    spark: SparkSession, hive: HiveMetastore, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    for name, column in (("a", "id"), ("b", "Id")):
        pq.write_table(pa.table({column: pa.array([1, 2], pa.int64())}), folder / f"{name}.parquet")
    table = ParquetTable(spark, hive, folder)
    table.convert()
    assert [row[0] for row in table.iceberg_rows()] == [1, 1, 2, 2]
    shutil.rmtree(folder / "metadata")
    pq.write_table(pa.table({"id": pa.array([3], pa.int32())}), folder / "c.parquet")
    with pytest.raises(RefusedError, match="do not agree on the type of a column"):
        table.convert()


def test_an_empty_table_becomes_an_empty_table(table: ParquetTable) -> None:
    table.made("id bigint, p string", "", "USING parquet PARTITIONED BY (p)")
    table.convert()
    assert table.is_iceberg and table.iceberg_rows() == []
    table.spark.sql(f"INSERT INTO by_name.{table.name} VALUES (1, 'a')")
    assert len(table.iceberg_rows()) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("point", mostly_long(["convert.checked", *POINTS, "convert.converted"], POINTS))
def test_killed_anywhere_it_comes_to_its_end(
    table: ParquetTable, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.made("id bigint, p string", "(1, 'a'), (2, 'b')", "USING parquet PARTITIONED BY (p)")
    before, place = table.parquet_rows(), table.location

    def listener(reached: str) -> None:
        if reached == point:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "listener", listener)
        with pytest.raises(Killed):
            table.convert()
    if point not in ("convert.dropped", "convert.converted"):
        assert table.parquet_rows() == before
    table.convert(place)
    assert table.is_iceberg and table.iceberg_rows() == before
    assert not [one for one in table.hive.tables("convice") if one.startswith("__lakewarden")]


class LateServer(HiveMetastore):
    """A metastore that is long at removing one table: its answer comes too late, and the table goes later still, once
    its entry has been read again."""

    def __init__(self, uri: str, table: str) -> None:
        super().__init__(uri)
        self._slow, self._asked, self._done = table, False, False

    def drop(self, database: str, table: str) -> None:
        if table == self._slow and not self._asked:
            self._asked = True
            raise UnavailableError("The metastore gives no answer.")
        super().drop(database, table)

    def metadata_files(self, database: str, tables: Sequence[str]) -> Mapping[str, str]:
        if self._asked and not self._done:
            self._done = True
            super().drop(database, self._slow)
        return super().metadata_files(database, tables)


@pytest.mark.long
def test_a_removal_that_the_server_completes_later_loses_no_table(
    table: ParquetTable, metastore: EmbeddedMetastore
) -> None:
    table.made("id bigint, p string", "(1, 'a'), (2, 'b')", "USING parquet PARTITIONED BY (p)")
    before, place, own = table.parquet_rows(), table.location, table.hive
    table.hive = LateServer(metastore.uri, table.name.split(".")[1])
    with pytest.raises(UnavailableError, match="gives no answer"):
        table.convert()
    assert table.parquet_rows() == before
    table.convert(place)
    assert table.is_iceberg and table.iceberg_rows() == before
    assert not [one for one in own.tables("convice") if one.startswith("__lakewarden")]
    table.hive.close()


def _rows_come(table: ParquetTable) -> None:
    table.spark.sql(f"INSERT INTO {table.name} VALUES (2, 'b')")


def _the_entry_changes(table: ParquetTable) -> None:
    database, name = table.name.split(".")
    entry = table.hive.get(database, name)
    assert entry is not None
    table.hive.replace(replace(entry, parameters={**entry.parameters, "note": "new"}), expected=entry)


def _somebody_writes(table: ParquetTable) -> None:
    staged = Path(table.location.removeprefix("file://")) / "_temporary" / "0"
    staged.mkdir(parents=True)
    (staged / "part-0.parquet").write_bytes(b"")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_rows_come, "Somebody wrote to"),
        (_the_entry_changes, "entry of .* was changed"),
        (_somebody_writes, "Somebody is writing to"),
    ],
    ids=["rows", "the entry", "a writer at work"],
)
def test_what_changed_since_keeps_its_table(
    table: ParquetTable,
    change: Callable[[ParquetTable], None],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table.made("id bigint, p string", "(1, 'a')", "USING parquet PARTITIONED BY (p)")

    def listener(reached: str) -> None:
        if reached == "convert.registered":
            change(table)

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "listener", listener)
        with pytest.raises(ConflictError, match=words):
            table.convert()
    assert not table.is_iceberg
    assert not [one for one in table.hive.tables("convice") if one.startswith("__lakewarden")]
    shutil.rmtree(Path(table.location.removeprefix("file://")) / "_temporary", ignore_errors=True)
    before = table.parquet_rows()
    table.convert()
    assert table.iceberg_rows() == before


def _another_entry(table: ParquetTable) -> None:
    table.made("id bigint", "(1)")
    table.spark.sql(f"CREATE TABLE {table.name}_too (id bigint) USING parquet LOCATION '{table.location}'")


def _numbered(table: ParquetTable) -> None:
    table.made("id bigint, v bigint", "(1, 2)")
    fields = [
        pa.field(name, pa.int64(), metadata={"PARQUET:field_id": number})
        for name, number in (("id", "2"), ("v", "1"))
    ]
    rows = pa.table({"id": [1], "v": [2]}, schema=pa.schema(fields))
    pq.write_table(rows, Path(table.location.removeprefix("file://")) / "other.parquet")


def _of_old_calendar(table: ParquetTable) -> None:
    table.made("id bigint, d date", "(1, DATE '2024-01-01')")
    day = pa.table({"id": [1], "d": [datetime.date(1, 1, 1)]})
    old = day.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    pq.write_table(old, Path(table.location.removeprefix("file://")) / "old.parquet")


def _with_default(table: ParquetTable) -> None:
    table.made("id bigint", "(1)")
    table.spark.sql(f"ALTER TABLE {table.name} ADD COLUMN c INT DEFAULT 5")


def _other_types(table: ParquetTable) -> None:
    table.made("id int, v string", "", "STORED AS parquet")
    root = table.location.removeprefix("file://")
    table.spark.sql("SELECT CAST(1 AS int) AS id, 1.5D AS v").write.mode("append").parquet(root)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_another_entry, "has its files at"),
        (_other_types, "Iceberg would not read that"),
        (_numbered, "numbers of their writer's"),
        (_of_old_calendar, "calendar of older Spark"),
        (_with_default, "has a default"),
        (lambda table: table.made("id int", "(1)", "USING parquet CLUSTERED BY (id) INTO 2 BUCKETS"), "buckets"),
        (lambda table: table.made("id int, t timestamp", "(1, TIMESTAMP '2024-01-01 00:00:00')",
                                  "USING parquet PARTITIONED BY (t)"), "for the partition column t"),
        (lambda table: table.made("id int, v interval day", "(1, INTERVAL '1' DAY)"), "an interval|no INTERVAL"),
    ],
    ids=["another entry", "other types", "numbered", "old calendar", "default", "buckets", "moments", "intervals"],
)  # fmt: skip
def test_what_iceberg_would_not_read_is_refused_untouched(
    table: ParquetTable, make: object, words: str
) -> None:
    make(table)  # type: ignore[operator]  # one of the above
    entry, files = table.hive.get(*table.name.split(".")), table.files
    with pytest.raises(RefusedError, match=words):
        table.convert()
    assert (table.hive.get(*table.name.split(".")), table.files) == (entry, files)


def test_a_partition_column_that_files_hold_too_prunes_none_of_them(
    spark: SparkSession, hive: HiveMetastore, tmp_path: Path
) -> None:
    folder = tmp_path / "t" / "year=2020"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "year": ["2020", "2020"]}), folder / "a.parquet")
    table = ParquetTable(spark, hive, tmp_path / "t", (("year", "INT"),))
    table.convert()
    read = spark.read.format("iceberg").load(str(tmp_path / "t"))
    assert read.where("year = 2020").count() == read.where("year < 2021").count() == 2


def test_a_table_that_is_iceberg_already_is_refused(table: ParquetTable) -> None:
    table.spark.sql(
        f"CREATE TABLE by_name.{table.name} (id bigint) USING iceberg "
        "TBLPROPERTIES ('engine.hive.lock-enabled'='false')"
    )
    with pytest.raises(LakewardenError, match="is an Iceberg table already"):
        table.convert()


def test_what_is_neither_true_nor_false_is_refused(
    spark: SparkSession, hive: HiveMetastore, tmp_path: Path
) -> None:
    spark.range(2).coalesce(1).write.parquet(str(tmp_path / "t" / "p=yes"))
    table = ParquetTable(spark, hive, tmp_path / "t", (("p", "BOOLEAN"),))
    with pytest.raises(RefusedError, match="neither true nor false"):
        table.convert()
    assert not (tmp_path / "t" / "metadata").exists()


def test_a_statement_converts_registers_and_governs(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path: Path
) -> None:
    settings = {"metastore.uri": without_system_tables(metastore.uri), "spark.master": "local[1]"}
    initialise(open_services(home=tmp_path, flags=settings), real_user())
    spark.sql("CREATE TABLE convice.raw USING parquet AS SELECT id, id % 3 AS kind FROM range(90)")
    with lakewarden.attach(spark, home=tmp_path, settings=settings) as lw:
        (made,) = lw.sql("CONVERT TO ICEBERG convice.raw VACUUM RETAIN 30 DAYS OWNER bo").collect()
        assert (made["name"], made["state"]) == ("convice.raw", "active")
        (row,) = lw.sql(
            "SELECT owner, format, version FROM lakewarden.tables JOIN lakewarden.health USING (table_id) "
            "WHERE lakewarden.tables.name = 'convice.raw'"
        ).collect()
        assert tuple(row) == ("bo", "iceberg", 1)
        lw.sql("DELETE FROM iceberg.convice.raw WHERE kind = 1")
        assert lw.sql("SELECT count(*) AS n FROM iceberg.convice.raw").collect()[0]["n"] == 60
