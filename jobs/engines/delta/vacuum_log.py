"""The two empty commits for the beginning and the end of a vacuum, as Spark's own makes them.

Deleting is ours (jobs/deletion/batches.py); readers of a history and other tools still see a vacuum, with its numbers.
"""

from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.jobs.engines.delta.own_commits import commits_of
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import COMMIT_ATTEMPTS
from lakewarden.jobs.engines.delta.transaction import delta, java, measured, sequence
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path

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
        retention = delta(spark).DeltaLog.tombstoneRetentionMillis(transaction.snapshot().metadata())
        nothing = java(spark).scala.Option.empty()
        start = getattr(delta(spark), "DeltaOperations$VacuumStart")(True, nothing, retention)
        measured(spark, transaction, {"numFilesToDelete": files, "sizeOfDataToDelete": size_bytes})
        transaction.commit(sequence(spark, []), start)
    return _last_of(store, run_id, after)


def log_end(spark: SparkSession, store: FileStore, *, files: int, after: int, run_id: str) -> int | None:
    """Commit VACUUM END, after the start at version `after`; as `log_begin`."""
    with translated(f"vacuum {store.root}"):
        transaction = _begun(spark, store)
        end = getattr(delta(spark), "DeltaOperations$VacuumEnd")("COMPLETED")
        measured(spark, transaction, {"numDeletedFiles": files, "numVacuumedDirectories": 0})
        transaction.commit(sequence(spark, []), end)
    return _last_of(store, run_id, after)


def _begun(spark: SparkSession, store: FileStore) -> Any:
    # The commit is empty, so a user's commit in between is none of its business.
    spark.conf.unset(COMMIT_ATTEMPTS)
    log = delta(spark).DeltaLog.forTable(spark._jsparkSession, hadoop_path(store.root))
    return log.startTransaction()


def _last_of(store: FileStore, run_id: str, after: int) -> int | None:
    return max((commit.version for commit in commits_of(store, run_id, after=after)), default=None)
