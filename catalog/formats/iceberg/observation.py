"""From metadata and files to the `Observation` everybody reads. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.files_elsewhere import common_folders, folder_elsewhere
from lakewarden.catalog.formats.iceberg.backlog import backlog_of
from lakewarden.catalog.formats.iceberg.commits import is_compaction
from lakewarden.catalog.formats.iceberg.file_paths import FilePaths
from lakewarden.catalog.formats.iceberg.left_snapshots import left_by_main
from lakewarden.catalog.formats.iceberg.manifests import ManifestFile
from lakewarden.catalog.formats.iceberg.metadata import PartitionField, TableMetadata, TableSnapshot
from lakewarden.catalog.formats.iceberg.schema import columns_of, countable
from lakewarden.catalog.formats.iceberg.verdict import capabilities_of, obstacles_of, warning_of
from lakewarden.catalog.formats.port import (
    DataFile,
    DeleteFiles,
    DeleteKind,
    LogProblem,
    Observation,
    SizeHistogram,
    Tombstone,
)
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.model.table_deletes import OwnStatistics

__all__ = ["ICEBERG", "HeadFiles", "head_token", "is_version_of", "observation_of", "snapshot_in"]

ICEBERG: Final[TableFormat] = "iceberg"
_REWRITTEN: Final = frozenset({"deleted-data-files", "removed-delete-files"})
_IDENTITY: Final = "identity"
_RENAMING: Final = ("file://", "hdfs://")
"""Storages where a rename is made once or fails."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadFiles:
    """Head's files (delete files among them), its deletes by kind, and what head no longer has."""

    files: Sequence[DataFile] = ()
    deletes: tuple[DeleteFiles, ...] = ()
    stones: Sequence[Tombstone] = ()
    manifests: Sequence[ManifestFile] = ()
    beside: Collection[str] = ()
    """Paths of what branches and tags need."""
    formats: frozenset[str] = field(default_factory=frozenset)
    """The file formats."""
    problems: tuple[LogProblem, ...] = ()
    """What could not be read that head does not need."""


def head_token(metadata: TableMetadata, name: str) -> str:
    """`Observation.head`: the UUID, main's snapshot, when main was set to it, and the metadata file, for changes of
    schema and properties make no snapshot."""
    current = 0 if metadata.current is None else metadata.current.id
    return f"{metadata.uuid}@{current}@{metadata.moved_at}@{name}"


def snapshot_in(head: str) -> tuple[str, int] | None:
    """The UUID and the snapshot (0: none) of a token; None for one of another format."""
    parts = head.split("@", 3)
    if len(parts) != 4 or not parts[1].removeprefix("-").isdigit():
        return None
    return parts[0], int(parts[1])


def is_version_of(metadata: TableMetadata, version: int, token: str) -> bool | None:
    """`TableReader.has_head`: whether a version is the snapshot that main was at by a token. None where that expired.

    A log gives each number once. Where another snapshot has it, or none ever had, older metadata was put back.
    """
    told = snapshot_in(token)
    if told is None or told[0] != metadata.uuid:
        return False
    if told[1] == 0:
        return version == 0
    snapshot = metadata.snapshots.get(told[1])
    if snapshot is not None:
        return snapshot.sequence == version
    is_another = version > metadata.newest or any(one.sequence == version for one in metadata.in_order())
    return False if is_another else None


def observation_of(
    location: str,
    metadata: TableMetadata,
    name: str,
    held: HeadFiles | None,
    *,
    told_by_folder: bool,
    other_names: tuple[str, ...] = (),
) -> Observation:
    """Everything the metadata file `name` says, with the files that head `held`: None where nobody can read which.
    Raises KeyError, TypeError or ValueError for a schema that makes no sense."""
    current, paths = metadata.current, FilePaths(location, metadata.location)
    known = held or HeadFiles()
    elsewhere = common_folders(_folders_elsewhere(known))
    obstacles = obstacles_of(
        metadata,
        paths,
        formats=known.formats,
        has_files_elsewhere=bool(elsewhere),
        other_names=other_names,
        commits_may_be_lost=told_by_folder and not location.startswith(_RENAMING),
    )
    columns = columns_of(metadata.schema)
    line = list(metadata.line(current))
    seen = Observation(
        format=ICEBERG,
        location=location,
        version=0 if current is None else current.sequence,
        head=head_token(metadata, name),
        committed_at=metadata.updated_at if current is None else current.at,
        format_id=metadata.uuid,
        description=metadata.properties.get("comment"),
        schema=columns,
        names_columns=True,
        partition_columns=_partitioned_by(metadata.partition_fields, {one.id: one.path for one in columns}),
        properties=metadata.properties,
        protocol=(metadata.format_version, metadata.format_version),
        capabilities=capabilities_of(obstacles),
        first_version=line[-1].sequence if line else 0,
        left=left_by_main(metadata),
        newest=metadata.newest,
        last_compaction_at=_last(one.at for one in line if is_compaction(one) and _rewrote_files(one)),
        last_write_at=_last(one.at for one in line if not is_compaction(one)),
        elsewhere=elsewhere,
        warnings=(*map(warning_of, obstacles), *known.problems),
        backlog=backlog_of(metadata, known.manifests),
        own_statistics=_own_statistics(metadata),
    )
    return _by_summary(seen, metadata) if held is None else _counted(seen, held)


def _own_statistics(metadata: TableMetadata) -> OwnStatistics:
    columns, left_out = countable(metadata.schema, metadata.properties)
    recorded = metadata.current is not None and metadata.current.id in metadata.described
    return OwnStatistics(recorded=recorded, columns=columns, left_out=left_out)


def _counted(seen: Observation, held: HeadFiles) -> Observation:
    data = [one for one in held.files if one.deletes is None]
    sizes, deleted = [one.size_bytes for one in data], sum(one.deleted_rows for one in data)
    exact = all(one.kind is DeleteKind.VECTOR for one in held.deletes)
    return replace(
        seen,
        files=len(data),
        bytes=sum(sizes),
        sizes=_histogram(sizes),
        rows=sum(one.rows or 0 for one in data) - deleted if exact else None,
        deleted_rows=deleted,
        deletion_vectors=sum(one.has_deletion_vector for one in data),
        deletes=held.deletes,
        stored_rows=sum(one.rows or 0 for one in data),
        partitions=len({one.partition for one in data}),
        tombstones=len(held.stones),
        tombstone_bytes=sum(one.size_bytes or 0 for one in held.stones),
        oldest_tombstone_at=min((one.removed_at for one in held.stones), default=None),
    )


def _by_summary(seen: Observation, metadata: TableMetadata) -> Observation:
    """What the writer of head says of an encrypted table; its rows, too, would be hearsay."""
    told = {} if metadata.current is None else metadata.current.summary
    return replace(
        seen,
        files=as_whole(told.get("total-data-files", "")) or 0,
        bytes=as_whole(told.get("total-files-size", "")) or 0,
    )


def _folders_elsewhere(held: HeadFiles) -> Iterator[str]:
    vectors = (one.deletion_vector for one in held.files if one.deletion_vector is not None)
    for path in (
        *(one.path for one in held.files),
        *vectors,
        *(one.path for one in held.stones),
        *held.beside,
    ):
        folder = folder_elsewhere(path)
        if folder is not None:
            yield folder


def _partitioned_by(fields: Iterable[PartitionField], names: Mapping[int, str]) -> tuple[str, ...]:
    """By which columns, or what is made of them: `day(at)`, `bucket[16](id)`."""
    told = ((one.transform, names.get(one.source_id, one.name)) for one in fields if one.transform != "void")
    return tuple(name if transform == _IDENTITY else f"{transform}({name})" for transform, name in told)


def _rewrote_files(snapshot: TableSnapshot) -> bool:
    """Else its manifests were rewritten, and nothing more."""
    return not _REWRITTEN.isdisjoint(snapshot.summary)


def _last(moments: Iterable[datetime]) -> datetime | None:
    return max(moments, default=None)


def _histogram(sizes: Sequence[int]) -> SizeHistogram:
    bins = [max(size, 1).bit_length() - 1 for size in sizes]
    length = max(bins, default=-1) + 1
    counts, totals = [0] * length, [0] * length
    for place, size in zip(bins, sizes, strict=True):
        counts[place] += 1
        totals[place] += size
    return SizeHistogram(counts=tuple(counts), bytes=tuple(totals))
