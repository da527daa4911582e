"""A session that is attached to a home and a database of its own, for tests of bucketed tables."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakewarden.daemon.installation.services import Services
from lakewarden.jobs.session.attached import Attached
from support.builders.lakes import attached_database

__all__ = ["BUCKETS", "BucketedLake", "bucketed_lake", "executed", "swap_names_of_files"]

BUCKETS = "CLUSTERED BY (id) SORTED BY (id) INTO 4 BUCKETS"


@dataclass
class BucketedLake:
    """Tables are made in the folder."""

    spark: SparkSession
    lw: Attached
    services: Services
    folder: Path

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a governed statement."""
        return [tuple(row) for row in self.lw.sql(text).collect()]

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """All rows, in a fixed order."""
        return sorted((tuple(row) for row in self.spark.sql(f"SELECT * FROM {table}").collect()), key=repr)

    def make(self, table: str, values: str, buckets: str = BUCKETS) -> None:
        """Make a table anew."""
        self.spark.sql(f"DROP TABLE IF EXISTS {table}")
        shutil.rmtree(self.folder / table, ignore_errors=True)
        self.lw.sql(
            f"CREATE TABLE {table} USING delta {buckets} LOCATION '{self.folder / table}' AS SELECT * FROM {values}"
        )

    def log(self, table: str) -> DeltaTable:
        """Its log as it is now."""
        return DeltaTable(self.folder / table)

    def files(self, table: str) -> list[str]:
        """The names of its files."""
        return sorted(Path(one).name for one in self.log(table).file_uris())

    def strays(self, table: str, count: int = 4) -> int:
        """How many of its files are in no bucket."""
        return sum(not one.startswith(f"lw{count}-") for one in self.files(table))

    def because(self, statement: str) -> str:
        """Why a statement is left to Delta's MERGE; empty if it is done bucket by bucket."""
        (row,) = self.lw.sql(f"EXPLAIN GOVERNED {statement}").collect()
        _, _, told = str(row["notes"]).partition("Its buckets are of no use to this statement: ")
        assert told or "buckets are joined one by one" in str(row["notes"]), "one of both is said"
        return told


@contextmanager
def bucketed_lake(spark: SparkSession, folder: Path) -> Iterator[BucketedLake]:
    """The session uses its database."""
    with attached_database(spark, folder) as (lw, services, database):
        spark.sql(f"USE {database}")
        yield BucketedLake(spark, lw, services, folder)
        spark.sql("USE default")


def executed(spark: SparkSession) -> list[tuple[int, str]]:
    """The executions that Spark remembers, all that have ended among them: their numbers and plans. It forgets old
    ones."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    each = (found.apply(number) for number in range(found.size()))
    return [(int(one.executionId()), str(one.physicalPlanDescription())) for one in each]


def swap_names_of_files(lake: BucketedLake, table: str) -> None:
    """Two files of a table change their names, in its log as well."""
    first, second = lake.files(table)[:2]
    commit = lake.folder / table / "_delta_log" / f"{0:020}.json"
    text = commit.read_text().replace(first, "X").replace(second, first).replace("X", second)
    for crc in (lake.folder / table / "_delta_log").glob(".*.crc"):
        crc.unlink()
    commit.write_text(text)
    (lake.folder / table / first).rename(lake.folder / table / "X")
    (lake.folder / table / second).rename(lake.folder / table / first)
    (lake.folder / table / "X").rename(lake.folder / table / second)
    for crc in (lake.folder / table).glob(".*.crc"):
        crc.unlink()
    forget = lake.spark.sparkContext._jvm
    assert forget is not None
    forget.org.apache.spark.sql.delta.DeltaLog.clearCache()
