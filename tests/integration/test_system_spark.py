"""Any Spark reads the system tables as delta-rs wrote them: types, statistics, checkpoints, compaction, time travel."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.maintenance import compact
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import AUDIT, HEALTH, RUNS, SYSTEM_TABLES, TABLES, SystemTable
from lakewarden.catalog.system.schema import row_schema
from lakewarden.catalog.system.store import DeltaSystemStore
from support.builders.system_samples import NOW, sample, table_row

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DeltaSystemStore:
    folder: Path = tmp_path_factory.mktemp("system")
    opened = DeltaSystemStore(canonical(str(folder)), StorageOptions(), actor="tests")
    opened.create(system_rows(opened, now=NOW, actor="tests"))
    for table in SYSTEM_TABLES:
        rows = [sample(table, number) for number in range(10, 30)]
        opened.edit(table, lambda _, rows=rows: rows, because="samples")  # type: ignore[misc]  # bound now
    for number in range(60):  # past a checkpoint
        opened.append(AUDIT, [sample(AUDIT, 100 + number)], because="call")
    return opened


@pytest.mark.few(3)
@pytest.mark.parametrize("table", SYSTEM_TABLES, ids=lambda table: table.name)
def test_spark_sees_every_row_and_column(
    spark: SparkSession, store: DeltaSystemStore, table: SystemTable[Any]
) -> None:
    frame = spark.read.format("delta").load(store.location(table))
    assert frame.columns == [*row_schema(table).names, "bucket"]
    first = table.key[0]
    theirs = sorted(str(row[first]) for row in frame.select(first).collect())
    assert theirs == sorted(str(getattr(row, first)) for row in store.rows(table).all())


def test_spark_reads_nested_values(spark: SparkSession, store: DeltaSystemStore) -> None:
    frame = spark.read.format("delta").load(store.location(TABLES)).where("row = 15")
    row = frame.select(
        "policy.vacuum_retention_seconds", "dependencies.upstream", "properties", "updated_at"
    ).first()
    assert row is not None
    mine = table_row(15)
    assert row["vacuum_retention_seconds"] == mine.policy.vacuum_retention_seconds
    assert row["upstream"] == ["table-000000"] and row["properties"] == mine.properties
    assert frame.where("updated_at = timestamp'2026-11-21 08:30:15.123471Z'").count() == 1


def test_spark_skips_files_by_our_statistics_without_losing_rows(
    spark: SparkSession, store: DeltaSystemStore
) -> None:
    frame = spark.read.format("delta").load(store.location(TABLES))
    assert [frame.where(f"row = {number}").count() for number in (0, 10, 29, 30)] == [1, 1, 1, 0]
    assert frame.where("table_id = 'table-000012'").count() == 1


def test_spark_travels_in_time_and_past_a_compaction(spark: SparkSession, store: DeltaSystemStore) -> None:
    before = store.rows(AUDIT).version
    note = Note(actor="tests", because="care")
    assert compact(store, AUDIT, target_bytes=1 << 20, min_small_files=2, note=note).version == before + 1
    location = store.location(AUDIT)
    assert spark.read.format("delta").load(location).count() == 80
    assert spark.read.format("delta").option("versionAsOf", 1).load(location).count() == 20


def test_spark_counts_the_findings(spark: SparkSession, store: DeltaSystemStore) -> None:
    frame = spark.read.format("delta").load(store.location(HEALTH))
    expected = sum(len(row.findings) for row in store.rows(HEALTH).all())
    assert frame.selectExpr("explode(findings) as f").select("f.check").count() == expected
    assert store.rows(RUNS).arrow(["run_id"]).num_rows == 20
