"""Tables by path and a session that upserts into them."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

import lakewarden
from lakewarden.catalog.formats.port import Commit
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.session.attached import Attached

__all__ = ["Lake", "attached_database", "running_lake"]


@dataclass
class Lake:
    """A database of the module's own; each test has a folder in it."""

    spark: SparkSession
    lw: Attached
    services: Services
    database: str
    folder: Path

    def rows(self, *rows: tuple[Any, ...], schema: str = "id bigint, v string, ts int") -> DataFrame:
        return self.spark.createDataFrame(list(rows), schema)

    def table(
        self, *rows: tuple[Any, ...], schema: str = "id bigint, v string, ts int", **creation: Any
    ) -> str:
        """A path with these rows in it: by Spark if it has partitions or options, else by delta-rs, which is quick."""
        path = str(self.folder / uuid.uuid4().hex[:8])
        if not creation:
            columns = StructType.fromDDL(schema)
            assert isinstance(columns, StructType)
            arrow = to_arrow_schema(columns)
            named = [dict(zip(arrow.names, row, strict=True)) for row in rows]
            write_deltalake(path, pa.Table.from_pylist(named, schema=arrow))
            return path
        writer = self.rows(*rows, schema=schema).coalesce(1).write.format("delta")
        for key, value in creation.items():
            writer = writer.partitionBy(value) if key == "partitioned" else writer.option(key, value)
        writer.save(path)
        return path

    def held(self, table: str) -> list[tuple[Any, ...]]:
        rows = DeltaTable(table).to_pyarrow_table().to_pylist()
        return sorted((tuple(row.values()) for row in rows), key=repr)

    def commits(self, table: str) -> list[Commit]:
        return list(self.services.readers[0].commits(Path(table).as_uri(), after=-1))


@contextmanager
def attached_database(spark: SparkSession, folder: Path) -> Iterator[tuple[Attached, Services, str]]:
    """A session attached to a home of its own, and the name of a database of its own."""
    database = f"u_{uuid.uuid4().hex[:10]}"
    services = open_services(home=folder / "home", flags={})
    initialise(services, services.user)
    spark.sql(f"CREATE DATABASE {database}")
    with lakewarden.attach(spark, home=services.settings.home) as lw:
        yield lw, services, database
    spark.sql(f"DROP DATABASE {database} CASCADE")


@contextmanager
def running_lake(spark: SparkSession, folder: Path) -> Iterator[Lake]:
    """A home and a database of its own."""
    with attached_database(spark, folder) as (lw, services, database):
        yield Lake(spark, lw, services, database, folder)
