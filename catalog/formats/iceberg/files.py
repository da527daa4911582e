"""From entries of manifests to files: data with what is deleted of it, delete files by kind, removed ones. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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

__all__ = ["added_files", "deletes_of", "live_files"]

_PARQUET: Final = "parquet"
_PUFFIN: Final = "puffin"


def live_files(
    entries: Sequence[ManifestEntry], metadata: TableMetadata, paths: FilePaths
) -> Iterator[DataFile]:
    """The data files of a snapshot, each with its deletion vector, then the delete files that are none."""
    vectors = {one.referenced: one for one in entries if _kind(one) is DeleteKind.VECTOR}
    since = _oldest(metadata)
    for one in sorted(entries, key=lambda entry: entry.content):
        kind = _kind(one)
        if kind is not DeleteKind.VECTOR:
            vector = vectors.get(one.path) if kind is None else None
            yield _file(one, kind, vector, metadata, paths, since)


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
