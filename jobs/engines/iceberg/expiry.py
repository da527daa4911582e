"""Vacuum of Iceberg tables: snapshots that nothing needs leave the metadata before their files go, so that nobody can
go back to one that is not whole.

Which files those are, only the metadata before tells. Its name stands in a property of the table until all of them are
gone: a vacuum that was killed is gone on with by the next.
"""

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from pyspark.sql import DataFrame

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.iceberg.file_paths import FilePaths
from lakewarden.catalog.formats.iceberg.pointer import FOLDER
from lakewarden.catalog.formats.iceberg.released import EXPIRING
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.storage.file_store import FileEntry, FileStore
from lakewarden.catalog.units import count_of
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable
from lakewarden.jobs.engines.iceberg.summaries import statistics_of
from lakewarden.jobs.engines.spark.errors import translated

__all__ = ["expire", "forget_expired", "live_paths", "unnamed"]

_HIDDEN: Final = (".", "_")
"""How the names of files and folders begin that are somebody else's: other formats' logs, what is being staged."""
_DATA: Final = (".avro", ".orc", ".parquet")
_METADATA: Final = (".avro", ".stats")
"""Manifests and their lists; statistics of columns."""
_PARTITIONS: Final = "partition-stats-"
"""What the names of statistics of partitions begin with."""
_METADATA_PATH: Final = "write.metadata.path"


def expire(table: JavaTable, snapshots: Collection[int]) -> None:
    """Take snapshots out of the metadata. Raises `ConflictError` if anybody committed since the table was opened; where
    a catalog does not compare, it may be too late for their tags then, and never for their files."""
    if not snapshots:
        return
    jvm: Any = table.spark._jvm
    going = jvm.java.util.ArrayList()
    for one in table.base.snapshots():
        if one.snapshotId() in snapshots:
            going.add(one)
    paths = FilePaths(table.location, str(table.base.location()))
    before, now = table.base.properties().get(EXPIRING), paths.path(str(table.base.metadataFileLocation()))
    names = "\n".join(filter(None, (before, now)))

    def change(builder: Any) -> None:
        builder.removeSnapshots(going)
        builder.setProperties({EXPIRING: names})

    if table.is_compared:
        table.commit(change, _action(table))
        return
    table.require_unmoved()
    table.commit(change, _action(table))
    if not table.is_alone:
        _forget(table, before)
        raise ConflictError(
            f"Somebody committed to {table.location} in the moment in which {count_of(len(going), 'snapshot')} were "
            "taken out of its metadata, and its REST catalog did not compare. No file was deleted.",
            hint=f"If a tag or a branch is missing now, register the table from {now}, or from the file after it.",
        )


def _action(table: JavaTable) -> str:
    return f"expire snapshots of {table.location}"


def _forget(table: JavaTable, before: str | None) -> None:
    """Have the next vacuum not delete the files of what has just expired."""
    jvm: Any = table.spark._jvm
    names = jvm.java.util.HashSet([EXPIRING])

    def change(builder: Any) -> None:
        if before is None:
            builder.removeProperties(names)
        else:
            builder.setProperties({EXPIRING: before})

    table.again().commit(change, _action(table))


def forget_expired(table: JavaTable) -> None:
    """Say that the files of all snapshots that have expired are gone. Raises `ConflictError` as `expire`."""
    if table.base.properties().get(EXPIRING) is not None:
        jvm: Any = table.spark._jvm
        names = jvm.java.util.HashSet([EXPIRING])
        table.commit(lambda builder: builder.removeProperties(names), f"end the vacuum of {table.location}")


def live_paths(table: JavaTable) -> frozenset[str]:
    """Files of head as Iceberg's library reads them, manifests among them, and all statistics; relative to the table's
    folder."""
    current = table.base.currentSnapshot()
    if current is None:
        return frozenset()
    jvm: Any = table.spark._jvm
    paths = FilePaths(table.location, str(table.base.location()))
    with translated(f"list the files of {table.location}"):
        kind = jvm.org.apache.iceberg.MetadataTableType.FILES
        rows = jvm.org.apache.iceberg.spark.SparkTableUtil.loadMetadataTable(
            table.spark._jsparkSession, table.table, kind
        )
        files = [str(row[0]) for row in DataFrame(rows, table.spark).select("file_path").toLocalIterator()]
        manifests = [str(one.path()) for one in current.allManifests(table.table.io())]
        files += [str(one.path()) for one in statistics_of(table.base)]
    return frozenset(map(paths.path, (*files, *manifests, str(current.manifestListLocation()))))


def unnamed(store: FileStore, seen: Observation, named: Collection[str]) -> Sequence[str]:
    """The data files, manifests and statistics in a table's folder that no metadata has. Where its metadata is not
    where it is by default, none: nobody knows what a file there is."""
    if _METADATA_PATH in seen.properties:
        return ()
    return tuple(
        entry.path
        for entry in store.tree()
        if not entry.is_dir and entry.path not in named and _may_be_left_over(entry)
    )


def _may_be_left_over(entry: FileEntry) -> bool:
    path = PurePosixPath(entry.path)
    if path.parts[0] == FOLDER:
        return path.suffix in _METADATA or (path.suffix in _DATA and path.name.startswith(_PARTITIONS))
    return path.suffix in _DATA and not any(part.startswith(_HIDDEN) for part in path.parts)
