"""How a database's tables are stored in Spark: as Delta tables, or as Iceberg tables of a metastore."""

import json
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from lakewarden.catalog.model.bucket_layout import BucketLayout
from lakewarden.jobs.engines.delta.sessions.bucket_files import as_set, naming

__all__ = ["AsBoth", "AsBuckets", "AsDelta", "AsIceberg", "AsVectors", "Beside", "Stored"]


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


LAYOUT = BucketLayout(columns=("k",), count=3)


@dataclass(frozen=True)
class AsBuckets(AsDelta):
    """Delta tables with buckets by k, each row in its own."""

    def create(self, name: str, rows: pa.Table) -> None:
        columns = ", ".join(f"{one.name} {_NAMES[one.type]}" for one in rows.schema)
        told = ", ".join(f"'{key}' = '{value}'" for key, value in LAYOUT.properties.items())
        place = self.folder / name
        self.spark.sql(
            f"CREATE TABLE {name} ({columns}) USING delta LOCATION '{place}' TBLPROPERTIES ({told})"
        )
        self.fill(name, rows)

    def fill(self, name: str, rows: pa.Table) -> None:
        table, added = DeltaTable(self.folder / name), list[AddAction | RemoveAction]()
        buckets = [_bucket(value) for value in rows["k"].to_pylist()]
        for number in range(LAYOUT.count):
            mine = rows.filter(pa.array([one == number for one in buckets], pa.bool_()))
            path = f"{LAYOUT.mark}part-{number:05}-{uuid.uuid4()}-c000.parquet"
            pq.write_table(mine, self.folder / name / path)
            size = (self.folder / name / path).stat().st_size
            statistics = json.dumps({"numRecords": mine.num_rows})
            now = int(time.time() * 1000)
            added.append(AddAction(path, size, {}, now, True, statistics))
        table.create_write_transaction(added, "overwrite", table.schema(), [])


@dataclass(frozen=True)
class AsVectors(AsDelta):
    """Delta tables with deletion vectors, which Spark alone reads and fills."""

    told: Mapping[str, str] = field(default_factory=dict)
    """Further properties."""
    layout: BucketLayout | None = None
    """Of buckets, which rows are put into."""

    def create(self, name: str, rows: pa.Table) -> None:
        columns = ", ".join(f"{one.name} {_NAMES[one.type]}" for one in rows.schema)
        buckets = {} if self.layout is None else self.layout.properties
        told = {"delta.enableDeletionVectors": "true", **buckets, **self.told}
        self.spark.sql(
            f"CREATE TABLE {name} ({columns}) USING delta LOCATION '{self.folder / name}' "
            f"TBLPROPERTIES ({_listed(told)})"
        )
        self.fill(name, rows)

    def fill(self, name: str, rows: pa.Table) -> None:
        frame, session = self.spark.createDataFrame(rows), self.spark._jsparkSession
        if self.layout is None:
            frame = frame.repartition(_FILES)
        else:
            frame = frame.repartition(self.layout.count, *self.layout.columns)
        with as_set(session, {} if self.layout is None else naming(session, self.layout)):
            frame.write.format("delta").mode("overwrite").save(str(self.folder / name))

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.table(name).collect()]


@dataclass(frozen=True)
class AsIceberg:
    """Iceberg tables of a format version that is written copy-on-write or merge-on-read."""

    spark: SparkSession
    uri: str
    """Of the metastore."""
    mode: str
    version: int
    told: Mapping[str, str] = field(default_factory=dict)
    """Further properties."""
    files: int | None = None
    """Into so many files rows are put; None: as Spark likes."""

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
        told |= {"format-version": str(self.version), "engine.hive.lock-enabled": "false", **self.told}
        self.spark.sql(
            f"CREATE TABLE {self._named(name)} ({columns}) USING iceberg TBLPROPERTIES ({_listed(told)})"
        )
        self.fill(name, rows)

    def fill(self, name: str, rows: pa.Table) -> None:
        frame = self.spark.createDataFrame(rows)
        frame = frame if self.files is None else frame.repartition(self.files)
        frame.writeTo(self._named(name)).overwrite(lit(True))

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.table(self._named(name)).collect()]

    def _named(self, name: str) -> str:
        return f"iceberg.{self.place(name)}"


class _OfTwoKinds(ABC):
    """Tables of which each is stored in one of two ways, as its name says."""

    def place(self, name: str) -> str:
        return self._of(name).place(name)

    def create(self, name: str, rows: pa.Table) -> None:
        self._of(name).create(name, rows)

    def fill(self, name: str, rows: pa.Table) -> None:
        self._of(name).fill(name, rows)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return self._of(name).rows(name)

    @abstractmethod
    def _of(self, name: str) -> Stored:
        """The way of the table that is called so."""


@dataclass(frozen=True)
class AsBoth(_OfTwoKinds):
    """Iceberg tables, and those that are called so (`delta`) Delta tables."""

    iceberg: AsIceberg
    in_delta: AsDelta
    delta: frozenset[str]
    tells_updates: bool = False

    @property
    def settings(self) -> Mapping[str, str]:
        return self.iceberg.settings

    def _of(self, name: str) -> Stored:
        return self.in_delta if name in self.delta else self.iceberg


@dataclass(frozen=True)
class Beside(_OfTwoKinds):
    """One table, t, as it is to be written, and the tables that it is changed from as plain Delta tables, which are
    filled at once."""

    t: AsVectors | AsIceberg
    others: AsDelta
    tells_updates: bool = True

    @property
    def settings(self) -> Mapping[str, str]:
        return self.t.settings

    def _of(self, name: str) -> Stored:
        return self.t if name == "t" else self.others


_FILES = 2
"""Into so many files Spark puts the rows of a Delta table."""
_NAMES = {pa.int32(): "INT", pa.string(): "STRING", pa.float64(): "DOUBLE"}


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())


def _bucket(value: int | None) -> int:
    """Where Spark puts an INT: by murmur3 with the seed 42."""
    if value is None:
        return 42 % LAYOUT.count
    mixed = _turned(value * 0xCC9E2D51, 15) * 0x1B873593 & 0xFFFFFFFF
    found = (_turned(42 ^ mixed, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    found ^= 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        found = (found ^ found >> shift) * factor & 0xFFFFFFFF
    return (found - (found >> 31 << 32)) % LAYOUT.count


def _turned(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF
