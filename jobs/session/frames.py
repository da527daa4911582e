"""What a user's Spark session gives and takes: DataFrames, names of tables, statements that it runs itself."""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.engines.spark.names import table_at
from lakewarden.jobs.sql.compile.values import ColumnType, TableSchema

__all__ = [
    "DataFrame",
    "columns_in",
    "database_of",
    "frame_of",
    "is_path",
    "plan_of",
    "refresh_table",
    "row_of",
    "run_sql",
    "schema_of",
    "setting",
    "settings_below",
    "sql_name",
    "struct_of",
    "taken_setting",
    "temporary_views",
]


def is_path(table: str) -> bool:
    """Whether a table is given by its place: a path or a URI, not a name (which may be quoted)."""
    return "/" in table and "`" not in table


def sql_name(table: str) -> str:
    """A table, given by its name or its place, as SQL names it."""
    return table_at(canonical(table)) if is_path(table) else table


def plan_of(frame: DataFrame) -> Any:
    """What a DataFrame stands for, analysed. Raises `UsageError` for a stream."""
    if frame.isStreaming:
        raise UsageError(
            "A stream is not written like this.",
            hint="`lw.upsert_stream`, or foreachBatch: it gives DataFrames.",
        )
    return frame._jdf.queryExecution().analyzed()


def schema_of(frame: DataFrame) -> TableSchema:
    """The columns of a frame."""
    return columns_in(struct_of(frame))


def struct_of(frame: DataFrame) -> StructType:
    """The same as Spark has them."""
    return StructType.fromJson(json.loads(frame._jdf.schema().json()))


def columns_in(schema: StructType) -> TableSchema:
    """What Spark has as columns, as ours."""
    return tuple(ColumnType(name=field.name, type=field.dataType.simpleString()) for field in schema)


def run_sql(spark: SparkSession, text: str) -> DataFrame:
    """Run a statement that is not ours. Spark's errors are the user's own and come as they are."""
    return spark.sql(text)


def setting(spark: SparkSession, key: str) -> str | None:
    """What the session's SET says of a key, None where nothing was set."""
    return spark.conf.get(key, None)


def settings_below(spark: SparkSession, beginning: str) -> Mapping[str, str]:
    """All settings whose keys begin like this."""
    session: Any = spark._jsparkSession
    told = session.sessionState().conf().settings()
    keys = str(told.keySet().toString()).strip("[]").split(", ")  # one call, however many keys there are
    found = {key: told.get(key) for key in keys if key.startswith(beginning)}
    return {key: str(value) for key, value in found.items() if value is not None}


def temporary_views(spark: SparkSession) -> tuple[str, ...]:
    """The names of the session's own, in order."""
    session: Any = spark._jsparkSession
    told = str(session.sessionState().catalog().listLocalTempViews("*").mkString("\n"))
    return tuple(sorted(name.strip("`") for name in told.split("\n") if name))


def database_of(spark: SparkSession) -> str:
    """The one that names without a database are in."""
    return spark.catalog.currentDatabase()


def taken_setting(spark: SparkSession, key: str) -> str | None:
    """What `setting` says of a key, which is unset by the same step: of several threads that share the session one has
    it."""
    session: Any = spark._jsparkSession
    told = (
        session.sessionState().conf().settings().remove(key)
    )  # Java's own: Python's `pop` looks first, then removes
    return None if told is None else str(told)


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A small result as a DataFrame of the session."""
    return spark.createDataFrame(table)


def row_of(spark: SparkSession, numbers: Mapping[str, int | None]) -> DataFrame:
    """One row of whole numbers; no Spark job is run when it is collected."""
    values = ", ".join(f"CAST({'NULL' if one is None else one} AS BIGINT)" for one in numbers.values())
    return spark.sql(f"SELECT * FROM VALUES ({values}) AS counts({', '.join(numbers)})")


def refresh_table(spark: SparkSession, name: str) -> None:
    """Forget what the session remembers of a table; quietly if it is no table of its catalog."""
    try:
        spark.catalog.refreshTable(name)
    except PySparkException:
        return
