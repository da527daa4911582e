"""What `bench.histories --spark` needs: HDFS, a Spark session,
and histories that both Spark and delta-rs write there."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from support.histories.history_runs import Case, distant_case
from support.histories.spark_scribe import governed_until
from support.servers.hdfs import Hdfs, running_hdfs
from support.servers.jars import hdfs_jars
from support.servers.spark import start_spark

__all__ = ["SparkHistories"]


class SparkHistories:
    """Started with the block, ended with it."""

    def __init__(self) -> None:
        self._open = ExitStack()

    def __enter__(self) -> Self:
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="lakewarden-bench-")))
        self._hdfs: Hdfs = self._open.enter_context(running_hdfs(folder / "hdfs", hdfs_jars()))
        os.environ["HADOOP_CONF_DIR"] = str(self._hdfs.conf)  # where delta-rs looks for it
        self._spark: SparkSession = start_spark(folder / "warehouse")
        self._open.callback(self._spark.stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def case(self, folder: Path, seed: int) -> Case:
        """History number `seed`; its installation is in `folder`, its tables are on HDFS."""
        engine = DeltaEngine(lambda: self._spark, storage=lambda _: StorageOptions(), clock=SystemClock())
        return distant_case(
            folder,
            f"{self._hdfs.uri}/histories/{seed}",
            seed,
            engine,
            governed_until(self._open, self._spark),
        )
