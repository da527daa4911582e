"""Governed writes on a real Spark session: what each commit says it read is what was read, whatever came in between."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.access import Actor
from lakewarden.catalog.formats.base import Commit
from lakewarden.catalog.lineage.record import LineageRecord, Operation
from lakewarden.catalog.registry.register import register
from lakewarden.daemon.setup import initialise
from lakewarden.daemon.wiring import Services, open_services
from lakewarden.jobs.attach import Attached

pytestmark = pytest.mark.spark

ANA = Actor(name="ana", admin=True, origin="test")
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass
class Lake:
    """A database of the test's own, an installation, and a session attached to it."""

    spark: SparkSession
    lw: Attached
    services: Services
    database: str
    folder: Path

    def table(self, name: str, rows: str = "SELECT id, id * 10 AS v FROM range(5)", more: str = "") -> str:
        """A Delta table at version 0."""
        self.spark.sql(f"CREATE TABLE {self.database}.{name} USING delta {more} AS {rows}")
        return f"{self.database}.{name}"

    def location(self, table: str) -> str:
        """The folder of a table."""
        where = self.spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]["location"]
        return str(where).removeprefix("file:")

    def foreign(self, table: str, identity: int) -> None:
        """Somebody else, without Spark, appends one row; Spark's caches do not hear of it."""
        rows = pa.table({"id": pa.array([identity], pa.int64()), "v": pa.array([identity * 10], pa.int64())})
        write_deltalake(self.location(table), rows, mode="append")

    def head(self, table: str) -> Commit:
        """The newest commit as the log reader tells it."""
        return self.commits(table)[-1]

    def commits(self, table: str) -> list[Commit]:
        return list(self.services.readers[0].commits(f"file://{self.location(table)}", after=-1))

    def record(self, table: str) -> LineageRecord:
        """The record in the newest commit."""
        record = self.head(table).lineage
        assert record is not None
        return record

    def reads(self, table: str) -> list[tuple[str, int | None]]:
        """The inputs of the newest commit: (folder's name or format, version)."""
        return [
            (one.location.rpartition("/")[2] if one.version is not None else one.format, one.version)
            for one in self.record(table).inputs
        ]

    def ids(self, table: str) -> list[int]:
        return sorted(row["id"] for row in self.spark.table(table).collect())


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Services]:
    home = tmp_path_factory.mktemp("home")
    services = open_services(home=home)
    initialise(services)
    return home, services


@pytest.fixture
def lake(spark: SparkSession, installation: tuple[Path, Services], tmp_path: Path) -> Iterator[Lake]:
    home, services = installation
    database = f"g_{uuid.uuid4().hex[:10]}"
    spark.sql(f"CREATE DATABASE {database}")
    with lakewarden.attach(spark, home=home) as lw:
        yield Lake(spark, lw, services, database, tmp_path)
    spark.catalog.clearCache()
    spark.sql(f"DROP DATABASE {database} CASCADE")


def test_an_append_of_a_derived_table_carries_its_edge_in_the_commit(lake: Lake) -> None:
    source, derived = (
        lake.table("source"),
        lake.table("derived", "SELECT id, v FROM VALUES (0L, 0L) AS t(id, v)"),
    )
    managed = register(lake.services.desk, lake.location(source), actor=ANA, name=source).row
    lake.spark.sql(f"INSERT INTO {source} VALUES (7, 70)")
    written = lake.lw.write(lake.lw.table(source).where("id > 2")).append(derived)
    record = lake.record(derived)
    assert (record.run_id, record.operation) == (written.run_id, Operation.APPEND)
    assert [(one.table_id, one.format, one.version) for one in record.inputs] == [
        (managed.table_id, "delta", 1)
    ]
    assert record.inputs[0].format_id == managed.format_ids[-1]
    assert written.observed.seen and written.observed.unrecorded == () == written.observed.unused
    assert not record.reads_self
    assert lake.ids(derived) == [0, 3, 4, 7]
