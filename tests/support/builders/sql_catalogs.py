"""Iceberg's catalog in a database of SQLite's, and tables whose heads it keeps, as Iceberg's own library writes it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from support.builders.iceberg_tables import IcebergWriter

__all__ = ["CataloguedWriter", "Pointed", "SqliteCatalog"]


@dataclass(frozen=True, kw_only=True)
class SqliteCatalog:
    """One catalog. `schema` is 1 with views, 0 without."""

    file: Path
    name: str = "prod"
    schema: int = 1

    def __post_init__(self) -> None:
        kind = ", iceberg_type VARCHAR(5)" if self.schema else ""
        self.run(
            "CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT NULL, "
            "table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, "
            f"metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000){kind}, "
            "PRIMARY KEY (catalog_name, table_namespace, table_name))"
        )

    @property
    def section(self) -> str:
        """How a settings file declares it."""
        return f'[catalogs.{self.name}]\ntype = "sql"\nuri = "sqlite:///{self.file}"\n'

    def run(self, sql: str, *values: object) -> int:
        """Run a statement; how many rows it changed."""
        with self._connected() as connection:
            return connection.execute(sql, values).rowcount

    def point(self, entry: str, file: str | None) -> None:
        """As `Pointed` says."""
        namespace, _, table = entry.rpartition(".")
        key = (self.name, namespace, table)
        where = "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
        if file is None:
            self.run(f"DELETE FROM iceberg_tables {where}", *key)
        elif not self.run(f"UPDATE iceberg_tables SET metadata_location = ? {where}", file, *key):
            columns = "catalog_name, table_namespace, table_name, metadata_location"
            kinds = (", iceberg_type", ", 'TABLE'") if self.schema else ("", "")
            self.run(
                f"INSERT INTO iceberg_tables ({columns}{kinds[0]}) VALUES (?, ?, ?, ?{kinds[1]})", *key, file
            )

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.file)) as connection, connection:
            yield connection


class Pointed(Protocol):
    """A catalog whose entries can be set."""

    def point(self, entry: str, file: str | None) -> None:
        """The entry names that file, or is gone: what a commit does."""


@dataclass(kw_only=True)
class CataloguedWriter(IcebergWriter):
    """A table whose metadata files have names of their own; an entry of a catalog says which one is head's."""

    catalog: Pointed
    entry: str

    @property
    def head(self) -> Path:
        return self.metadata / f"{self.number:05d}-{self.table_id}.metadata.json"

    def publish(self, *, hint: bool = True) -> None:
        super().publish(hint=False)
        self.catalog.point(self.entry, self.named)

    @property
    def named(self) -> str:
        """Head's file, as the catalog has it."""
        return f"{self.place}/metadata/{self.head.name}"

    def append(self, name: str) -> None:
        """A file of ten rows."""
        self.root.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": pa.array(range(10), pa.int32())}), self.root / name)
        self.commit(add=((name, (self.root / name).stat().st_size),))
