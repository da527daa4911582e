"""The suite's one Spark session: the product's own settings, two cores, against the suite's metastore."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from lakewarden.jobs.engines.spark.session import start_session
from lakewarden.jobs.runs.spark_settings import SparkSettings
from support.servers.jars import postgres_jar

__all__ = ["set_to", "start_spark"]


def start_spark(warehouse: Path, metastore_uri: str | None = None) -> SparkSession:
    """A new session whose managed tables live under `warehouse`."""
    own = (
        ("spark.app.name", "lakewarden-tests"),
        ("spark.driver.memory", "2g"),  # with 1g, a quarter of a long session is collecting garbage
        (
            "spark.buffer.pageSize",
            "256k",
        ),  # a table of six rows that is broadcast takes a page, of megabytes else
        ("spark.driver.extraClassPath", str(postgres_jar())),  # catalogs in a database
        ("spark.sql.warehouse.dir", warehouse.as_uri()),
        ("spark.sql.shuffle.partitions", "2"),
        ("spark.databricks.delta.snapshotPartitions", "1"),
    )
    return start_session(SparkSettings(master="local[2]", metastore_uri=metastore_uri, conf=own))


@contextmanager
def set_to(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """A session with other settings; it has its own again afterwards."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
