"""Taking a Delta table back to an older version by Spark: for tables whose features delta-rs must not write.

Spark's RESTORE has no expected version. So head is checked just before, the commit is tried once, and afterwards the
new version has to be the next one; if somebody came in between, their version is put back at once.
"""

from typing import Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError, ExecutionError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.storage import FileStore
from lakewarden.jobs.engine.delta_log import commits_of, require_head
from lakewarden.jobs.engine.errors import translated
from lakewarden.jobs.engine.names import table_at

__all__ = ["restore"]

_WITHIN_RETENTION: Final = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Spark refuses targets older than the table's retention even if every file is there. We have looked at the files."""


def restore(spark: SparkSession, store: FileStore, *, requires: int, to: int, run_id: str) -> int:
    """Make version `to` the new head, as version `requires` + 1. `spark` is stamped with the run.

    Raises `ConflictError` if somebody committed first: then nothing of theirs is lost, and if their commit had been
    restored over, it is head again.
    """
    require_head(store, requires)
    spark.conf.set(_WITHIN_RETENTION, "false")
    _restore(spark, store, to)
    reach("engine.restored")
    version = _last_of(store, run_id, requires)
    if version == requires + 1:
        return version
    require_head(store, version)
    _restore(spark, store, version - 1)
    raise ConflictError(
        f"Somebody committed version {version - 1} of {store.root} just before it was restored; it is head again."
    )


def _restore(spark: SparkSession, store: FileStore, to: int) -> None:
    with translated(f"restore {store.root} to version {to}"):
        spark.sql(f"RESTORE TABLE {table_at(store.root)} TO VERSION AS OF {to}").collect()


def _last_of(store: FileStore, run_id: str, after: int) -> int:
    found = [commit.version for commit in commits_of(store, run_id, after=after)]
    if not found:
        raise ExecutionError(f"Spark restored {store.root} without a commit.", hint="Validate the table.")
    return found[-1]
