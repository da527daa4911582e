"""Statistics of columns, and of partitions, that Iceberg tables keep in their own metadata.

The distinct values of columns are estimated by Iceberg's `computeTableStats` (theta sketches in a Puffin file), files
and rows of partitions are counted by `computePartitionStats` from manifests. Both belong to one snapshot: Spark's
optimizer goes by those of exactly the snapshot that it reads, so a snapshot of ours with the same rows takes them over.
"""

from collections.abc import Sequence
from typing import Any

from lakewarden.catalog.failpoints import reach
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, texts
from lakewarden.jobs.engines.iceberg.staged import staged
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.runs.port import FileChange

__all__ = ["keep_statistics"]


def keep_statistics(table: JavaTable, columns: Sequence[str]) -> FileChange:
    """Describe those of `columns` that head's snapshot has, and its partitions, in one commit that makes no snapshot.
    Raises `ConflictError`, and head is as it was, if it moved."""
    current = table.base.currentSnapshot()
    if current is None:
        return FileChange(version=None)
    schema = table.base.schemasById().get(current.schemaId())
    there = [one for one in columns if schema.findField(one) is not None]
    inner = staged(table)
    with translated(f"compute the statistics of {table.location}"):
        if there:
            names = texts(table.spark, there)
            table.actions().computeTableStats(inner.table).snapshot(current.snapshotId()).columns(
                names
            ).execute()
        if table.base.spec().isPartitioned():
            table.actions().computePartitionStats(inner.table).snapshot(current.snapshotId()).execute()
    reach("iceberg.statistics_computed")
    made = inner.publish(f"publish the statistics of {table.location}")
    reach("iceberg.statistics_published")
    if made is None:
        return FileChange(version=None)
    files = [one for one in _files(made) if int(one.snapshotId()) == int(current.snapshotId())]
    return FileChange(version=int(current.sequenceNumber()), files_added=len(files))


def _files(metadata: Any) -> list[Any]:
    return [*metadata.statisticsFiles(), *metadata.partitionStatisticsFiles()]
