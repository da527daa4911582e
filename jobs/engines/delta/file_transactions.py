"""Taking exact files out of a Delta table, or adding them again, by a transaction of Delta's own on Spark.

No SQL says "these files", so the transaction is made by py4j, with the very actions of the log. Delta keeps what the
table's features ask for: row tracking, in-commit timestamps, whatever comes next. Not in `pyspark`'s API.
"""

from collections.abc import Sequence
from typing import Any, Final

import orjson
from pyspark.sql import SparkSession

from lakewarden.catalog.model.lineage_record import LineageRecord, user_metadata
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.jobs.engines.delta.added_files import Addition
from lakewarden.jobs.engines.delta.rs_files import other_columns
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import USER_METADATA
from lakewarden.jobs.engines.delta.transaction import begun, delta, java, sequence
from lakewarden.jobs.engines.spark.errors import translated

__all__ = ["add_again", "remove_files"]

_METRICS: Final = "spark.databricks.delta.history.metricsEnabled"
_OPTIONS_OF_WRITE: Final = 8
"""Fields of `DeltaOperations.Write` after the mode; all are optional."""


def remove_files(
    spark: SparkSession,
    store: FileStore,
    files: Sequence[Addition],
    *,
    requires: int,
    record: LineageRecord,
) -> int:
    """Remove these files in one commit on exactly version `requires`. `spark` is stamped; the record becomes its stamp.

    Returns the new version. Raises `ConflictError` if somebody committed first.
    """
    with translated(f"remove files of {store.root}"):
        _, transaction = begun(spark, store, requires)
        delete = getattr(delta(spark), "DeltaOperations$Delete")(sequence(spark, []))
        removals = [_action(spark, one).remove() for one in files]
        return _committed(spark, transaction, removals, delete, record)


def add_again(
    spark: SparkSession,
    store: FileStore,
    files: Sequence[Addition],
    *,
    requires: int,
    version: int,
    record: LineageRecord,
) -> int:
    """Append these files, which `version` had added, in one commit on exactly version `requires`.

    Returns the new version. Raises `ConflictError` if somebody committed first, `PreconditionError` if the
    table has other columns by now.
    """
    with translated(f"add files to {store.root} again"):
        _, transaction = begun(spark, store, requires)
        nothing = java(spark).scala.Option.empty()
        before = transaction.deltaLog().getSnapshotAt(version, nothing, nothing, False)
        if _columns(before) != _columns(transaction.snapshot()):
            raise other_columns(store.root, version)
        append = java(spark).org.apache.spark.sql.SaveMode.Append
        write = getattr(delta(spark), "DeltaOperations$Write")(append, *[nothing] * _OPTIONS_OF_WRITE)
        return _committed(spark, transaction, [_action(spark, one) for one in files], write, record)


def _committed(
    spark: SparkSession, transaction: Any, actions: Sequence[Any], operation: Any, record: LineageRecord
) -> int:
    spark.conf.set(USER_METADATA, user_metadata(record))
    spark.conf.set(_METRICS, "false")  # a DELETE looks for those of its own scan, and there was none
    return int(transaction.commit(sequence(spark, actions), operation))


def _columns(snapshot: Any) -> tuple[Any, str]:
    metadata = snapshot.metadata()
    schema: Any = orjson.loads(str(metadata.schemaString()))  # whose keys every writer orders as it likes
    return schema, str(metadata.partitionColumns().mkString(","))


def _action(spark: SparkSession, one: Addition) -> Any:
    return getattr(getattr(delta(spark).actions, "Action$"), "MODULE$").fromJson(one.line)
