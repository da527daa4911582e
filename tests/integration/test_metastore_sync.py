"""The sync on a real Hive metastore: what Spark and Hive see of a Delta table afterwards, and before."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError, RefusedError, UnavailableError
from lakewarden.catalog.formats.port import Head, Observation
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.port import EntryColumn
from lakewarden.catalog.metastore.sync_plan import INPUT_FORMAT, Aspect
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.actions.sync import SyncMetastore
from lakewarden.jobs.executors.sync import sync_metastore
from support.builders.entries import enlist
from support.builders.named_tables import NamedTable
from support.servers.hive import hive

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

COLUMNS = (
    "id BIGINT NOT NULL COMMENT 'number', Tail STRING, at TIMESTAMP, s STRUCT<A: "
    "INT COMMENT 'deep', b: ARRAY<DATE>>"
)


@pytest.fixture(scope="module", autouse=True)
def database(spark: SparkSession) -> None:
    spark.sql("CREATE DATABASE sync")


@pytest.fixture
def born_in_spark(spark: SparkSession, store: HiveMetastore, request: pytest.FixtureRequest) -> NamedTable:
    name = f"sync.{request.node.originalname}"[:60]
    spark.sql(f"CREATE TABLE {name} ({COLUMNS}, day INT) USING delta PARTITIONED BY (day) COMMENT 'flights'")
    spark.sql(
        f"INSERT INTO {name} VALUES (1, 'N1', now(), NULL, 1), (2, NULL, now(), "
        "named_struct('A', 1, 'b', NULL), 2)"
    )
    return NamedTable(spark, store, name)


@pytest.fixture
def converted(spark: SparkSession, store: HiveMetastore, request: pytest.FixtureRequest) -> NamedTable:
    """A Hive table, partitioned, then Delta: the metastore still has its partitions, read by Parquet's SerDe."""
    name = f"sync.{request.node.originalname}"[:60]
    spark.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, tail STRING) PARTITIONED BY (day INT) STORED AS PARQUET")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'N1', 1), (2, 'N2', 2)")
    spark.sql(f"CONVERT TO DELTA {name}")
    return NamedTable(spark, store, name)


def jdbc_columns(table: NamedTable) -> list[tuple[str, str]]:
    """What Spark's session catalog, and with it a JDBC client's `getColumns`, knows without the table's log."""
    state = table.spark._jsparkSession.sessionState()
    found = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(table.name))
    return [(field.name(), field.dataType().simpleString()) for field in found.schema().fields()]


def test_the_metastore_shows_the_real_columns(born_in_spark: NamedTable) -> None:
    assert born_in_spark.entry().columns == (
        EntryColumn(name="col", type="array<string>", comment="from deserializer"),
    )
    born_in_spark.store.replace(born_in_spark.plan(strict=False).wanted, expected=born_in_spark.entry())
    assert born_in_spark.entry().columns == (
        EntryColumn(name="id", type="bigint", comment="number"),
        EntryColumn(name="tail", type="string"),
        EntryColumn(name="at", type="timestamp"),
        EntryColumn(name="s", type="struct<A:int,b:array<date>>"),
        EntryColumn(name="day", type="int"),
    )
    assert [name for name, _ in jdbc_columns(born_in_spark)] == ["id", "Tail", "at", "s", "day"]


@pytest.mark.long
def test_spark_works_on_as_before(born_in_spark: NamedTable) -> None:
    spark, name = born_in_spark.spark, born_in_spark.name
    born_in_spark.sync()
    spark.sql(f"REFRESH TABLE {name}")
    assert spark.sql(f"SELECT count(*) FROM {name}").first() == (2,)
    described = {row[0]: row[1] for row in spark.sql(f"DESCRIBE EXTENDED {name}").collect()}
    assert (described["Tail"], described["Provider"], described["Comment"]) == ("string", "delta", "flights")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (late INT)")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    spark.sql(f"INSERT INTO {name} VALUES (3, 'N3', now(), NULL, 3, 40)")
    spark.range(3).selectExpr("id").write.format("delta").mode("append").saveAsTable(name)
    assert spark.sql(f"SELECT count(*), sum(late) FROM {name}").first() == (6, 40)


def test_a_second_sync_has_nothing_to_do(born_in_spark: NamedTable) -> None:
    assert not born_in_spark.sync().skipped
    once = born_in_spark.entry()
    assert born_in_spark.sync().skipped
    assert born_in_spark.entry() == once


def test_a_schema_change_is_drift_until_the_next_sync(born_in_spark: NamedTable) -> None:
    born_in_spark.sync()
    born_in_spark.spark.sql(f"ALTER TABLE {born_in_spark.name} ADD COLUMNS (late INT COMMENT 'minutes')")
    assert [change.aspect for change in born_in_spark.plan().changes] == [Aspect.SCHEMA]
    assert not born_in_spark.sync().skipped
    assert jdbc_columns(born_in_spark)[-1] == ("late", "int")


def test_users_can_still_replace_their_table(born_in_spark: NamedTable) -> None:
    """With real columns a server with strict columns (the default) would fail their statement half-way."""
    born_in_spark.sync()
    assert born_in_spark.store.strict_columns()
    born_in_spark.spark.sql(
        f"CREATE OR REPLACE TABLE {born_in_spark.name} (n ARRAY<INT>, id INT) USING delta"
    )
    assert born_in_spark.spark.table(born_in_spark.name).columns == ["n", "id"]
    born_in_spark.sync()
    assert jdbc_columns(born_in_spark) == [("n", "array<int>"), ("id", "int")]


def test_a_converted_table_gets_new_columns_past_a_strict_server(converted: NamedTable) -> None:
    name = converted.name
    frame = converted.spark.sql("SELECT array(1) AS id, 'x' AS tail, 1 AS day, 2 AS more")
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(converted.location)
    converted.sync()
    assert [(column.name, column.type) for column in converted.entry().columns] == [
        ("id", "array<int>"),
        ("tail", "string"),
        ("more", "int"),
    ]
    assert [column.name for column in converted.entry().partition_columns] == ["day"]
    assert converted.spark.table(name).columns == ["id", "tail", "day", "more"]
    assert {kind for column, kind in jdbc_columns(converted) if column == "id"} == {"array<int>"}


@pytest.mark.long
def test_hive_reads_a_converted_table_wrongly_until_the_sync(
    converted: NamedTable, metastore: EmbeddedMetastore
) -> None:
    converted.spark.sql(f"DELETE FROM {converted.name} WHERE day = 2")
    wrong = hive(metastore.uri, f"SELECT id FROM {converted.name}")
    assert wrong.rows == ("1", "2"), "Hive still sees the row that was deleted"
    converted.sync()
    for statement in (
        f"SELECT id FROM {converted.name}",
        f"SELECT count(*) FROM {converted.name} WHERE day = 7",
        f"INSERT INTO {converted.name} PARTITION (day = 3) SELECT 1, 'x'",
        f"INSERT OVERWRITE TABLE {converted.name} PARTITION (day = 1) SELECT 1, 'x'",
    ):
        refused = hive(metastore.uri, statement)
        assert refused.failed, statement
        assert "must implement" in refused.said
    shown = hive(metastore.uri, f"DESCRIBE {converted.name}")
    assert shown.rows[0].split() == ["id", "bigint"]


def test_a_conversion_by_path_leaves_parquet_in_the_metastore_until_the_sync(
    spark: SparkSession, store: HiveMetastore
) -> None:
    spark.sql("CREATE TABLE sync.by_path (id BIGINT) STORED AS PARQUET")
    spark.sql("INSERT INTO sync.by_path VALUES (1), (2)")
    table = NamedTable(spark, store, "sync.by_path")
    spark.sql(f"CONVERT TO DELTA parquet.`{table.entry().location}`")
    said = {change.aspect: change.message for change in table.plan().changes}
    assert said[Aspect.PROVIDER] == "The metastore says that this is a Hive table; its log says Delta."
    table.sync()
    spark.sql("REFRESH TABLE sync.by_path")
    spark.sql("DELETE FROM sync.by_path WHERE id = 2")
    assert [row[0] for row in spark.table("sync.by_path").collect()] == [1]
    assert table.sync().skipped


@pytest.mark.long
def test_sizes_that_hive_counted_do_not_fool_spark_any_longer(born_in_spark: NamedTable) -> None:
    """saveAsTable lets the metastore list the folder and keep its size; appends do not renew it."""
    spark, name = born_in_spark.spark, f"{born_in_spark.name}_sized"
    for _ in range(2):
        spark.range(5).write.format("delta").mode("overwrite").saveAsTable(name)
    spark.range(2_000_000).write.format("delta").mode("append").insertInto(name)
    table = replace(born_in_spark, name=name)
    assert planned_bytes(spark, name) < 10_000, "Spark believes the metastore"
    assert Aspect.STATISTICS in {change.aspect for change in table.plan().changes}
    table.sync()
    spark.sql(f"REFRESH TABLE {name}")
    assert planned_bytes(spark, name) == table.observe().bytes


def planned_bytes(spark: SparkSession, name: str) -> int:
    """The size that the optimizer takes a table for."""
    return int(spark.table(name)._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def test_a_name_that_belongs_to_another_table_is_left_alone(born_in_spark: NamedTable) -> None:
    before = born_in_spark.entry()
    context = born_in_spark.context()
    elsewhere = replace(context.target, table_id="table-2", location=f"{born_in_spark.location}_moved")
    write_deltalake(elsewhere.location, pa.table({"id": [1]}))
    with pytest.raises(RefusedError, match="is another table"):
        sync_metastore(
            replace(context, target=elsewhere), SyncMetastore(requires=Head(0), name=born_in_spark.name)
        )
    assert born_in_spark.entry() == before


def test_spark_reads_a_table_that_was_only_enlisted(
    spark: SparkSession, store: HiveMetastore, tmp_path: Path
) -> None:
    folder = tmp_path / "a b"
    spark.range(7).write.format("delta").save(str(folder))
    table = NamedTable(spark, store, "listed.numbers")
    location = canonical(str(folder))
    seen = table.reader.observe(location)
    assert isinstance(seen, Observation)
    enlist(store, seen, database="listed", table="numbers", table_id="t", location=location)
    assert spark.table("listed.numbers").count() == 7
    assert table.entry().input_format == INPUT_FORMAT
    spark.sql("DROP TABLE listed.numbers")
    assert folder.exists(), "an external table: dropping the entry leaves the data"


def test_a_spark_alter_between_reading_and_changing_is_not_overwritten(born_in_spark: NamedTable) -> None:
    plan = born_in_spark.plan()
    born_in_spark.spark.sql(f"ALTER TABLE {born_in_spark.name} RENAME TO {born_in_spark.name}_away")
    with pytest.raises(ConflictError, match="not as it was read"):
        born_in_spark.store.replace(plan.wanted, expected=plan.entry)


@pytest.mark.long
def test_a_metastore_that_went_away_is_unavailable_and_found_again(tmp_path: Path) -> None:
    with EmbeddedMetastore(tmp_path) as first:
        store = HiveMetastore(first.uri)
        assert "default" in store.databases()
        first.kill()
        with pytest.raises(UnavailableError, match="does not answer"):
            store.databases()
    with EmbeddedMetastore(tmp_path, port=first.port):
        assert "default" in store.databases()
    store.close()
