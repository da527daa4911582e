"""Statistics of columns, and of partitions, that Iceberg tables keep in their own metadata.

The distinct values of columns are estimated by Iceberg's `computeTableStats` (theta sketches in a Puffin file), files
and rows of partitions are counted by `computePartitionStats` from manifests. Both belong to one snapshot: Spark's
optimizer goes by those of exactly the snapshot that it reads, so a snapshot of ours with the same rows takes them over.
"""

from collections.abc import Sequence
from typing import Final

from lakewarden.catalog.failpoints import reach
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, texts
from lakewarden.jobs.engines.iceberg.staged import staged
from lakewarden.jobs.engines.iceberg.summaries import statistics_of
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.runs.port import FileChange

__all__ = ["keep_statistics"]

_OF_PARTITIONS: Final = ("avro", "parquet")
"""Formats in which Iceberg writes statistics of partitions: that of the table's rows."""


def keep_statistics(table: JavaTable, columns: Sequence[str]) -> FileChange:
    """Describe those of `columns` that head's snapshot has, and its partitions, in one commit that makes no snapshot.
    Raises `ConflictError`, and head is as it was, if it moved."""
    current = table.base.currentSnapshot()
    if current is None:
        return FileChange(version=None)
    own = table.base.schema()
    # Not every writer says by which columns it made a snapshot.
    named = own if current.schemaId() is None else table.base.schemasById().get(current.schemaId())
    # By its id: a column of today may have the name of one that was there when the snapshot was made.
    asked = (named.findColumnName(own.findField(one).fieldId()) for one in columns)
    there = [str(one) for one in asked if one is not None]
    inner = staged(table)
    with translated(f"compute the statistics of {table.location}"):
        if there:
            names = texts(table.spark, there)
            table.actions().computeTableStats(inner.table).snapshot(current.snapshotId()).columns(
                names
            ).execute()
        format_ = str(table.base.properties().getOrDefault("write.format.default", "parquet")).lower()
        if table.base.spec().isPartitioned() and format_ in _OF_PARTITIONS:
            table.actions().computePartitionStats(inner.table).snapshot(current.snapshotId()).execute()
    reach("iceberg.statistics_computed")
    made = inner.publish(f"publish the statistics of {table.location}")
    reach("iceberg.statistics_published")
    if made is None:
        return FileChange(version=None)
    files = [one for one in statistics_of(made) if int(one.snapshotId()) == int(current.snapshotId())]
    return FileChange(version=int(current.sequenceNumber()), files_added=len(files))
