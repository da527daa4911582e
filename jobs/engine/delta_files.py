"""Taking exact files out of a Delta table, or adding them again, by a transaction of Delta's own on Spark.

No SQL says "these files", so the transaction is made by py4j, with the very actions of the log. Delta keeps what the
table's features ask for: row tracking, in-commit timestamps, whatever comes next. Not in `pyspark`'s API.
"""

from collections.abc import Sequence
from typing import Any, Final

import orjson
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.lineage.record import LineageRecord, user_metadata
from lakewarden.catalog.storage import FileStore
from lakewarden.jobs.engine.deltars_files import other_columns
from lakewarden.jobs.engine.errors import translated
from lakewarden.jobs.engine.exact_files import Addition
from lakewarden.jobs.engine.names import hadoop_path

__all__ = ["add_again", "remove_files"]

_USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
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
        transaction = _begun(spark, store, requires)
        delete = getattr(_delta(spark), "DeltaOperations$Delete")(_sequence(spark, []))
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

    Returns the new version. Raises `ConflictError` if somebody committed first, `PreconditionError` if the table has other
    columns by now.
    """
    with translated(f"add files to {store.root} again"):
        transaction = _begun(spark, store, requires)
        nothing = _java(spark).scala.Option.empty()
        before = transaction.deltaLog().getSnapshotAt(version, nothing, nothing, False)
        if _columns(before) != _columns(transaction.snapshot()):
            raise other_columns(store.root, version)
        append = _java(spark).org.apache.spark.sql.SaveMode.Append
        write = getattr(_delta(spark), "DeltaOperations$Write")(append, *[nothing] * _OPTIONS_OF_WRITE)
        return _committed(spark, transaction, [_action(spark, one) for one in files], write, record)


def _begun(spark: SparkSession, store: FileStore, requires: int) -> Any:
    log = _delta(spark).DeltaLog.forTable(spark._jsparkSession, hadoop_path(store.root))
    transaction = log.startTransaction()
    if transaction.readVersion() != requires:
        raise ConflictError(f"The table moved past version {requires}, on which this was decided.")
    return transaction


def _committed(
    spark: SparkSession, transaction: Any, actions: Sequence[Any], operation: Any, record: LineageRecord
) -> int:
    spark.conf.set(_USER_METADATA, user_metadata(record))
    spark.conf.set(_METRICS, "false")  # a DELETE looks for those of its own scan, and there was none
    return int(transaction.commit(_sequence(spark, actions), operation))


def _columns(snapshot: Any) -> tuple[Any, str]:
    metadata = snapshot.metadata()
    schema: Any = orjson.loads(str(metadata.schemaString()))  # whose keys every writer orders as it likes
    return schema, str(metadata.partitionColumns().mkString(","))


def _action(spark: SparkSession, one: Addition) -> Any:
    return getattr(getattr(_delta(spark).actions, "Action$"), "MODULE$").fromJson(one.line)


def _sequence(spark: SparkSession, items: Sequence[Any]) -> Any:
    jvm = _java(spark)
    collected = jvm.java.util.ArrayList()
    for item in items:
        collected.add(item)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(collected).toSeq()


def _delta(spark: SparkSession) -> Any:
    return _java(spark).org.apache.spark.sql.delta


def _java(spark: SparkSession) -> Any:
    return spark._jvm
