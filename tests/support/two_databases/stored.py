"""How a database's tables are stored in Spark: as Delta tables, or as Iceberg tables of a metastore."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

__all__ = ["AsDelta", "AsIceberg", "Stored"]


class Stored(Protocol):
    """The tables of Spark's current database, by their names."""

    @property
    def tells_updates(self) -> bool:
        """Whether an UPDATE always says how many rows it changed."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What an installation that manages them is told."""

    def place(self, name: str) -> str:
        """By what a table is registered."""

    def create(self, name: str, rows: pa.Table) -> None:
        """Make a table of these rows."""

    def fill(self, name: str, rows: pa.Table) -> None:
        """Put these rows in place of those that it holds."""

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """What it holds."""


@dataclass(frozen=True)
class AsDelta:
    """Delta tables in folders of their own, read and filled beside Spark."""

    spark: SparkSession
    folder: Path
    tells_updates: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)

    def place(self, name: str) -> str:
        return str(self.folder / name)

    def create(self, name: str, rows: pa.Table) -> None:
        self.fill(name, rows)
        self.spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{self.folder / name}'")

    def fill(self, name: str, rows: pa.Table) -> None:
        write_deltalake(self.folder / name, rows, mode="overwrite")

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        found = DeltaTable(self.folder / name).to_pyarrow_table().to_pylist()
        return [tuple(row.values()) for row in found]


@dataclass(frozen=True)
class AsIceberg:
    """Iceberg tables of a format version that is written copy-on-write or merge-on-read."""

    spark: SparkSession
    uri: str
    """Of the metastore."""
    mode: str
    version: int

    @property
    def tells_updates(self) -> bool:
        return self.mode == "merge-on-read"

    @property
    def settings(self) -> Mapping[str, str]:
        return {"metastore.uri": self.uri}

    def place(self, name: str) -> str:
        return f"{self.spark.catalog.currentDatabase()}.{name}"

    def create(self, name: str, rows: pa.Table) -> None:
        columns = ", ".join(f"{one.name} {_NAMES[one.type]}" for one in rows.schema)
        told = {f"write.{change}.mode": self.mode for change in ("delete", "update", "merge")}
        # A metastore's locks are in tables that the embedded one does not have.
        told |= {"format-version": str(self.version), "engine.hive.lock-enabled": "false"}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in told.items())
        self.spark.sql(f"CREATE TABLE {self._named(name)} ({columns}) USING iceberg TBLPROPERTIES ({listed})")
        self.fill(name, rows)

    def fill(self, name: str, rows: pa.Table) -> None:
        self.spark.createDataFrame(rows).writeTo(self._named(name)).overwrite(lit(True))

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.table(self._named(name)).collect()]

    def _named(self, name: str) -> str:
        return f"iceberg.{self.place(name)}"


_NAMES = {pa.int32(): "INT", pa.string(): "STRING", pa.float64(): "DOUBLE"}
