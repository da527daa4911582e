"""The files of one version as columns of numbers: small enough to keep, exact to go on from. Pure.

Files are known by 64-bit hashes of path and deletion vector (of this process; SipHash), so a million files take 50 MB
at most whatever their paths look like. Proofs about single files (`DeltaReader.files`, `.tombstones`) use full paths.
"""

from array import array
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.formats.delta.actions import AddFile, DeletionVector, RemoveFile
from lakewarden.catalog.formats.files_elsewhere import common_folders, folder_elsewhere
from lakewarden.catalog.formats.port import Partition

__all__ = ["DEAD", "LIVE", "NULL", "SEPARATOR", "Changes", "FileState", "apply", "key_of", "partition_key"]

LIVE: Final = pa.schema(
    {
        "key": pa.int64(),
        "path": pa.int64(),
        "partition": pa.int64(),
        "size": pa.int64(),
        "rows": pa.int64(),
        "deleted": pa.int64(),
        "vector": pa.bool_(),
    }
)
"""Live files: hash of (path, vector), hash of the path, hash of the partition values, bytes, rows before deletions
(NULL: not recorded), rows deleted by a vector, whether there is one."""

DEAD: Final = pa.schema({"path": pa.int64(), "removed_ms": pa.int64(), "size": pa.int64()})
"""Removed files by path: when (epoch milliseconds), bytes (NULL: not recorded)."""

SEPARATOR: Final = "\x1f"
NULL: Final = "\x00"
_UNKNOWN: Final = -1


def file_key(spelling: str, vector: str | None) -> int:
    """The hash of a file as the log tells files apart: by the spelling of its path, and by its deletion vector."""
    return hash(spelling) if vector is None else hash((spelling, vector))


def key_of(action: AddFile | RemoveFile) -> int:
    """The same of an action."""
    return file_key(action.entry, action.vector.key if action.vector else None)


def partition_text(values: Partition) -> str:
    """Partition values as one text: `name=value` joined by U+001F, NULL as U+0000. Sorted by name beforehand."""
    return SEPARATOR.join(f"{name}={value or NULL}" for name, value in values)


def partition_key(values: Partition) -> int:
    """The hash of a file's partition values."""
    return hash(partition_text(values))


@dataclass(frozen=True, kw_only=True, slots=True)
class FileState:
    """The files of a version."""

    live: pa.Table
    """Live ones (`LIVE`), one row per key."""
    dead: pa.Table
    """Removed ones (`DEAD`), one row per path, none of them live."""
    elsewhere: tuple[str, ...] = ()
    """Folders of files that lie outside the table's own."""

    @classmethod
    def empty(cls) -> "FileState":
        return cls(live=LIVE.empty_table(), dead=DEAD.empty_table())

    def with_forgotten(self, dead: pa.Table, elsewhere: tuple[str, ...] = ()) -> "FileState":
        """The state with the removed files (`DEAD`) that commits tell of; they know better than a checkpoint when."""
        rest = self.dead.filter(pc.invert(pc.is_in(self.dead["path"], dead["path"])))
        return FileState(
            live=self.live,
            dead=without_live(pa.concat_tables([rest, dead]), self.live),
            elsewhere=common_folders((*self.elsewhere, *elsewhere)),
        )

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        return int(self.live.nbytes + self.dead.nbytes)


class Changes:
    """File actions in the order of the log, gathered as columns. Memory: 73 bytes per action."""

    def __init__(self) -> None:
        self._numbers = {
            name: array("q") for name in ("key", "path", "partition", "size", "rows", "deleted", "ms")
        }
        self._is_add, self._vector = bytearray(), bytearray()
        self.elsewhere: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self._is_add)

    def add(self, action: AddFile) -> None:
        """Append an added file."""
        vector = action.vector
        self._name(action.path, vector)
        self._append(
            key_of(action),
            hash(action.path),
            partition_key(action.partition),
            action.size_bytes,
            _UNKNOWN if action.rows is None else action.rows,
            vector.deleted_rows if vector else 0,
            0,
        )
        self._is_add.append(1)
        self._vector.append(vector is not None)

    def remove(self, action: RemoveFile, *, committed_ms: int) -> None:
        """Append a removed file; `committed_ms` stands in where the writer did not say when."""
        self._name(action.path, action.vector)
        self._append(
            key_of(action),
            hash(action.path),
            0,
            _UNKNOWN if action.size_bytes is None else action.size_bytes,
            _UNKNOWN,
            0,
            action.removed_ms or committed_ms,
        )
        self._is_add.append(0)
        self._vector.append(0)

    def last_per(self, column: str, *, adds: bool) -> pa.Table:
        """The last action of each value of `column` (`key`, `path`), as a table of the numbers by name and `is_add`,
        `vector`; without `adds` only removals count."""
        values = self._numbers[column]
        places = range(len(self)) if adds else [place for place, one in enumerate(self._is_add) if not one]
        chosen = pa.array({values[place]: place for place in places}.values(), pa.int64())
        columns = {
            name: pa.array(numbers, pa.int64()).take(chosen) for name, numbers in self._numbers.items()
        }
        for name in ("size", "rows"):
            columns[name] = pc.if_else(pc.equal(columns[name], _UNKNOWN), None, columns[name])
        for name, flags in (("is_add", self._is_add), ("vector", self._vector)):
            columns[name] = pa.array(memoryview(flags), pa.int8()).take(chosen).cast(pa.bool_())
        return pa.table(columns)

    def _name(self, path: str, vector: DeletionVector | None) -> None:
        paths = (path,) if vector is None or vector.file is None else (path, vector.file)
        for folder in map(folder_elsewhere, paths):
            if folder is not None and folder not in self.elsewhere:
                self.elsewhere = common_folders((*self.elsewhere, folder))

    def _append(self, *values: int) -> None:
        for column, value in zip(self._numbers.values(), values, strict=True):
            column.append(value)


def apply(state: FileState, changes: Changes) -> FileState:
    """The state after the changes: per key and per path the last action counts."""
    if not len(changes):
        return state
    latest = changes.last_per("key", adds=True)
    untouched = state.live.filter(pc.invert(pc.is_in(state.live["key"], latest["key"])))
    added = latest.filter(latest["is_add"]).select(LIVE.names)
    live = pa.concat_tables([untouched, added.cast(LIVE)]).combine_chunks()
    removals = changes.last_per("path", adds=False)
    gone = removals.rename_columns({"ms": "removed_ms"}).select(DEAD.names).cast(DEAD)
    earlier = state.dead.filter(pc.invert(pc.is_in(state.dead["path"], gone["path"])))
    return FileState(
        live=live,
        dead=without_live(pa.concat_tables([earlier, gone]), live),
        elsewhere=common_folders((*state.elsewhere, *changes.elsewhere)),
    )


def without_live(dead: pa.Table, live: pa.Table) -> pa.Table:
    """Removed paths that are not live under any deletion vector."""
    if not dead.num_rows:
        return dead
    revived = live["path"].filter(pc.is_in(live["path"], dead["path"]))
    return dead.filter(pc.invert(pc.is_in(dead["path"], revived))).combine_chunks()
