"""Taking a Delta table back to an older version by Spark: for tables whose features delta-rs must not write.

Spark's own RESTORE restores over whatever is head when it begins. So the same is done as a transaction of
Delta's that is refused unless it read exactly the expected version. `commitLarge` writes the version after
the one it read or fails; it never tries again on a later one (Delta 4.4,
`OptimisticTransaction.commitLarge`). What goes into it is what `RestoreTableCommand` puts there:
files, metadata with merged identity marks, the higher protocol, domains.
"""

import time
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, lit
from pyspark.sql.functions import sum as sum_of

from lakewarden.catalog.errors import ExecutionError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.file_paths import decoded
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.jobs.engines.delta.transaction import actions_of, begun, delta, java, object_of, sequence
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.runs.table_files import existing, relative_to

__all__ = ["fence", "restore"]

_SAME: Final = (
    "path",
    "deletionVector.storageType",
    "deletionVector.pathOrInlineDv",
    "deletionVector.offset",
)
"""What tells two entries of a log apart: the file, and the deletion vector that it has."""
_METADATA: Final = (
    "id",
    "name",
    "description",
    "format",
    "schemaString",
    "partitionColumns",
    "configuration",
)


def restore(spark: SparkSession, store: FileStore, *, requires: int, to: int) -> int:
    """Make version `to` the new head, as version `requires` + 1. `spark` is stamped with the run.

    Raises `ConflictError` (nothing changed) if somebody committed first, `ExecutionError` if files of `to` are gone.
    """
    with translated(f"restore {store.root} to version {to}"):
        log, transaction = begun(spark, store, requires)
        nothing = java(spark).scala.Option.empty()
        head, target = transaction.snapshot(), log.getSnapshotAt(to, nothing, nothing, False)
        before, after = _files(spark, head), _files(spark, target)
        added, removed = _without(after, before), _without(before, after)
        _require_on_disk(store, added, to)
        metrics = _metrics(spark, added, removed, target)
        transaction.updateMetadata(_metadata(spark, log, head, target), False)
        protocol = target.protocol().merge(sequence(spark, [head.protocol()]))
        version = transaction.commitLarge(
            spark._jsparkSession,
            actions_of(spark, _adds(spark, added), _removes(spark, removed), _domains(spark, target, head)),
            java(spark).scala.Option.apply(protocol),
            _operation(spark, to),
            object_of(java(spark).scala.collection.immutable, "Map").empty(),
            metrics,
        )
    reach("engine.restored")
    return int(version._1())


def fence(
    spark: SparkSession, store: FileStore, *, requires: int, made: tuple[str, int] | None = None
) -> int:
    """A commit that changes nothing, as version `requires` + 1, but that the transactions of an application up to a
    number count as `made`. `spark` is stamped with the run. Raises `ConflictError` if somebody committed first."""
    with translated(f"commit to {store.root}"):
        _, transaction = begun(spark, store, requires)
        operation = object_of(delta(spark), "DeltaOperations$ManualUpdate")
        now = java(spark).scala.Option.empty()
        numbers = [] if made is None else [delta(spark).actions.SetTransaction(*made, now)]
        return int(transaction.commit(sequence(spark, numbers), operation))


def _files(spark: SparkSession, snapshot: Any) -> DataFrame:
    return DataFrame(snapshot.allFiles().toDF(), spark)


def _without(some: DataFrame, others: DataFrame) -> DataFrame:
    """The entries of `some` that `others` does not have, deletion vectors included."""
    keys = [f"k{place}" for place, _ in enumerate(_SAME)]
    known = others.select(*(col(name).alias(key) for name, key in zip(_SAME, keys, strict=True)))
    same = [col(name).eqNullSafe(known[key]) for name, key in zip(_SAME, keys, strict=True)]
    return some.join(known, same, "left_anti")


def _require_on_disk(store: FileStore, added: DataFrame, to: int) -> None:
    paths = (relative_to(store.root, decoded(row.path)) for row in added.select("path").toLocalIterator())
    inside = [path for path in paths if path is not None]
    there = {entry.path for entry in existing(store, inside)}
    gone = [path for path in inside if path not in there]
    if gone:
        raise ExecutionError(
            f"{store.root} could not be restored to version {to}: {gone[0]} is gone.",
            hint="Put it back from a backup; `lakewarden rollback show` says how far the rollback came.",
        )


def _adds(spark: SparkSession, added: DataFrame) -> Any:
    changed = added.withColumn("dataChange", lit(col=True))
    encoder = object_of(delta(spark).implicits, "package").addFileEncoder()
    return getattr(changed._jdf, "as")(encoder)


def _removes(spark: SparkSession, removed: DataFrame) -> Any:
    """As `AddFile.removeWithTimestamp` makes them."""
    encoder = object_of(delta(spark).implicits, "package").removeFileEncoder()
    said = {
        "deletionTimestamp": lit(time.time_ns() // 1_000_000),
        "dataChange": lit(col=True),
        "extendedFileMetadata": lit(col=True),
    }
    fields = [str(name) for name in encoder.schema().fieldNames()]
    chosen = [
        said.get(name, col(name) if name in removed.columns else lit(None)).alias(name) for name in fields
    ]
    return getattr(removed.select(*chosen)._jdf, "as")(encoder)


def _domains(spark: SparkSession, target: Any, head: Any) -> Any:
    return object_of(delta(spark), "DomainMetadataUtils").handleDomainMetadataForRestoreTable(target, head)


def _metadata(spark: SparkSession, log: Any, head: Any, target: Any) -> Any:
    """The target's; numbers that an identity column has given out since are never given out again."""
    then = target.metadata()
    merged = object_of(delta(spark), "IdentityColumn").copySchemaWithMergedHighWaterMarks(
        log, then.schema(), head.metadata().schema()
    )
    told = {name: getattr(then, name)() for name in _METADATA} | {"schemaString": merged.json()}
    return then.copy(*told.values(), then.createdTime())


def _operation(spark: SparkSession, to: int) -> Any:
    jvm = java(spark)
    # A boxed long, as Scala expects it in Option[Long]: py4j would make an Integer of a small number.
    version = jvm.scala.jdk.javaapi.OptionConverters.toScala(
        jvm.java.util.stream.LongStream.of(to).boxed().findFirst()
    )
    return getattr(delta(spark), "DeltaOperations$Restore")(version, jvm.scala.Option.empty())


def _metrics(spark: SparkSession, added: DataFrame, removed: DataFrame, target: Any) -> Any:
    """What RESTORE counts."""
    (restored, restored_bytes), (gone, gone_bytes) = (
        frame.agg(count("size"), sum_of("size")).collect()[0] for frame in (added, removed)
    )
    found = java(spark).java.util.HashMap()
    for name, value in {
        "numRestoredFiles": restored,
        "restoredFilesSize": restored_bytes or 0,
        "numRemovedFiles": gone,
        "removedFilesSize": gone_bytes or 0,
        "numOfFilesAfterRestore": target.numOfFiles(),
        "tableSizeAfterRestore": target.sizeInBytes(),
    }.items():
        found.put(name, str(value))
    converters = java(spark).scala.jdk.javaapi.CollectionConverters
    return getattr(object_of(java(spark).scala.collection.immutable, "Map"), "from")(
        converters.asScala(found)
    )
