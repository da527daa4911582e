"""Single files of a version, and removed ones, by full path: what proofs are made of. Streams; one object per file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.clock import from_millis, to_millis
from lakewarden.catalog.formats.delta.actions import AddFile, DeletionVector, RemoveFile, vector_of
from lakewarden.catalog.formats.delta.checkpoint import FileBatch, file_batches, read_head
from lakewarden.catalog.formats.delta.checkpoint_columns import field_of, rows_of
from lakewarden.catalog.formats.delta.file_paths import decoded, spelling_of
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.replay import version_actions
from lakewarden.catalog.formats.delta.segment import LogListing, Segment
from lakewarden.catalog.formats.port import DataFile, Tombstone

__all__ = ["Key", "data_file", "file_key", "live_files", "tombstones"]

Key = tuple[str, str | None]
"""A file's path, as the log spells it, and its deletion vector: which rows it brings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Removal:
    """A removal as found."""

    remove: RemoveFile
    version: int | None
    """None in a checkpoint."""
    removed_ms: int

    @property
    def order(self) -> tuple[int, int]:
        return (-1 if self.version is None else self.version, self.removed_ms)


@dataclass(kw_only=True, slots=True)
class _Gone:
    """Removed files gathered so far: the last removal of each data file and of each deletion-vector file."""

    files: dict[str, _Removal] = field(default_factory=dict)
    vectors: dict[str, _Removal] = field(default_factory=dict)

    def note(self, removal: _Removal) -> None:
        vector = removal.remove.vector
        _keep_last(self.files, removal.remove.path, removal)
        if vector is not None and vector.file is not None:
            _keep_last(self.vectors, vector.file, removal)


def live_files(log: DeltaLog, listing: LogListing, segment: Segment) -> Iterator[AddFile]:
    """The live files of the segment's head. Memory grows with the commits after the checkpoint, not with the table."""
    latest: dict[Key, AddFile | None] = {}
    for _, entry in segment.commits:
        for action in version_actions(log, listing, entry):
            if isinstance(action, AddFile):
                latest[file_key(action)] = action
            elif isinstance(action, RemoveFile):
                latest[file_key(action)] = None
    if segment.checkpoint is not None:
        head = read_head(log, listing, segment.checkpoint)
        inline = [action for action in head.actions if isinstance(action, AddFile)]
        for batch in file_batches(log, listing, head):
            yield from (action for action in _adds(batch) if file_key(action) not in latest)
        yield from (action for action in inline if file_key(action) not in latest)
    yield from (action for action in latest.values() if action is not None)


def tombstones(log: DeltaLog, listing: LogListing, segment: Segment) -> Iterator[Tombstone]:
    """Data files and deletion-vector files that were removed and that the segment's head does not use, by path.

    Every commit that is still there is read, those before the checkpoint too: they know which version removed a file.
    """
    gone = _Gone()
    if segment.checkpoint is not None:
        head = read_head(log, listing, segment.checkpoint)
        written_ms = to_millis(segment.checkpoint.written_at)
        inline = (action for action in head.actions if isinstance(action, RemoveFile))
        rest = (remove for batch in file_batches(log, listing, head) for remove in _removes(batch))
        for remove in chain(inline, rest):
            gone.note(_Removal(remove=remove, version=None, removed_ms=remove.removed_ms or written_ms))
    for version, entry in (*segment.older, *segment.commits):
        for action in version_actions(log, listing, entry):
            if isinstance(action, RemoveFile):
                removed_ms = action.removed_ms or to_millis(entry.modified_at)
                gone.note(_Removal(remove=action, version=version, removed_ms=removed_ms))
    for add in live_files(log, listing, segment):
        gone.files.pop(add.path, None)
        if add.vector is not None and add.vector.file is not None:
            gone.vectors.pop(add.vector.file, None)
    yield from _as_tombstones(gone)


def data_file(add: AddFile) -> DataFile:
    """The port's value for a live file."""
    return DataFile(
        path=add.path,
        size_bytes=add.size_bytes,
        modified_at=from_millis(add.modified_ms),
        partition=add.partition,
        rows=add.rows,
        deleted_rows=add.vector.deleted_rows if add.vector else 0,
        has_deletion_vector=add.vector is not None,
        deletion_vector=add.vector.file if add.vector else None,
        has_statistics=add.rows is not None,
        spelling=add.spelling,
    )


def _as_tombstones(gone: _Gone) -> Iterator[Tombstone]:
    """One per data file, with its deletion-vector file where both went together; one per other vector file.

    A vector file serves several data files: it goes with the last of them, never earlier.
    """
    for path, removal in gone.files.items():
        vector = removal.remove.vector
        file = vector.file if vector is not None else None
        goes_along = file is not None and gone.vectors.get(file) is removal
        if goes_along and file is not None:
            del gone.vectors[file]
        yield _tombstone(path, removal, removal.remove.size_bytes, file if goes_along else None)
    for path, removal in gone.vectors.items():
        yield _tombstone(path, removal, None, None)


def _tombstone(path: str, removal: _Removal, size_bytes: int | None, vector: str | None) -> Tombstone:
    return Tombstone(
        path=path,
        removed_at=from_millis(removal.removed_ms),
        removed_in=removal.version,
        size_bytes=size_bytes,
        deletion_vector=vector,
    )


def _keep_last(kept: dict[str, _Removal], path: str, removal: _Removal) -> None:
    before = kept.get(path)
    if before is None or before.order <= removal.order:
        kept[path] = removal


def file_key(action: AddFile | RemoveFile) -> Key:
    """What tells it from other files of a version."""
    return (action.entry, action.vector.key if action.vector else None)


def _adds(batch: FileBatch) -> Iterator[AddFile]:
    rows = rows_of(batch.adds).to_pylist()
    columns = (
        ("path", pa.string()),
        ("partitionValues", pa.map_(pa.string(), pa.string())),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
    )
    values = [field_of(batch.adds, name, type_).to_pylist() for name, type_ in columns]
    for path, partition, size, modified, count, vector in zip(
        *values, rows, _vectors(batch.adds), strict=True
    ):
        pairs = tuple(sorted((name, value or None) for name, value in partition or ()))
        spelling = spelling_of(path)
        yield AddFile(decoded(path), pairs, size, modified or 0, False, count, vector, spelling=spelling)


def _removes(batch: FileBatch) -> Iterator[RemoveFile]:
    columns = (("path", pa.string()), ("deletionTimestamp", pa.int64()), ("size", pa.int64()))
    values = [field_of(batch.removes, name, type_).to_pylist() for name, type_ in columns]
    for path, removed, size, vector in zip(*values, _vectors(batch.removes), strict=True):
        yield RemoveFile(decoded(path), removed, size, False, vector, spelling=spelling_of(path))


def _vectors(rows: pa.StructArray) -> Iterable[DeletionVector | None]:
    if rows.type.get_field_index("deletionVector") < 0:
        return [None] * len(rows)
    return [_vector(body) for body in pc.struct_field(rows, "deletionVector").to_pylist()]


def _vector(body: Mapping[str, object] | None) -> DeletionVector | None:
    if body is None or body["storageType"] is None:
        return None
    offset, deleted = body.get("offset"), body["cardinality"]
    return vector_of(
        str(body["storageType"]),
        str(body["pathOrInlineDv"]),
        offset if isinstance(offset, int) else None,
        deleted if isinstance(deleted, int) else 0,
    )
