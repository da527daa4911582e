"""What snapshots say that they did, added up; and what tells of their rows, taken over by one that has the same."""

from collections.abc import Iterator
from typing import Any

from lakewarden.jobs.runs.port import FileChange

__all__ = ["change_since", "statistics_of", "take_over"]


def change_since(before: int, metadata: Any, snapshot: Any) -> FileChange:
    """What a snapshot, and those between it and the one with the id `before`, did to data files and delete files."""
    made = list(_line(before, metadata, snapshot))

    def count(*keys: str) -> int:
        return sum(int(one.summary().get(key) or 0) for one in made for key in keys)

    if not made:
        return FileChange(version=None)
    return FileChange(
        version=int(snapshot.sequenceNumber()),
        files_removed=count("deleted-data-files", "removed-delete-files"),
        bytes_removed=count("removed-files-size"),
        files_added=count("added-data-files", "added-delete-files"),
    )


def _line(before: int, metadata: Any, snapshot: Any) -> Iterator[Any]:
    while snapshot is not None and int(snapshot.snapshotId()) != before:
        yield snapshot
        parent = snapshot.parentId()
        snapshot = None if parent is None else metadata.snapshot(parent)


def statistics_of(metadata: Any) -> tuple[Any, ...]:
    """The files of statistics that metadata names, of columns and of partitions, of whichever snapshot."""
    return (*metadata.statisticsFiles(), *metadata.partitionStatisticsFiles())


def take_over(builder: Any, metadata: Any, before: int, after: int, jvm: Any) -> None:
    """Statistics of columns of the snapshot `before` tell of `after` as well, which has the same rows: Spark's
    optimizer looks at those of exactly the snapshot that it reads. `builder` is of the metadata that will have both.
    Columns that are gone are left out: with one of them, the optimizer fails."""
    schema = metadata.schema()
    for one in metadata.statisticsFiles():
        if int(one.snapshotId()) != before:
            continue
        told = [
            blob
            for blob in one.blobMetadata()
            if all(schema.findColumnName(number) is not None for number in blob.fields())
        ]
        if told:
            builder.setStatistics(
                jvm.org.apache.iceberg.GenericStatisticsFile(
                    after, one.path(), one.fileSizeInBytes(), one.fileFooterSizeInBytes(), told
                )
            )
