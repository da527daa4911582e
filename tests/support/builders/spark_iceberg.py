"""Iceberg tables as real Spark writes them: one whose head the Hive metastore keeps, one in Hadoop's layout."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.spec import CatalogHead
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.table_heads import TableHeads
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.named_catalogs.catalogs import DeclaredCatalogs
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.port import TABLES
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.metadata_care import MetadataCare
from lakewarden.jobs.actions.statistics import RefreshStatistics
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.engines.iceberg.engine import IcebergEngine
from lakewarden.jobs.executors.compact import compact
from lakewarden.jobs.executors.metadata_care import metadata_care
from lakewarden.jobs.executors.statistics import refresh_statistics
from lakewarden.jobs.executors.vacuum import vacuum
from lakewarden.jobs.runs.port import JobContext, Report, Target
from support.fakes.system_store import FakeRows

__all__ = ["Make", "SparkIceberg", "iceberg_catalogs"]

_NUMBERS: Final = itertools.count()
RUN: Final = "0" * 32
_CATALOG: Final = "org.apache.iceberg.spark.SparkCatalog"


@contextmanager
def iceberg_catalogs(spark: SparkSession, uri: str, warehouse: Path) -> Iterator[None]:
    """The catalogs `by_name` and `by_path` in a session, until the end."""
    confs = {
        "by_name": {"": _CATALOG, ".type": "hive", ".uri": uri, ".warehouse": f"file:{warehouse}/hive"},
        "by_path": {"": _CATALOG, ".type": "hadoop", ".warehouse": f"file:{warehouse}/hadoop"},
    }
    keys = {
        f"spark.sql.catalog.{name}{key}": value
        for name, each in confs.items()
        for key, value in {**each, ".cache-enabled": "false"}.items()
    }
    for key, value in keys.items():
        spark.conf.set(key, value)
    yield
    for key in keys:
        spark.conf.unset(key)


@dataclass
class SparkIceberg:
    """A table with the columns `id` and `part`. `catalog` is one of `iceberg_catalogs`."""

    spark: SparkSession
    uri: str
    catalog: str
    partitioned_by: str = ""
    properties: str = "'format-version'='2'"
    name: str = field(default_factory=lambda: f"t{next(_NUMBERS)}")
    database: str = field(default_factory=lambda: f"ice{next(_NUMBERS)}")
    declared: CatalogDeclaration | None = None
    """The catalog, where it is one that settings declare."""

    def __post_init__(self) -> None:
        self.sql(f"CREATE NAMESPACE {self.catalog}.{self.database}")
        parts = f"PARTITIONED BY ({self.partitioned_by})" if self.partitioned_by else ""
        columns = "id BIGINT, part STRING, at TIMESTAMP"
        # A metastore's locks are in tables that the embedded one does not have.
        properties = f"{self.properties}, 'engine.hive.lock-enabled'='false'"
        self.sql(f"CREATE TABLE {self} ({columns}) USING iceberg {parts} TBLPROPERTIES ({properties})")

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}.{self.name}"

    @cached_property
    def location(self) -> str:
        """Where it was made. A session keeps a catalog as it first was, whatever its settings say afterwards."""
        (place,) = [row[1] for row in self.sql(f"DESCRIBE TABLE EXTENDED {self}") if row[0] == "Location"]
        return canonical(str(place).removeprefix("file:"))

    @property
    def folder(self) -> Path:
        return Path(self.location.removeprefix("file://"))

    def heads(self, location: str) -> CatalogHead | None:
        if self.catalog == "by_path":
            return None
        declared = DeclaredCatalogs(() if self.declared is None else [self.declared])
        metastore = HiveMetastore(self.uri) if self.declared is None else None
        heads = TableHeads(
            lambda: metastore, lambda: FakeRows(TABLES, 0, {}), moment=0.0, declared=declared.catalog
        )
        kept_in = None if self.declared is None else self.catalog
        heads.know(location, CatalogAddress(catalog=kept_in, entry=f"{self.database}.{self.name}"))
        return heads(location)

    @property
    def reader(self) -> IcebergReader:
        return IcebergReader(lambda _: StorageOptions(), self.heads)

    @property
    def engine(self) -> IcebergEngine:
        return IcebergEngine(lambda: self.spark, storage=lambda _: StorageOptions(), heads=self.heads)

    @property
    def seen(self) -> Observation:
        seen = self.reader.observe(self.location)
        assert isinstance(seen, Observation), seen
        return seen

    def sql(self, text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.spark.sql(text).collect()]

    def append(self, *ids: int, part: str = "a", day: str = "2026-03-01") -> None:
        values = ", ".join(f"({one}, '{part}', TIMESTAMP '{day} 12:00:00')" for one in ids)
        self.sql(f"INSERT INTO {self} VALUES {values}")

    def rows(self, version: str = "") -> list[object]:
        return sorted(row[0] for row in self.sql(f"SELECT id FROM {self} {version}"))  # type: ignore[type-var]  # numbers

    def files(self) -> set[str]:
        """Relative to its folder; not what Hadoop's checksums and pointers are in."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)) for path in found if path.suffix in (".avro", ".parquet")}

    def named(self) -> set[str]:
        """What its head's metadata names: of snapshots that stay, and of those that may go."""
        reader = self.reader
        stones = (one.path for one in reader.tombstones(self.location))
        return {*reader.side_files(self.location), *stones}

    def unnamed(self) -> set[str]:
        return self.files() - self.named()

    def missing(self) -> set[str]:
        return self.named() - self.files()

    def context(self, run_id: str = "run-1") -> JobContext:
        return JobContext(
            target=Target(table_id="t", name=str(self), location=self.location, format="iceberg"),
            run_id=run_id,
            reader=self.reader,
            clock=SystemClock(),
            engine=self.engine,
            metastore=None,
            still_ours=lambda: None,
        )

    def vacuum(self, *, full: bool = False, dry_run: bool = False, retention: int = 0) -> Report:
        action = Vacuum(
            requires=self.seen.at, retention_seconds=retention, full=full, dry_run=dry_run, max_share=1.0
        )
        return vacuum(self.context(), action)

    def compact(
        self, run_id: str = RUN, *, purge: bool = False, join: bool = False, least: int = 2
    ) -> Report:
        action = Compact(
            requires=self.seen.at,
            target_bytes=2**20,
            min_small_files=least,
            quiet_seconds=0,
            purge=purge,
            join_deletes=join,
        )
        return compact(self.context(run_id), action)

    def care(
        self,
        run_id: str = RUN,
        *,
        join: bool = True,
        clean: bool = False,
        retention: int = 0,
        dry_run: bool = False,
    ) -> Report:
        action = MetadataCare(
            requires=self.seen.at, retention_seconds=retention, join=join, clean=clean, dry_run=dry_run
        )
        return metadata_care(self.context(run_id), action)

    def describe(self, run_id: str = RUN) -> Report:
        """Refresh its statistics."""
        return refresh_statistics(self.context(run_id), RefreshStatistics(requires=self.seen.at, name=None))


Make = Callable[..., SparkIceberg]
"""Makes a table in one of `iceberg_catalogs`; what else `SparkIceberg` takes goes along."""
