"""Compaction of a bucketed table: OPTIMIZE and REORG would join files of several buckets, and then their rows are in
none.

The files are read and written by a transaction of Delta's own, as OPTIMIZE does it; the rows are exchanged by the
bucket columns on the way, and each file is named after its bucket.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from lakewarden.catalog.formats.delta.protocol import layout_in_use
from lakewarden.catalog.model.bucket_layout import BucketedFiles, BucketLayout
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.jobs.engines.delta.sessions.bucket_files import as_set, naming
from lakewarden.jobs.engines.delta.transaction import begun, delta, items, java, measured, sequence
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.runs.port import FileChange

__all__ = ["compact_buckets", "purge_buckets"]

_DATA_CHANGE: Final = 4
"""Which field of Delta's `AddFile` says whether its rows are new ones."""


def compact_buckets(
    spark: SparkSession, store: FileStore, *, requires: int | None, small_bytes: int
) -> FileChange | None:
    """Write files that are in no bucket, or not alone in theirs and smaller than `small_bytes`, into their buckets: one
    commit by a transaction that has read version `requires` (None: any), and one that changes no rows. Returns None for
    a table without buckets, or with such that its rows cannot be spread over. Raises `ConflictError`."""

    def joined(layout: BucketLayout, every: Sequence[Any]) -> Sequence[Any]:
        found = BucketedFiles.of(layout, every, _path)
        return found.to_join(lambda one: int(one.size()) < small_bytes)

    return _rewritten(spark, store, requires, joined)


def purge_buckets(spark: SparkSession, store: FileStore, *, requires: int | None) -> FileChange | None:
    """Write files with deletion vectors anew, without those rows, as `compact_buckets` does."""

    def with_vectors(_: BucketLayout, every: Sequence[Any]) -> Sequence[Any]:
        return [one for one in every if one.deletionVector() is not None]

    return _rewritten(spark, store, requires, with_vectors)


def _rewritten(
    spark: SparkSession,
    store: FileStore,
    requires: int | None,
    chosen: Callable[[BucketLayout, Sequence[Any]], Sequence[Any]],
) -> FileChange | None:
    log, transaction = begun(spark, store, requires)
    layout = _layout(spark, transaction.snapshot())
    if layout is None:
        return None
    old = chosen(layout, list(transaction.snapshot().allFiles().collectAsList()))
    if not old:
        return FileChange(version=None)
    transaction.trackFilesRead(sequence(spark, old))  # who takes others away is not in its way
    nothing, none = sequence(spark, ()), java(spark).scala.Option.empty()
    rows = DataFrame(log.createDataFrame(transaction.snapshot(), sequence(spark, old), False, none), spark)
    session = spark._jsparkSession
    with as_set(session, naming(session, layout)):
        written = transaction.writeFiles(_spread(rows, layout)._jdf, none, True, nothing)
    new = [_of_old_rows(one) for one in items(spark, written)]
    now = java(spark).System.currentTimeMillis()
    gone = [one.removeWithTimestamp(now, False) for one in old]
    operation = getattr(delta(spark), "DeltaOperations$Optimize")(nothing, nothing, False, none, False)
    removed, added = (sum(int(one.size()) for one in files) for files in (old, new))
    told = {
        "numRemovedFiles": len(old),
        "numRemovedBytes": removed,
        "numAddedFiles": len(new),
        "numAddedBytes": added,
    }
    measured(spark, transaction, told)
    version = transaction.commit(sequence(spark, (*gone, *new)), operation)
    return FileChange(version=version, files_removed=len(old), bytes_removed=removed, files_added=len(new))


def _layout(spark: SparkSession, snapshot: Any) -> BucketLayout | None:
    metadata, converters = snapshot.metadata(), java(spark).scala.jdk.javaapi.CollectionConverters
    supported = snapshot.protocol().implicitlyAndExplicitlySupportedFeatures().toSeq()
    return layout_in_use(
        dict(converters.asJava(metadata.configuration())),
        items(spark, metadata.partitionColumns()),
        {str(one.name()) for one in items(spark, supported)},
        str(metadata.schemaString()),
    )


def _path(added: Any) -> str:
    return str(added.path())


def _spread(rows: DataFrame, layout: BucketLayout) -> DataFrame:
    """The rows, one task for each bucket, in the layout's order."""
    spread = rows.repartition(layout.count, *(col(quoted(name)) for name in layout.columns))
    known = {name.lower() for name in rows.columns}
    order = [col(quoted(name)) for name in layout.sort if name.lower() in known]
    return spread.sortWithinPartitions(*order) if order else spread


def _of_old_rows(added: Any) -> Any:
    """The `AddFile` as one that brings no new rows."""
    fields = [added.productElement(place) for place in range(added.productArity())]
    fields[_DATA_CHANGE] = False
    return added.copy(*fields)
