"""What a session's catalog has: databases, tables and views, columns. Asked in SQL, so that any catalog answers."""

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.session.served_sessions import Field, fields_of
from lakewarden.jobs.sql.compile.values import KEYS_PROPERTY, keys_in

__all__ = ["TableEntry", "columns", "keys", "schemas", "tables"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TableEntry:
    """A table or view of a session's catalog; a temporary view has no schema."""

    schema: str
    name: str
    view: bool


def schemas(spark: SparkSession) -> tuple[str, ...]:
    """The databases."""
    return tuple(str(row[0]) for row in spark.sql("SHOW SCHEMAS").collect())


def tables(spark: SparkSession, schema: str) -> tuple[TableEntry, ...]:
    """What is in a database, temporary views too."""
    views = {(row[0], row[1]) for row in spark.sql(f"SHOW VIEWS IN {quoted(schema)}").collect()}
    found = spark.sql(f"SHOW TABLES IN {quoted(schema)}").collect()
    return tuple(TableEntry(schema=row[0], name=row[1], view=(row[0], row[1]) in views) for row in found)


def columns(spark: SparkSession, table: TableEntry) -> tuple[Field, ...]:
    """A table's columns; none where it cannot be read (it is broken, or was dropped a moment ago)."""
    name = ".".join(quoted(part) for part in (table.schema, table.name) if part)
    try:
        return fields_of(spark.table(name))
    except PySparkException:
        return ()


def keys(spark: SparkSession, schema: str, table: str) -> tuple[str, ...]:
    """The key columns that a table's properties name; none where there is no such table, or it names none."""
    name = f"{quoted(schema)}.{quoted(table)}"
    try:
        found = spark.sql(f"SHOW TBLPROPERTIES {name}").collect()
    except PySparkException:
        return ()
    return keys_in({str(row[0]): str(row[1]) for row in found if row[0] == KEYS_PROPERTY})
