"""Vacuum and purge on a real HDFS, with Spark's second opinion:
deletion, companions and folders are the storage's own."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.files_elsewhere import with_reach
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.model.rows import Source, TableRow
from lakewarden.catalog.storage.file_store import FileStore, StorageOptions, open_store
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.deletion.table_folder import look_into, unknown_token
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.engines.spark.names import table_at
from lakewarden.jobs.runs.port import JobContext, Report, Target
from lakewarden.jobs.worker.dispatch import execute
from support.fakes.clock import ManualClock
from support.fakes.managed_guard import ManagedGuard
from support.servers.hdfs import Hdfs

pytestmark = [pytest.mark.spark, pytest.mark.hdfs]

READER = DeltaReader()


@pytest.fixture
def location(spark: SparkSession, hdfs: Hdfs) -> str:
    """A partitioned table of two live files, with three removed ones and an old orphan."""
    place = f"{hdfs.uri}/deletion/{time.monotonic_ns()}"
    table = table_at(place)
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 1 second')"
    )
    for number in range(3):
        spark.sql(f"INSERT OVERWRITE {table} VALUES ({number}, 'a b')")
    spark.sql(f"INSERT INTO {table} VALUES (9, 'ü')")
    spark.sql(f"INSERT INTO {table} VALUES (8, 'gone')")
    spark.sql(f"DELETE FROM {table} WHERE p = 'gone'")
    open_store(place).write("orphan ü.parquet", b"x")
    time.sleep(1.1)
    return place


def seen(location: str) -> Observation:
    found = READER.observe(location)
    assert isinstance(found, Observation), found
    return found


def run(spark: SparkSession, location: str, action: AnyAction, managed: tuple[TableRow, ...] = ()) -> Report:
    clock = ManualClock(datetime.now(UTC) + timedelta(days=30))
    ctx = JobContext(
        target=Target(table_id="t1", name="db.t", location=location),
        run_id="run-1",
        reader=READER,
        clock=clock,
        engine=DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=clock),
        metastore=None,
        still_ours=lambda: None,
        guard=ManagedGuard(managed),
    )
    return execute(ctx, action)


def files(store: FileStore) -> set[str]:
    return {
        entry.path
        for entry in store.list("", recursive=True)
        if not entry.is_dir and not entry.path.startswith("_delta_log/")
    }


@pytest.mark.long
def test_a_vacuum_deletes_what_nobody_needs_and_a_purge_the_rest(spark: SparkSession, location: str) -> None:
    store, head = open_store(location), seen(location)
    rows = sorted(spark.sql(f"SELECT id FROM {table_at(location)}").collect())
    wanted = Vacuum(
        requires=head.at,
        retention_seconds=1,
        full=True,
        max_share=1.0,
    )
    live = {file.path for file in READER.files(location)}
    done = run(spark, location, wanted)
    assert done.files == 4, done
    assert files(store) == live
    assert sorted(spark.sql(f"SELECT id FROM {table_at(location)}").collect()) == rows
    head = seen(location)
    assert done.committed_version == head.version and head.last_vacuum_at is not None
    store.write("exports/mine.csv", b"mine")
    token = unknown_token(look_into(store, None, READER).unknown)
    purge = Purge(requires=head.at, unknown=token, files=2, bytes=1)
    store.write("beside", b"x")
    with pytest.raises(RefusedError, match="nobody agreed"):
        run(spark, location, purge)
    store.delete("beside")
    run(spark, location, purge)
    assert list(store.list("", recursive=True)) == []


@pytest.mark.long
def test_what_a_clone_reads_by_another_name_of_the_cluster_stays(spark: SparkSession, location: str) -> None:
    other = location.replace("127.0.0.1", "localhost")
    assert other != location
    clone = f"{other}_clone"
    spark.sql(f"CREATE TABLE {table_at(clone)} SHALLOW CLONE {table_at(other)}")
    rows = sorted(spark.sql(f"SELECT id FROM {table_at(clone)}").collect())
    spark.sql(f"INSERT OVERWRITE {table_at(location)} VALUES (7, 'new')")
    time.sleep(1.1)
    row = TableRow(
        row=9,
        table_id="clone",
        name="db.clone",
        format=READER.format,
        location=clone,
        source=Source.REGISTER,
        registered_at=datetime.now(UTC),
        registered_by="ana",
        updated_at=datetime.now(UTC),
        updated_by="ana",
        properties=with_reach({}, clone, seen(clone).elsewhere),
    )
    head = seen(location).at
    for full in (False, True):
        action = Vacuum(requires=head, retention_seconds=1, full=full, max_share=1.0)
        run(spark, location, action, (row,))
        assert sorted(spark.sql(f"SELECT id FROM {table_at(clone)}").collect()) == rows
        head = seen(location).at
    with pytest.raises(RefusedError, match=r"db\.clone reads files of db\.t"):
        run(spark, location, Purge(requires=head, unknown=None, files=2, bytes=1), (row,))
