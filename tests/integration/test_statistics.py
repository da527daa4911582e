"""Statistics on real Spark: what its optimizer estimates, how it joins, what it reads, before and after a refresh."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.metastore.entry_statistics import recorded_in
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.sync_plan import Aspect
from lakewarden.catalog.storage.file_store import StorageOptions, canonical, open_store
from lakewarden.jobs.engines.delta.file_statistics import fill_file_statistics
from lakewarden.jobs.engines.delta.rs_metadata import RsTable
from lakewarden.jobs.engines.delta.statistics import table_statistics
from support.builders.named_tables import NamedTable

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

ROWS = 60_000
OPTIMIZER = {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.planStats.enabled": "true"}


@pytest.fixture
def cost_based(spark: SparkSession) -> Iterator[SparkSession]:
    for key, value in OPTIMIZER.items():
        spark.conf.set(key, value)
    yield spark
    for key in (*OPTIMIZER, "spark.sql.autoBroadcastJoinThreshold"):
        spark.conf.unset(key)


@pytest.fixture(scope="module")
def flights(spark: SparkSession, store: HiveMetastore) -> NamedTable:
    """Rows with a uniform, a skewed and a nullable column, refreshed once."""
    spark.sql("CREATE DATABASE IF NOT EXISTS stats")
    spark.range(ROWS).selectExpr(
        "id",
        "cast(id % 100 AS INT) AS hour",
        "CASE WHEN id % 10 = 0 THEN cast(id AS INT) ELSE 0 END AS delay",
        "CASE WHEN id % 3 = 0 THEN NULL ELSE cast(id % 1000 AS DOUBLE) END AS air_time",
        "concat('N', id % 50) AS tail",
        "date_add(DATE'2013-01-01', cast(id % 365 AS INT)) AS day",
        "repeat('x', 40) AS wide",
        "array(id) AS legs",
    ).repartition(3).write.format("delta").saveAsTable("stats.flights")
    table = NamedTable(spark, store, "stats.flights")
    table.refresh()
    spark.sql("REFRESH TABLE stats.flights")
    return table


def estimated(spark: SparkSession, query: str) -> int:
    """The optimizer's row count of the query's top operator."""
    count = spark.sql(query)._jdf.queryExecution().optimizedPlan().stats().rowCount()
    return int(count.get())


@pytest.mark.long
def test_explain_cost_shows_the_rows(cost_based: SparkSession, flights: NamedTable) -> None:
    plan = cost_based.sql(f"EXPLAIN COST SELECT * FROM {flights.name}").first()
    assert plan is not None
    assert "rowCount=6.00E+4" in plan[0]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "where",
    [
        pytest.param("hour = 7", id="uniform"),
        pytest.param("delay = 0", id="the frequent value of a skewed column"),
        pytest.param("delay > 30000", id="the rare values of a skewed column"),
        pytest.param("delay BETWEEN 1 AND 20000", id="a range of a skewed column"),
        pytest.param("air_time IS NULL", id="nulls"),
        pytest.param("air_time < 250", id="a range of a nullable column"),
        pytest.param("air_time = 11", id="a value of a nullable column"),
        pytest.param("tail = 'N7'", id="text"),
        pytest.param("day >= DATE'2013-10-01'", id="dates"),
        pytest.param("hour < 10 AND air_time > 500", id="two columns"),
    ],
)
def test_filters_are_estimated_within_a_factor_of_two(
    cost_based: SparkSession, flights: NamedTable, where: str
) -> None:
    query = f"SELECT id FROM {flights.name} WHERE {where}"
    guess, truth = estimated(cost_based, query), cost_based.sql(query).count()
    assert truth / 2 <= guess <= truth * 2


def test_a_join_that_should_broadcast_does_so(cost_based: SparkSession, flights: NamedTable) -> None:
    """Half a thousand rows are left of one side; without statistics Spark sees only the size of the files."""
    cost_based.conf.set("spark.sql.autoBroadcastJoinThreshold", "40000")
    query = f"SELECT a.id, b.wide FROM {flights.name} a JOIN {flights.name} b ON a.id = b.id WHERE a.hour = 7"
    bare = query.replace(flights.name, f"delta.`{flights.location.removeprefix('file://')}`")
    assert "SortMergeJoin" in joined(cost_based, bare)
    assert "BroadcastHashJoin" in joined(cost_based, query)


def joined(spark: SparkSession, query: str) -> str:
    return str(spark.sql(query)._jdf.queryExecution().sparkPlan().toString())


def test_what_was_computed_when_is_on_record(flights: NamedTable) -> None:
    recorded = recorded_in(flights.entry().parameters)
    assert recorded is not None
    assert (recorded.rows, recorded.version, recorded.total_bytes) == (ROWS, 0, flights.observe().bytes)
    assert flights.entry().parameters["lakewarden.statistics.sampled_share"] == "1.0000"
    assert flights.refresh().skipped, "nothing has changed since"


def test_a_sync_leaves_fresh_statistics_alone(flights: NamedTable) -> None:
    assert Aspect.STATISTICS not in {change.aspect for change in flights.plan().changes}


@pytest.mark.long
def test_a_table_that_grew_a_hundredfold_is_not_broadcast(
    cost_based: SparkSession, flights: NamedTable
) -> None:
    spark, small = cost_based, replace(flights, name="stats.small")
    spark.range(2_000).selectExpr("id", "repeat('x', 40) AS wide").write.format("delta").saveAsTable(
        small.name
    )
    small.refresh()
    spark.range(2_000, 202_000).selectExpr("id", "uuid() AS wide").write.insertInto(small.name)
    spark.sql(f"REFRESH TABLE {small.name}")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "1MB")
    query = f"SELECT a.wide, b.wide FROM {flights.name} a JOIN {small.name} b ON a.id = b.id"
    assert "BroadcastHashJoin" in joined(spark, query), "the stale numbers are believed"
    assert not small.sync().skipped, "no Spark needed to take them away"
    spark.sql(f"REFRESH TABLE {small.name}")
    assert "SortMergeJoin" in joined(spark, query)


def test_a_refresh_decided_on_an_older_version_is_refused(flights: NamedTable) -> None:
    with pytest.raises(ConflictError, match="was decided on"):
        flights.refresh(requires=flights.observe().version - 1)


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """40 files of 500 rows: a day and new ids in each, three colours in all, every ninth value null."""
    folder = tmp_path_factory.mktemp("sampled") / "t"
    for number in range(40):
        ids = range(number * 500, number * 500 + 500)
        data = {
            "id": pa.array(ids, pa.int64()),
            "day": pa.array([number] * 500, pa.int32()),
            "colour": [("red", "green", "blue")[row % 3] for row in ids],
            "air": pa.array([None if row % 9 == 0 else float(row % 100) for row in ids], pa.float64()),
        }
        write_deltalake(folder, pa.table(data), mode="append")
    return canonical(str(folder))


def test_a_sample_of_files_speaks_for_the_table(spark: SparkSession, many_files: str) -> None:
    found = table_statistics(spark, open_store(many_files), version=39, columns=None, max_rows=8_000)
    assert found.rows == 20_000
    assert 0.2 < found.sampled_share < 0.8
    by_name = {column.name: column for column in found.columns}
    assert (by_name["id"].minimum, by_name["id"].maximum) == ("0", "19999"), (
        "from the log, not from the sample"
    )
    assert by_name["id"].distinct_count == pytest.approx(20_000, rel=0.2)
    assert by_name["day"].distinct_count == pytest.approx(40, rel=0.2)
    assert by_name["colour"].distinct_count == 3
    assert by_name["air"].null_count == 2_223
    whole = spark._jvm.org.apache.spark.sql.catalyst.plans.logical.HistogramSerializer.deserialize(  # type: ignore[union-attr]  # the session lives
        by_name["id"].histogram
    )
    assert whole.height() * len(whole.bins()) == pytest.approx(20_000, rel=0.01)
    assert (whole.bins()[0].lo(), whole.bins()[len(whole.bins()) - 1].hi()) == (0.0, 19_999.0)


def test_the_workers_session_keeps_its_settings(spark: SparkSession, many_files: str) -> None:
    before = spark.conf.get("spark.sql.statistics.histogram.enabled")
    found = table_statistics(spark, open_store(many_files), version=0, columns=["id"], max_rows=10)
    assert [column.name for column in found.columns] == ["id"]
    assert (found.rows, spark.conf.get("spark.sql.statistics.histogram.enabled")) == (500, before)


def test_spark_skips_files_once_their_statistics_are_filled(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    spark.conf.set("spark.databricks.delta.stats.collect", "false")
    try:
        for start in range(4):
            frame = spark.range(start * 100, start * 100 + 100).selectExpr("id", "cast(id AS STRING) AS s")
            frame.coalesce(1).write.format("delta").mode("append").save(str(folder))
    finally:
        spark.conf.unset("spark.databricks.delta.stats.collect")
    assert files_read(spark, folder, "id = 250") == 4
    location = canonical(str(folder))
    at = RsTable(location=location, storage=StorageOptions())
    filled = fill_file_statistics(at, requires=3, run_id="run-7")
    assert (filled.version, filled.files_added) == (4, 4)
    assert files_read(spark, folder, "id = 250") == 1
    assert files_read(spark, folder, "s = '399'") == 2, "as text the first file's 0 to 99 enclose 399"
    assert spark.read.format("delta").load(str(folder)).count() == 400
    assert [commit.run_id for commit in DeltaReader().commits(location, after=3)] == ["run-7"]


def files_read(spark: SparkSession, folder: Path, where: str) -> int:
    """How many files Spark's scan opened, by its own metric."""
    frame = spark.read.format("delta").load(str(folder)).where(where)
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan().toString()
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    counts = [leaves.apply(place).metrics() for place in range(leaves.size())]
    assert re.search("FileScan parquet", plan)
    return sum(int(metrics.apply("numFiles").value()) for metrics in counts)
