"""What `bench.histories --iceberg` needs: a Hive metastore, a Spark session, histories of tables of both formats."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from pyspark.sql import SparkSession

from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from support.histories.history_runs import Case, mixed_case
from support.histories.iceberg_tables import IcebergTables
from support.histories.spark_scribe import governed_until
from support.servers.metastores import without_system_tables
from support.servers.spark import start_spark

__all__ = ["IcebergHistories"]


class IcebergHistories:
    """Started with the block, ended with it."""

    def __init__(self) -> None:
        self._open = ExitStack()

    def __enter__(self) -> Self:
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="lakewarden-bench-")))
        self._metastore = self._open.enter_context(EmbeddedMetastore(folder / "metastore"))
        self._spark: SparkSession = start_spark(self._metastore.warehouse, self._metastore.uri)
        self._open.callback(self._spark.stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def case(self, folder: Path, seed: int) -> Case:
        """History number `seed`; its installation and its Delta tables are in `folder`."""
        governed = governed_until(self._open, self._spark) if seed % 2 == 0 else None
        tables = IcebergTables(self._spark, without_system_tables(self._metastore.uri))
        return mixed_case(folder, seed, self._spark, tables, governed)
