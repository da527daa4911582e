"""What a session's catalog has: databases, tables and views, columns. Asked in SQL, so that any catalog answers."""

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.session.served import Field, fields_of

__all__ = ["TableEntry", "columns", "schemas", "tables"]


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
