"""A bucketed Parquet table of a real metastore keeps its buckets when it becomes a Delta table."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.model.bucket_layout import BucketLayout, layout_in
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.executors.convert import convert
from lakewarden.jobs.runs.port import JobContext, Target
from support.builders.bucketed_lakes import BucketedLake, bucketed_lake

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

LAYOUT = BucketLayout(columns=("id",), count=4, sort=("id",), is_converted=True)
UPSERT = "UPSERT INTO {} (id, v) ON (id) SELECT id, v FROM more"
READER = DeltaReader()


@pytest.fixture(scope="module")
def lake(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BucketedLake]:
    with bucketed_lake(spark, tmp_path_factory.mktemp("converted")) as found:
        spark.range(90, 110).selectExpr("id", "'new' AS v").createOrReplaceTempView("more")
        yield found


@pytest.fixture
def hive(metastore: EmbeddedMetastore) -> Iterator[HiveMetastore]:
    client = HiveMetastore(metastore.uri)
    yield client
    client.close()


def parquet(lake: BucketedLake, table: str, query: str) -> None:
    lake.spark.sql(
        f"CREATE TABLE {table} USING parquet CLUSTERED BY (id) SORTED BY (id) INTO 4 BUCKETS "
        f"LOCATION '{lake.folder / table}' AS {query}"
    )


def converted(lake: BucketedLake, hive: HiveMetastore, table: str) -> Observation:
    place = canonical(str(lake.folder / table))
    name = f"{lake.spark.catalog.currentDatabase()}.{table}"
    engine = DeltaEngine(lambda: lake.spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    ctx = JobContext(
        target=Target(table_id="t", name=name, location=place), run_id="fedcba9876543210", reader=READER,
        clock=SystemClock(), engine=engine, metastore=hive, still_ours=lambda: None,
    )  # fmt: skip
    convert(ctx, Convert(name=name, location=place, partitioned_by=(), statistics=True, properties=()))
    seen = READER.observe(place)
    assert isinstance(seen, Observation)
    return seen


def test_its_files_are_in_their_buckets_by_the_names_that_spark_gave_them(
    lake: BucketedLake, hive: HiveMetastore
) -> None:
    parquet(lake, "kept", "SELECT id, CAST(id AS STRING) AS v FROM range(100)")
    seen = converted(lake, hive, "kept")
    assert layout_in(seen.properties) == LAYOUT == seen.buckets
    assert seen.warnings == (), "no file is in no bucket"
    before = lake.files("kept")
    assert before and all("_0000" in one for one in before)
    assert lake.because(UPSERT.format("kept")) == ""
    (counts,) = lake.lw.sql(UPSERT.format("kept")).collect()
    assert (counts["num_updated_rows"], counts["num_inserted_rows"]) == (10, 10)
    assert lake.rows("kept") == sorted([(i, str(i) if i < 90 else "new") for i in range(110)], key=repr)
    assert lake.strays("kept") == len(set(before) & set(lake.files("kept")))


@pytest.mark.long
def test_rows_that_are_in_other_buckets_than_their_files_say_are_left_to_merge(
    lake: BucketedLake, hive: HiveMetastore
) -> None:
    parquet(lake, "wrong", "SELECT id, CAST(id AS STRING) AS v FROM range(100)")
    first, second = sorted((lake.folder / "wrong").glob("part-*.parquet"))[:2]
    aside = first.with_suffix(".aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    for crc in (lake.folder / "wrong").glob(".*.crc"):
        crc.unlink()
    converted(lake, hive, "wrong")
    lake.sql(UPSERT.format("wrong"))
    assert lake.rows("wrong") == sorted([(i, str(i) if i < 90 else "new") for i in range(110)], key=repr)


@pytest.mark.long
def test_an_empty_one_and_one_whose_conversion_was_cut_off_keep_them_too(
    lake: BucketedLake, hive: HiveMetastore
) -> None:
    lake.spark.sql(
        f"CREATE TABLE empty (id BIGINT, v STRING) USING parquet CLUSTERED BY (id) SORTED BY (id) INTO 4 BUCKETS "
        f"LOCATION '{lake.folder / 'empty'}'"
    )
    assert converted(lake, hive, "empty").buckets == LAYOUT
    lake.sql(UPSERT.format("empty"))
    assert len(lake.rows("empty")) == 20 and lake.strays("empty") == 0
    parquet(lake, "again", "SELECT id, CAST(id AS STRING) AS v FROM range(9)")
    told = ", ".join(f"'{key}' = '{value}'" for key, value in LAYOUT.properties.items())
    lake.spark.sql(
        f"ALTER TABLE again SET TBLPROPERTIES ({told})"
    )  # what a kill before the first commit leaves
    assert converted(lake, hive, "again").buckets == LAYOUT
