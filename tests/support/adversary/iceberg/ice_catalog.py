"""A catalog in a database, asked by plain SQL: which metadata file is head's, and which other names there are."""

from pathlib import Path
from typing import Final

import psycopg

from support.adversary.iceberg.ice_reading import local

__all__ = ["CATALOG", "NAMESPACE", "Pointers"]

CATALOG: Final = "adv"
NAMESPACE: Final = "db"


class Pointers:
    """Iceberg's table of tables in a PostgreSQL, at an address as SQLAlchemy writes it."""

    def __init__(self, url: str, warehouse: Path) -> None:
        self.url, self.warehouse = url, warehouse
        self._connection = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
        self._run(
            "CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT NULL, "
            "table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), "
            "previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), "
            "PRIMARY KEY (catalog_name, table_namespace, table_name))"
        )

    @property
    def section(self) -> str:
        """How a settings file declares it."""
        told = (f'type = "sql"\nuri = "{self.url}"', f'warehouse = "file://{self.warehouse}"')
        return "\n".join((f"[catalogs.{CATALOG}]", *told, ""))

    def file_of(self, entry: str) -> Path | None:
        """Head's metadata file; None: there is no such entry."""
        where = "WHERE catalog_name = %s AND table_namespace = %s AND table_name = %s"
        with self._connection.cursor() as cursor:
            cursor.execute(
                f"SELECT metadata_location FROM iceberg_tables {where}".encode(), (CATALOG, NAMESPACE, entry)
            )
            found = cursor.fetchone()
        return None if found is None else local(found[0])

    def point(self, entry: str, file: Path) -> None:
        """Somebody sets an entry by hand."""
        self._run(
            "UPDATE iceberg_tables SET metadata_location = %s WHERE catalog_name = %s AND table_name = %s",
            f"file:{file}",
            CATALOG,
            entry,
        )

    def add(self, entry: str, file: Path) -> None:
        """`register_table`."""
        self._run(
            "INSERT INTO iceberg_tables VALUES (%s, %s, %s, %s, NULL, 'TABLE')",
            CATALOG,
            NAMESPACE,
            entry,
            f"file:{file}",
        )

    def remove(self, entry: str) -> None:
        """DROP TABLE without PURGE."""
        self._run("DELETE FROM iceberg_tables WHERE catalog_name = %s AND table_name = %s", CATALOG, entry)

    def clear(self) -> None:
        """Another world begins."""
        self._run("DELETE FROM iceberg_tables")

    def close(self) -> None:
        self._connection.close()

    def _run(self, sql: str, *values: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql.encode(), values)
