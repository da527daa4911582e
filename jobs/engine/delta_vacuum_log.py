"""The two empty commits by which a vacuum says in the log that it begins and that it has ended, as Spark's own does.

Deleting is ours (jobs/deletion.py); readers of a history and other tools still see a vacuum, with its numbers.
"""

from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.storage import FileStore
from lakewarden.jobs.engine.delta_log import commits_of
from lakewarden.jobs.engine.errors import translated
from lakewarden.jobs.engine.names import hadoop_path
from lakewarden.jobs.engine.session import COMMIT_ATTEMPTS

__all__ = ["log_begin", "log_end"]

_LOGGED_ON: Final = ("file", "hdfs", "abfs", "gs")
"""Storages on which Spark logs vacuums: those where a commit of its own log store is atomic."""


def log_begin(
    spark: SparkSession, store: FileStore, *, files: int, size_bytes: int, after: int, run_id: str
) -> int | None:
    """Commit VACUUM START. Returns its version, None where vacuums are not logged. `spark` is stamped with the run."""
    if store.root.partition("://")[0] not in _LOGGED_ON:
        return None
    with translated(f"vacuum {store.root}"):
        transaction = _begun(spark, store)
        jvm: Any = spark._jvm
        delta = jvm.org.apache.spark.sql.delta
        retention = delta.DeltaLog.tombstoneRetentionMillis(transaction.snapshot().metadata())
        nothing = jvm.scala.Option.empty()
        start = getattr(delta, "DeltaOperations$VacuumStart")(True, nothing, retention)
        _measure(spark, transaction, {"numFilesToDelete": files, "sizeOfDataToDelete": size_bytes})
        transaction.commit(_no_actions(spark), start)
    return _last_of(store, run_id, after)


def log_end(spark: SparkSession, store: FileStore, *, files: int, after: int, run_id: str) -> int | None:
    """Commit VACUUM END, after the start at version `after`; as `log_begin`."""
    with translated(f"vacuum {store.root}"):
        transaction = _begun(spark, store)
        jvm: Any = spark._jvm
        end = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$VacuumEnd")("COMPLETED")
        _measure(spark, transaction, {"numDeletedFiles": files, "numVacuumedDirectories": 0})
        transaction.commit(_no_actions(spark), end)
    return _last_of(store, run_id, after)


def _begun(spark: SparkSession, store: FileStore) -> Any:
    jvm: Any = spark._jvm
    # The commit is empty, so a user's commit in between is none of its business.
    spark.conf.unset(COMMIT_ATTEMPTS)
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, hadoop_path(store.root))
    return log.startTransaction()


def _measure(spark: SparkSession, transaction: Any, numbers: dict[str, int]) -> None:
    jvm: Any = spark._jvm
    metrics = jvm.java.util.HashMap()
    for name, number in numbers.items():
        metric = jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric(
            spark._jsparkSession.sparkContext(), name
        )
        metric.set(number)
        metrics.put(name, metric)
    mutable = jvm.scala.jdk.javaapi.CollectionConverters.asScala(metrics)
    maps = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$")
    transaction.registerSQLMetrics(spark._jsparkSession, getattr(maps, "from")(mutable))


def _no_actions(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(jvm.java.util.ArrayList()).toSeq()


def _last_of(store: FileStore, run_id: str, after: int) -> int | None:
    return max((commit.version for commit in commits_of(store, run_id, after=after)), default=None)
