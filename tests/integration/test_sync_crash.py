"""Killed with -9 around a change of a real Hive metastore, or between two steps of a real Spark session."""

import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, convert_to_deltalake, write_deltalake
from pyspark.sql import SparkSession

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Head, Observation
from lakewarden.catalog.metastore.entry_statistics import recorded_in
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.port import Entry, EntryColumn
from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.actions.statistics import RefreshStatistics
from lakewarden.jobs.actions.sync import SyncMetastore
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.runs.spark_settings import SparkSettings
from support.builders.entries import new_entry
from support.builders.runs import parquet_file, request_of
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here
from support.processes import metastore_worker
from support.processes.commands import command
from support.processes.workers import SPARK, Hall
from support.servers.metastores import without_system_tables

pytestmark = [pytest.mark.crash, pytest.mark.metastore]

DATABASE = "killed"
TABLES = Path(__file__).parents[1] / "data" / "tables"
PARQUET = "org.apache.hadoop.hive.ql.io.parquet"


@pytest.fixture(scope="module")
def store(metastore: EmbeddedMetastore) -> Iterator[HiveMetastore]:
    connected = HiveMetastore(metastore.uri)
    connected.create_database(DATABASE)
    yield connected
    connected.close()


@dataclass(frozen=True, kw_only=True)
class Drifted:
    """A table whose metastore entry is behind: one column is missing there, one file has no statistics."""

    name: str
    location: str
    version: int


def seen_at(location: str) -> Observation:
    seen = DeltaReader().observe(location)
    assert isinstance(seen, Observation)
    return seen


def drifted(folder: Path, store: HiveMetastore) -> Drifted:
    name = folder.name.replace(".", "_")
    parquet_file(folder / "a.parquet")
    convert_to_deltalake(str(folder), collect_stats=False)
    location = canonical(str(folder))
    store.drop(DATABASE, name)
    entry = new_entry(
        seen_at(location), database=DATABASE, table=name, table_id=f"id of {location}", location=location
    )
    store.create(entry)
    rows = pa.table({"id": pa.array([1], pa.int64()), "late": pa.array([2], pa.int64())})
    write_deltalake(str(folder), rows, mode="append", schema_mode="merge")
    return Drifted(name=f"{DATABASE}.{name}", location=location, version=1)


def action_at(point: str, table: Drifted) -> AnyAction:
    if point.startswith("statistics"):
        return RefreshStatistics(requires=Head(table.version), name=table.name)
    return SyncMetastore(requires=Head(table.version), name=table.name)


@pytest.mark.parametrize("point", mostly_long(points_of("test_a_sync_killed_converges"), ()))
def test_a_sync_killed_converges(
    tmp_path: Path, metastore: EmbeddedMetastore, store: HiveMetastore, point: str
) -> None:
    settings = SparkSettings(metastore_uri=metastore.uri)
    hall = Hall(tmp_path, program=(metastore_worker.__file__,), spark=settings)

    def killed() -> None:
        assert hall.run_worker(failpoint=point) == -signal.SIGKILL, hall.log()

    check_a_sync_converges(hall, store, point, killed, hall.run_worker)


@pytest.mark.parametrize("point", points_of("test_a_sync_killed_converges"))
def test_a_sync_ended_converges(
    tmp_path: Path, metastore: EmbeddedMetastore, store: HiveMetastore, point: str
) -> None:
    """As above, without processes to kill."""
    hall = Hall(tmp_path, spark=SparkSettings(metastore_uri=metastore.uri))

    def ended() -> None:
        killed_here(point, hall.loop(HiveMetastore).work)

    check_a_sync_converges(hall, store, point, ended, lambda: hall.loop(HiveMetastore).work())


def check_a_sync_converges(
    hall: Hall, store: HiveMetastore, point: str, killed: Callable[[], None], work: Callable[[], int]
) -> None:
    table = drifted(hall.folder / point, store)
    before = store.get(*table.name.split("."))
    hall.enqueue(request_of(table.location, action_at(point, table), name=table.name))
    killed()
    between = store.get(*table.name.split("."))
    assert (between == before) == (point == "sync.decided")
    hall.settle()
    assert work() == 0, hall.log()
    result, entry = hall.results()["run-1"], store.get(*table.name.split("."))
    assert entry is not None
    if point == "statistics.recorded":
        recorded = recorded_in(entry.parameters)
        assert recorded is not None and recorded.version == table.version
        assert entry == between, "the second attempt leaves the entry alone"
        assert hall.commits_of(table.location, "run-1") == [2]
        assert seen_at(table.location).files_without_statistics == 0
    else:
        assert [column.name for column in entry.columns] == ["id", "late"]
        assert result.outcome is (Outcome.SUCCEEDED if point == "sync.decided" else Outcome.SKIPPED)


@pytest.mark.parametrize("point", points_of("test_enlisting_killed_is_taken_up_by_the_next_init"))
def test_enlisting_killed_is_taken_up_by_the_next_init(
    tmp_path: Path, metastore: EmbeddedMetastore, store: HiveMetastore, point: str
) -> None:
    settings = {"LAKEWARDEN_METASTORE_URI": metastore.uri}
    without_system_tables(metastore.uri)
    try:
        killed = command(tmp_path, "init", failpoint=point, settings=settings)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert len(store.tables("lakewarden")) == 3
        again = command(tmp_path, "init", settings=settings)
        assert again.returncode == 0, again.stderr
        assert len(store.tables("lakewarden")) == 7
    finally:
        without_system_tables(metastore.uri)


def empty_parquet_table(folder: Path, store: HiveMetastore) -> tuple[str, Convert]:
    folder.mkdir()
    location = canonical(str(folder))
    store.drop(DATABASE, "empty")
    store.create(
        Entry(
            database=DATABASE,
            table="empty",
            location=location,
            provider=None,
            table_type="EXTERNAL_TABLE",
            columns=(EntryColumn(name="id", type="bigint"),),
            parameters={"EXTERNAL": "TRUE"},
            input_format=f"{PARQUET}.MapredParquetInputFormat",
            output_format=f"{PARQUET}.MapredParquetOutputFormat",
            serde=f"{PARQUET}.serde.ParquetHiveSerDe",
        )
    )
    return location, Convert(name=f"{DATABASE}.empty", location=location)


def table_with_vectors(folder: Path) -> tuple[str, Compact]:
    shutil.copytree(TABLES / "vectors", folder)
    location = canonical(str(folder))
    head = seen_at(location).version
    action = Compact(requires=Head(head), target_bytes=1, min_small_files=1_000, quiet_seconds=0, purge=True)
    return location, action


@pytest.mark.long
@pytest.mark.spark
def test_a_spark_worker_killed_between_two_steps_of_an_engine(
    tmp_path: Path, metastore: EmbeddedMetastore, store: HiveMetastore
) -> None:
    settings = SparkSettings(master="local[2]", metastore_uri=metastore.uri)
    hall = Hall(tmp_path, program=SPARK, spark=settings)

    def killed(point: str) -> None:
        assert hall.run_worker(failpoint=point) == -signal.SIGKILL, hall.log()

    check_what_an_engine_does_is_done_once(hall, store, killed, hall.run_worker)


@pytest.mark.spark
def test_a_spark_worker_ended_between_two_steps_of_an_engine(
    tmp_path: Path, spark: SparkSession, metastore: EmbeddedMetastore, store: HiveMetastore
) -> None:
    """As above, in the suite's own session."""
    hall = Hall(tmp_path, spark=SparkSettings(metastore_uri=metastore.uri))

    def work() -> int:
        return hall.loop(
            HiveMetastore,
            lambda clock, _: DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=clock),
        ).work()

    check_what_an_engine_does_is_done_once(hall, store, lambda point: killed_here(point, work), work)


def check_what_an_engine_does_is_done_once(
    hall: Hall, store: HiveMetastore, killed_at: Callable[[str], None], work: Callable[[], int]
) -> None:
    deeds: dict[str, tuple[str, AnyAction]] = {
        "convert.entry": empty_parquet_table(hall.folder / "empty", store),
        "compact.purged": table_with_vectors(hall.folder / "vectors"),
    }
    points = points_of("test_a_spark_worker_killed_between_two_steps_of_an_engine")
    for rank, point in enumerate(points):
        location, action = deeds[point]
        hall.enqueue(request_of(location, action, run_id=point, rank=float(rank)))
        killed_at(point)
        hall.settle()
    assert work() == 0, hall.log()
    for point in points:
        assert hall.results()[point].outcome is Outcome.SUCCEEDED, hall.log()
        assert len(hall.commits_of(deeds[point][0], point)) == 1, point
    entry = store.get(DATABASE, "empty")
    assert entry is not None and entry.provider == "delta"
    assert not any(file.has_deletion_vector for file in DeltaReader().files(deeds["compact.purged"][0]))
    assert DeltaTable(deeds["convert.entry"][0]).to_pyarrow_table().num_rows == 0
