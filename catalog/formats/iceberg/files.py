"""From entries of manifests to files: data with what is deleted of it, delete files by kind, removed ones. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.formats.iceberg.file_paths import FilePaths
from lakewarden.catalog.formats.iceberg.manifests import (
    DATA,
    DELETED,
    EQUALITY_DELETES,
    ManifestEntry,
)
from lakewarden.catalog.formats.iceberg.metadata import TableMetadata
from lakewarden.catalog.formats.port import DataFile, DeleteFiles, DeleteKind, Partition

__all__ = ["added_files", "deletes_of", "live_files", "whole_files"]

_PARQUET: Final = "parquet"
_PUFFIN: Final = "puffin"

_Reach = tuple[str] | tuple[int, tuple[str | None, ...]] | tuple[()]
"""A data file, a partition, or all."""


def live_files(
    entries: Sequence[ManifestEntry], metadata: TableMetadata, paths: FilePaths
) -> Iterator[DataFile]:
    """The data files of a snapshot, each with its deletion vector, then the delete files that are none."""
    vectors = {one.referenced: one for one in entries if _kind(one) is DeleteKind.VECTOR}
    since, deletes = _oldest(metadata), DeletesInFiles(entries)
    for one in sorted(entries, key=lambda entry: entry.content):
        kind = _kind(one)
        if kind is None:
            file = _file(one, kind, vectors.get(one.path), metadata, paths, since)
            yield replace(file, may_lack_rows=True) if deletes.may_concern(one) else file
        elif kind is not DeleteKind.VECTOR:
            yield _file(one, kind, None, metadata, paths, since)


class DeletesInFiles:
    """The deletes of a snapshot that are no vectors, by what of it they may concern: data files before them, of their
    partition; by equality, of all where they are not partitioned."""

    def __init__(self, entries: Iterable[ManifestEntry]) -> None:
        self._last: dict[_Reach, float] = {}
        for one in entries:
            kind = _kind(one)
            if kind in (DeleteKind.POSITION, DeleteKind.EQUALITY):
                until = float("inf") if one.sequence is None else one.sequence
                # What is deleted by position may have come by the same snapshot.
                until = until + 1 if kind is DeleteKind.POSITION else until
                reach = _reach(one, kind)
                self._last[reach] = max(until, self._last.get(reach, until))

    def may_concern(self, entry: ManifestEntry) -> bool:
        """Whether rows of a data file may be deleted by one of them."""
        if not self._last:
            return False
        since = 0 if entry.sequence is None else entry.sequence
        reached: tuple[_Reach, ...] = ((entry.path,), (entry.spec_id, entry.partition), ())
        return any(since < self._last.get(one, 0) for one in reached)


def _reach(entry: ManifestEntry, kind: DeleteKind) -> "_Reach":
    if entry.referenced is not None:
        return (entry.referenced,)
    if kind is DeleteKind.EQUALITY and all(one is None for one in entry.partition):
        return ()  # not partitioned, or perhaps of the partition of NULL
    return (entry.spec_id, entry.partition)


def added_files(
    entries: Iterable[ManifestEntry], metadata: TableMetadata, paths: FilePaths
) -> tuple[DataFile, ...]:
    """The files that came by a snapshot, of data and of deletes of every kind."""
    since = _oldest(metadata)
    return tuple(
        _file(one, _kind(one), None, metadata, paths, since) for one in entries if one.status != DELETED
    )


def deletes_of(entries: Sequence[ManifestEntry]) -> tuple[DeleteFiles, ...]:
    """How much of each kind of deletes there is; nothing for kinds that there are none of."""
    found: dict[DeleteKind, list[ManifestEntry]] = {}
    for one in entries:
        kind = _kind(one)
        if kind is not None:
            found.setdefault(kind, []).append(one)
    return tuple(
        DeleteFiles(
            kind=kind,
            files=len({one.path for one in those}),
            rows=sum(one.rows for one in those),
            bytes=sum({one.path: one.size_bytes for one in those}.values()),
        )
        for kind, those in sorted(found.items())
    )


def _kind(entry: ManifestEntry) -> DeleteKind | None:
    if entry.content == DATA:
        return None
    if entry.content == EQUALITY_DELETES:
        return DeleteKind.EQUALITY
    is_vector = entry.format == _PUFFIN and entry.referenced is not None
    return DeleteKind.VECTOR if is_vector else DeleteKind.POSITION


def _file(
    entry: ManifestEntry,
    kind: DeleteKind | None,
    vector: ManifestEntry | None,
    metadata: TableMetadata,
    paths: FilePaths,
    since: datetime,
) -> DataFile:
    came = metadata.snapshots.get(entry.snapshot_id)
    return DataFile(
        path=paths.path(entry.path),
        size_bytes=entry.size_bytes,
        modified_at=since if came is None else came.at,
        partition=_partition(entry, metadata.spec_names),
        rows=entry.rows,
        deleted_rows=0 if vector is None else vector.rows,
        has_deletion_vector=vector is not None,
        deletion_vector=None if vector is None else paths.path(vector.path),
        has_statistics=True,
        deletes=kind,
        is_parquet=entry.format == _PARQUET,
    )


def _partition(entry: ManifestEntry, names: Mapping[int, tuple[str, ...]]) -> Partition:
    """Partitions of different specs differ, even with equal values."""
    known = names.get(entry.spec_id, ())
    return tuple(zip(known, entry.partition, strict=False))


def _oldest(metadata: TableMetadata) -> datetime:
    """For files that came by a snapshot which has expired: they are older than this."""
    return min((one.at for one in metadata.snapshots.values()), default=metadata.updated_at)


def whole_files(files: Iterable[DataFile]) -> frozenset[str]:
    """The data files among those of a version that it has once, and all of their rows."""
    found = [one for one in files if one.deletes is None]
    times = Counter(one.path for one in found)
    return frozenset(
        one.path
        for one in found
        if times[one.path] == 1 and not (one.may_lack_rows or one.has_deletion_vector)
    )
