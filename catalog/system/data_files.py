"""Data files of a system table: Parquet written once under a unique name, read column by column, kept in a small cache.

A file never changes after it was written, so what was read from it stays right for ever.
"""

import json
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.storage.file_store import FileStore, local_path
from lakewarden.catalog.system.codec import aligned
from lakewarden.catalog.system.schema import BUCKET
from lakewarden.catalog.system.snapshot import Piece

__all__ = ["ColumnCache", "DataFiles"]

_COLUMN_BYTES = 1024
"""What Arrow's objects around a column of a few rows take, beside its values."""
_LONGEST_BOUND = 64  # characters of a string that go into a file's minimum and maximum


class ColumnCache:
    """Columns of data files, those of the file used longest ago dropped first. Thread-safe;
    shared by all system tables."""

    def __init__(self, limit_bytes: int = 64 * 1024 * 1024) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._files: OrderedDict[str, dict[str, pa.ChunkedArray]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, file: str, column: str) -> pa.ChunkedArray | None:
        """The column if it is held."""
        with self._lock:
            held = self._files.get(file)
            if held is not None:
                self._files.move_to_end(file)
            return held.get(column) if held is not None else None

    def put(self, file: str, column: str, values: pa.ChunkedArray) -> None:
        """Hold a column, unless it is larger than the whole cache."""
        with self._lock:
            held = self._files.get(file, {})
            if column in held or _held(values) > self._limit_bytes:
                return
            self._files[file] = held
            self._files.move_to_end(file)
            held[column] = values
            self._held_bytes += _held(values)
            while self._held_bytes > self._limit_bytes:
                self._drop(next(iter(self._files)))

    def retain(self, folder: str, files: Collection[str]) -> None:
        """Drop what is held of other files below a folder: the table does not name them any more."""
        with self._lock:
            for file in [one for one in self._files if one.startswith(folder) and one not in files]:
                self._drop(file)

    def _drop(self, file: str) -> None:
        self._held_bytes -= sum(map(_held, self._files.pop(file).values()))


class DataFiles:
    """The data files below one table's location, seen through `schema` (the columns of its rows)."""

    def __init__(
        self, store: FileStore, schema: pa.Schema, bounded: Sequence[str], cache: ColumnCache
    ) -> None:
        self._store = store
        self._schema = schema
        self._bounded = bounded
        self._cache = cache
        self._local = local_path(store.root)

    @property
    def store(self) -> FileStore:
        """The table's folder."""
        return self._store

    def read(self, piece: Piece, columns: Sequence[str] | None = None) -> pa.Table:
        """Columns of one file (all when None) in today's shape, those it does not have yet as nulls.

        Raises `UnreadableError` if the file is gone or no Parquet file.
        """
        names = self._schema.names if columns is None else list(columns)
        file = f"{self._store.root}/{piece.path}"
        held = {name: self._cache.get(file, name) for name in names}
        missing = [name for name, values in held.items() if values is None]
        if missing or not names:
            fresh = aligned(
                self._load(piece, missing), pa.schema([self._schema.field(name) for name in missing])
            )
            for name in missing:
                held[name] = fresh.column(name)
                self._cache.put(file, name, fresh.column(name))
        return pa.table(held, schema=pa.schema([self._schema.field(name) for name in names]))

    def read_all(self, pieces: Iterable[Piece], columns: Sequence[str] | None = None) -> pa.Table:
        """Columns of several files, one after the other."""
        names = self._schema.names if columns is None else list(columns)
        schema = pa.schema([self._schema.field(name) for name in names])
        empty = pa.Table.from_batches([], schema)
        return pa.concat_tables([empty, *(self.read(piece, names) for piece in pieces)])

    def write(self, rows: pa.Table, bucket: int, *, data_change: bool = True) -> AddAction:
        """Write one new file and return the action that adds it. A file no commit names is swept up by vacuum.

        `data_change` is False for rows that are only moved (compaction): readers of changes skip such a commit.
        """
        sink = pa.BufferOutputStream()
        # No dictionaries: nearly every value of a bucket is its own; half the time, and smaller files (measured).
        pq.write_table(rows, sink, compression="zstd", use_dictionary=False)
        data = sink.getvalue().to_pybytes()
        path = f"{BUCKET}={bucket}/part-{uuid.uuid4().hex}.zstd.parquet"
        self._put(path, data)
        for name in rows.column_names:  # whoever wrote it will soon read it: its next edit or sweep
            self._cache.put(f"{self._store.root}/{path}", name, rows.column(name))
        return AddAction(
            path=path,
            size=len(data),
            partition_values={BUCKET: str(bucket)},
            modification_time=time.time_ns() // 1_000_000,
            data_change=data_change,
            stats=_statistics(rows, self._bounded),
        )

    def retain(self, pieces: Iterable[Piece]) -> None:
        """Forget what was read of all but these files. Who still needs another one reads it again."""
        root = self._store.root
        self._cache.retain(f"{root}/", {f"{root}/{piece.path}" for piece in pieces})

    def discard(self, path: str) -> None:
        """Delete a file that no commit names."""
        self._store.delete(path)

    def _load(self, piece: Piece, names: Sequence[str]) -> pa.Table:
        with _readable(piece, self._store.root):
            if self._local is not None:
                source = pa.memory_map(str(self._local / piece.path))
            else:
                source = pa.BufferReader(self._store.read(piece.path))
            with pq.ParquetFile(source) as file:
                present = set(file.schema_arrow.names)
                return file.read([name for name in names if name in present], use_threads=False)

    def _put(self, path: str, data: bytes) -> None:
        if self._local is None:
            self._store.write(path, data)
            return
        target = self._local / path
        try:
            target.write_bytes(data)
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def _held(values: pa.ChunkedArray) -> int:
    return int(values.nbytes) + _COLUMN_BYTES


def _statistics(rows: pa.Table, bounded: Sequence[str]) -> str:
    """The statistics of a Delta `add` action (Delta protocol, "Per-file Statistics") over the bounded columns."""
    lowest: dict[str, int | str] = {}
    highest: dict[str, int | str] = {}
    nulls: dict[str, int] = {}
    for name in bounded:
        column = rows.column(name)
        nulls[name] = column.null_count
        bounds = pc.min_max(column).as_py()
        low, high = bounds["min"], bounds["max"]
        if low is not None and not (isinstance(high, str) and max(len(low), len(high)) > _LONGEST_BOUND):
            lowest[name], highest[name] = low, high
    return json.dumps(
        {"numRecords": len(rows), "minValues": lowest, "maxValues": highest, "nullCount": nulls},
        ensure_ascii=False,
    )


@contextmanager
def _readable(piece: Piece, root: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise UnreadableError(
            f"The data file {piece.path} of {root} is gone.",
            hint="An old version is kept for the audit window only; for today's, "
            "`lakewarden system repair` helps.",
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(
            f"The data file {piece.path} of {root} cannot be read.",
            hint="`lakewarden system verify` names the damage, `lakewarden system repair` offers repairs.",
        ) from error
