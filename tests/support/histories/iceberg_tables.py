"""Iceberg tables of a random history, whose heads the Hive metastore keeps: Spark writes to them, as people do."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from pyspark.sql import SparkSession

from lakewarden.catalog.formats.iceberg.observation import ICEBERG, snapshot_in
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.spec import CatalogHead
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from support.histories.scribes import Content, Deed, Kind, Scribe, numbers

__all__ = ["IcebergTables"]

_NUMBERS: Final = itertools.count()
_MODES: Final = ("copy-on-write", "merge-on-read")
_CHANGES: Final = ("update", "delete", "merge")


class SparkWriter:
    """Statements in a session that knows nothing of lakewarden, unless they are `governed`. A table is called as its
    folder is."""

    name = "iceberg"

    def __init__(
        self,
        spark: SparkSession,
        database: str,
        snapshots: Mapping[tuple[str, int], int],
        governed: Scribe | None,
    ) -> None:
        """`snapshots`: what Iceberg calls each version of each table. `governed` writes rows."""
        self._spark, self._database, self._snapshots, self._governed = spark, database, snapshots, governed

    def write(self, deed: Deed) -> None:
        if self._governed is not None:
            self._governed.write(deed)
            return
        assert not deed.sources
        table, depends = self._table(deed.place), numbers(deed.reads)
        new, changed = f"({deed.number}L, '{depends}')", f"({deed.key}L, '{depends}')"
        where = f"WHERE write = {deed.key}"
        match deed.kind:
            case Kind.APPEND:
                self._spark.sql(f"INSERT INTO {table} VALUES {new}")
            case Kind.OVERWRITE:
                self._spark.sql(f"INSERT OVERWRITE {table} VALUES {new}")
            case Kind.UPDATE:
                self._spark.sql(f"UPDATE {table} SET depends = concat(depends, ',{depends}') {where}")
            case Kind.DELETE:
                self._spark.sql(f"DELETE FROM {table} {where}")
            case Kind.MERGE:
                self._spark.sql(
                    f"MERGE INTO {table} AS t USING (VALUES {new}, {changed} AS s (write, depends)) AS s "
                    "ON t.write = s.write WHEN MATCHED THEN UPDATE SET depends = concat(t.depends, ',', "
                    "s.depends) WHEN NOT MATCHED THEN INSERT *"
                )
            case _:
                raise AssertionError(f"no {deed.kind} of these tables")

    def compact(self, place: str) -> bool:
        (found,) = self._spark.sql(
            f"CALL iceberg.system.rewrite_data_files(table => '{self._database}.{_name_of(place)}', "
            "options => map('rewrite-all', 'true'))"
        ).collect()
        return int(found["rewritten_data_files_count"]) > 0

    def restore(self, place: str, version: int) -> None:
        snapshot = self._snapshots[_name_of(place), version]
        self._spark.sql(
            f"CALL iceberg.system.set_current_snapshot('{self._database}.{_name_of(place)}', {snapshot})"
        )

    def write_both(self, one: Deed, other: Deed) -> bool:
        return False

    def intrude(self, place: str, number: int) -> None:
        self._spark.sql(f"INSERT INTO {self._table(place)} VALUES ({number}L, '{number}')")

    def _table(self, place: str) -> str:
        return f"iceberg.{self._database}.{_name_of(place)}"


@dataclass
class IcebergTables:
    """In a database of the metastore at `uri`. By turns they are changed by new files, and by files of deletes."""

    spark: SparkSession
    uri: str
    database: str = field(default_factory=lambda: f"icehistory{next(_NUMBERS)}")
    kinds: Mapping[Kind, int] = field(
        default_factory=lambda: {
            Kind.APPEND: 34,
            Kind.OVERWRITE: 14,
            Kind.MERGE: 14,
            Kind.UPDATE: 10,
            Kind.DELETE: 10,
            Kind.COMPACT: 12,
            Kind.RESTORE: 10,
        }
    )
    format: TableFormat = ICEBERG
    first: int = 1
    governed: Scribe | None = None
    """Who writes their rows by statements on record, which read other tables."""
    restores_by_commit: bool = False
    _made: dict[str, str] = field(default_factory=dict)
    """Where each table is."""
    _snapshots: dict[tuple[str, int], int] = field(default_factory=dict)
    """What Iceberg calls each version."""

    def __post_init__(self) -> None:
        self.spark.sql(f"CREATE NAMESPACE iceberg.{self.database}")

    def govern(self, scribe: Scribe) -> None:
        """Have them written by statements on record."""
        self.governed = scribe
        self.kinds = {**self.kinds, Kind.AGAIN: 8}

    @property
    def reads_others(self) -> bool:
        return self.governed is not None

    @cached_property
    def scribes(self) -> Sequence[Scribe]:
        return (SparkWriter(self.spark, self.database, self._snapshots, self.governed),)

    def drop(self) -> None:
        self.spark.sql(f"DROP DATABASE spark_catalog.{self.database} CASCADE")

    def create(self, name: str) -> None:
        mode = _MODES[len(self._made) % len(_MODES)]
        properties = {"format-version": "2", **{f"write.{one}.mode": mode for one in _CHANGES}}
        properties["engine.hive.lock-enabled"] = "false"  # the embedded metastore has no tables for locks
        told = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        table = self.sql(name, None)
        self.spark.sql(
            f"CREATE TABLE {table} (write BIGINT, depends STRING) USING iceberg TBLPROPERTIES ({told})"
        )
        (place,) = [
            row[1]
            for row in self.spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
            if row[0] == "Location"
        ]
        self._made[name] = canonical(str(place).removeprefix("file:"))

    def address(self, name: str) -> str:
        return f"{self.database}.{name}"

    def place(self, name: str) -> str:
        return self._made[name]

    def rows(self, name: str) -> Content:
        found = self.spark.sql(f"SELECT write, depends FROM {self.sql(name, None)}").collect()
        rows = ((write, frozenset(map(int, depends.split(",")))) for write, depends in found)
        return tuple(sorted(rows, key=lambda row: (row[0], sorted(row[1]))))

    def head(self, name: str) -> int:
        seen = self._seen(name)
        told = snapshot_in(seen.head or "")
        assert told is not None
        self._snapshots[name, seen.version] = told[1]
        return seen.version

    def identity(self, name: str) -> str:
        return str(self._seen(name).format_id)

    def sql(self, name: str, version: int | None) -> str:
        table = f"iceberg.{self.database}.{name}"
        return table if version is None else f"{table} VERSION AS OF {self._snapshots[name, version]}"

    def _seen(self, name: str) -> Observation:
        seen = self._reader.observe(self.place(name))
        assert isinstance(seen, Observation), seen
        return seen

    @cached_property
    def _reader(self) -> IcebergReader:
        return IcebergReader(lambda _: StorageOptions(), self.told)

    def told(self, location: str) -> CatalogHead | None:
        """What the metastore says of a table at a location."""
        if location not in self._made.values():
            return None
        name = _name_of(location)
        found = HiveMetastore(self.uri).metadata_files(self.database, [name])
        return CatalogHead(entry=f"{self.database}.{name}", file=found.get(name))


def _name_of(place: str) -> str:
    return place.rpartition("/")[2]
