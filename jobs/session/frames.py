"""Results in a user's Spark session: Arrow tables as DataFrames, statements that the session runs itself."""

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

__all__ = ["DataFrame", "frame_of", "refresh_table", "run_sql", "setting"]


def run_sql(spark: SparkSession, text: str) -> DataFrame:
    """Run a statement that is not ours. Spark's errors are the user's own and come as they are."""
    return spark.sql(text)


def setting(spark: SparkSession, key: str) -> str | None:
    """What the session's SET says of a key, None where nothing was set."""
    return spark.conf.get(key, None)


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A small result as a DataFrame of the session."""
    return spark.createDataFrame(table)


def refresh_table(spark: SparkSession, name: str) -> None:
    """Forget what the session remembers of a table; quietly if it is no table of its catalog."""
    try:
        spark.catalog.refreshTable(name)
    except PySparkException:
        return
