"""Rollbacks of tables that delta-rs must not write:
by a transaction of Delta's own, on exactly the expected version."""

import gc
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.lineage.versions import is_blind_restore
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.engines.delta import rs_restore
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.engines.delta.rs_metadata import RsTable
from lakewarden.jobs.engines.spark.names import table_at
from support.builders.rollbacks import Lake
from support.cases import mostly_long

pytestmark = pytest.mark.spark

FEATURES = {
    "row tracking": "TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    "in-commit timestamps": "TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
    "clustering": "CLUSTER BY (id)",
}
OF_ONE_TABLE = 2
"""At most so many states of a table does Spark keep after a restore."""
BOTH = "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'true')"


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lake:
    lake = Lake(tmp_path)
    lake.engine = DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    return lake


def table(spark: SparkSession, lake: Lake, name: str, feature: str = "row tracking") -> str:
    """A table of three inserts, one id each, with a feature that delta-rs does not write. Returns its SQL name."""
    sql = table_at(lake.location(name))
    spark.sql(f"CREATE TABLE {sql} (id BIGINT) USING delta {FEATURES.get(feature, BOTH)}")
    for number in (1, 2, 3):
        spark.sql(f"INSERT INTO {sql} VALUES ({number})")
    return sql


def rows(spark: SparkSession, sql: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {sql}").collect())


@pytest.mark.parametrize("feature", mostly_long(FEATURES, ["row tracking"]))
def test_spark_restores_what_delta_rs_must_not_and_the_undo_brings_it_again(
    spark: SparkSession, lake: Lake, feature: str
) -> None:
    sql = table(spark, lake, "t", feature)
    location, head = lake.location("t"), lake.seen("t").version
    at = RsTable(location=location, storage=StorageOptions())
    assert rs_restore.restore(at, requires=head, to=head - 1, run_id="r", apps=()) is None
    lake.append("plain", 1)
    lake.append("plain", 2)
    lake.begin(lake.step("plain", 0), lake.step("t", head - 2, wave=1))
    done = lake.go_on()
    assert (done.head.state, done.steps[1].new_version) == (State.DONE, head + 1)
    assert (rows(spark, sql), lake.rows("plain")) == ([1], [1])
    assert lake.undo().head.state is State.COMPENSATED
    assert (rows(spark, sql), lake.rows("plain")) == ([1, 2, 3], [1, 2])


@pytest.mark.long
def test_what_spark_keeps_of_a_table_is_let_go_with_the_next(spark: SparkSession, lake: Lake) -> None:
    places = [lake.location(name) for name in ("a", "b", "c")]
    for place in places:
        table(spark, lake, Path(place).name)
    for place in places:
        head = lake.seen(Path(place).name).version
        lake.engine.restore(place, requires=Head(head), to=head - 1, apps=(), run_id="r")
    jvm: Any = spark.sparkContext._jvm
    context, until = spark.sparkContext._jsc.sc(), time.monotonic() + 20
    # `getPersistentRDDs` would itself hold what it counts, as long as Python holds its answer.
    while (kept := len(context.getRDDStorageInfo())) > OF_ONE_TABLE and time.monotonic() < until:
        gc.collect()
        jvm.java.lang.System.gc()  # Spark's own cleaner waits for that
        time.sleep(0.2)
    assert 0 < kept <= OF_ONE_TABLE


@pytest.mark.long
def test_a_fence_by_spark_keeps_out_whoever_comes_with_its_transaction_on_any_version(
    spark: SparkSession, lake: Lake
) -> None:
    sql, location = table(spark, lake, "t"), lake.location("t")
    head = lake.seen("t").version
    assert lake.engine.fence(location, requires=Head(head), run_id="r", app="group") == head + 1
    late = spark.newSession()
    late.conf.set("spark.databricks.delta.write.txnAppId", "group")
    late.conf.set("spark.databricks.delta.write.txnVersion", "1")
    late.sql(f"DELETE FROM {sql}")
    assert (rows(spark, sql), lake.seen("t").version) == ([1, 2, 3], head + 1)


@pytest.mark.long
def test_spark_takes_files_out_and_adds_them_again_where_delta_rs_must_not(
    spark: SparkSession, lake: Lake
) -> None:
    sql = table(spark, lake, "t", "both")
    head = lake.seen("t").version
    lake.begin(lake.without("t", head - 1))
    assert lake.go_on().head.state is State.DONE
    assert rows(spark, sql) == [1, 3]
    assert lake.undo().head.state is State.COMPENSATED
    assert rows(spark, sql) == [1, 2, 3]
    lake.begin(lake.step("t", head - 2), lake.again("t", head), rollback_id="r2")
    assert lake.go_on("r2").head.state is State.DONE
    assert (rows(spark, sql), lake.seen("t").version) == ([1, 3], head + 4)
    made = list(lake.reader.commits(lake.location("t"), after=head + 3))
    assert [(one.run_id, one.added_files, one.removed_files) for one in made] == [("rollback-r2-3", 1, 0)]
    ids = [row[0] for row in spark.sql(f"SELECT _metadata.row_id FROM {sql}").collect()]
    assert len(set(ids)) == 2, "each row keeps an id of its own"


@pytest.mark.long
def test_a_target_older_than_the_tables_retention_is_restored_while_its_files_are_there(
    spark: SparkSession, lake: Lake
) -> None:
    sql = table(spark, lake, "t")
    spark.sql(
        f"ALTER TABLE {sql} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours')"
    )
    head = lake.seen("t").version
    lake.begin(lake.step("t", head - 3))
    assert lake.go_on().head.state is State.DONE
    assert rows(spark, sql) == [1]
    kept = lake.seen("t").properties["delta.deletedFileRetentionDuration"]
    assert kept == "interval 0 hours"


@pytest.mark.long
def test_where_sparks_restore_by_time_went_is_found_by_its_files(spark: SparkSession, lake: Lake) -> None:
    location = lake.location("t")
    sql = table_at(location)
    spark.sql(
        f"CREATE TABLE {sql} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(f"INSERT INTO {sql} VALUES (1), (2)")
    spark.sql(f"DELETE FROM {sql} WHERE id = 1")
    spark.sql(f"INSERT INTO {sql} VALUES (9)")
    (deleted,) = lake.reader.commits(location, after=1, upto=2)
    spark.sql(f"RESTORE TABLE {sql} TO TIMESTAMP AS OF '{deleted.committed_at.isoformat()}'")
    (made,) = lake.reader.commits(location, after=3)
    assert is_blind_restore(made), made.parameters
    assert lake.reader.restored(location, version=made.version) == 2
    assert rows(spark, sql) == [2]
