"""Results that clients page through: small ones in memory, large ones in a file that is gone with the result."""

import tempfile
import threading
from collections.abc import Iterable
from enum import Enum
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.private_files import private_folder
from lakewarden.catalog.units import format_bytes
from lakewarden.daemon.gateway.sharing.space import Account
from lakewarden.daemon.gateway.wire_types import ResultColumn, name_of_arrow

__all__ = ["From", "ResultReader", "Store", "columns_of", "empty_result", "gathered", "plain", "result_of"]

_PAGE_BYTES: Final = 16 * 1024 * 1024
"""One answer has at least a row, and not more than about so much."""
_PLAIN: Final = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)
_ARROW: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "binary": pa.binary(),
}
"""What columns without rows are made of; everything else is text."""


class From(Enum):
    """Where a page begins: after the last one, before it, or at the first row."""

    NEXT = 0
    PRIOR = 1
    FIRST = 4


class Store:
    """Where batches of a result lie: in memory up to `memory` bytes, then all in a file below `folder`.

    More than `limit` bytes are refused, and what its `account` has no room for.
    """

    def __init__(self, *, folder: Path, memory: int, limit: int, account: Account) -> None:
        self._folder, self._memory, self._limit, self._account = folder, memory, limit, account
        self._batches: list[pa.RecordBatch] = []
        self._rows: list[int] = []
        self._bytes = 0
        self._file: Any = None
        self._writer: Any = None
        self._reader: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep one more. Raises `RefusedError` beyond the limit."""
        self._bytes += batch.nbytes
        if self._bytes > self._limit:
            raise RefusedError(
                f"The result is larger than {format_bytes(self._limit)}.",
                hint="Select fewer rows or columns, or write it to a table; "
                "gateway.result_bytes is the limit.",
            )
        self._rows.append(batch.num_rows)
        self._batches.append(batch)
        stays = self._writer is None and self._bytes <= self._memory
        if not (stays and self._account.keep(batch.nbytes)):
            self._spill()

    def sealed(self) -> "Store":
        """No more batches come."""
        if self._writer is not None:
            self._writer.close()
            self._file.flush()
            self._reader = pa.ipc.open_file(pa.memory_map(self._file.name))
        self.starts = [0, *accumulate(self._rows)]
        return self

    def batch(self, position: int) -> pa.RecordBatch:
        """One batch, by its place in the result."""
        return self._batches[position] if self._reader is None else self._reader.get_batch(position)

    def close(self) -> None:
        """Forget everything."""
        self._batches, self._reader, self._writer = [], None, None
        if self._file is not None:
            self._file.close()
        self._account.close()

    def _spill(self) -> None:
        self._account.store(sum(batch.nbytes for batch in self._batches))
        if self._writer is None:
            private_folder(self._folder)
            self._file = tempfile.NamedTemporaryFile(dir=self._folder, suffix=".arrow")  # noqa: SIM115  # lives as long as the result
            self._writer = pa.ipc.new_file(self._file, self._batches[0].schema)
        for batch in self._batches:
            self._writer.write_batch(batch)
        self._batches = []


class ResultReader:
    """One result and how far its client has read. Thread-safe."""

    def __init__(self, columns: tuple[ResultColumn, ...], store: Store | None) -> None:
        self.columns = columns
        self._store = store
        self._next = self._last = 0
        self._lock = threading.Lock()

    @property
    def rows(self) -> int:
        """How many there are."""
        return 0 if self._store is None else self._store.starts[-1]

    def page(self, begin: From, most: int) -> tuple[int, pa.RecordBatch]:
        """The next rows (or those that `begin` asks for), at most so many, and the first one's number."""
        with self._lock:
            if begin is not From.NEXT:
                self._next = 0 if begin is From.FIRST else max(self._last - most, 0)
            self._last = start = self._next
            page = self._read(start, most)
            self._next = start + page.num_rows
            return start, page

    def table(self) -> pa.Table:
        """The whole result as one table with its own names; for results that are small. It is closed."""
        names = [column.name for column in self.columns]
        batches = (
            [] if self._store is None else [self._store.batch(n) for n in range(len(self._store.starts) - 1)]
        )
        found = pa.Table.from_batches(batches or [_no_rows(self.columns)]).rename_columns(names)
        self.close()
        return found

    def close(self) -> None:
        """Let go of what it lies in."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None
            self._next = self._last = 0

    def _read(self, start: int, most: int) -> pa.RecordBatch:
        """Whole pages cross batches, so that a client's page size is the client's."""
        if self._store is None or start >= self.rows:
            return _no_rows(self.columns)
        taken: list[pa.RecordBatch] = []
        rows = room = 0
        for position in range(len(self._store.starts) - 1):
            first, end = self._store.starts[position : position + 2]
            if end <= start + rows:
                continue
            piece = self._store.batch(position).slice(start + rows - first, most - rows)
            fitting = max(int(piece.num_rows * _share(piece, room)), 0 if taken else 1)
            taken.append(piece.slice(0, fitting))
            rows, room = rows + fitting, room + taken[-1].nbytes
            if rows >= most or fitting < piece.num_rows:
                break
        table = pa.Table.from_batches(taken).combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else taken[0]


def gathered(
    columns: tuple[ResultColumn, ...], batches: Iterable[pa.RecordBatch], store: Store
) -> ResultReader:
    """A result out of batches of plain types that come one by one. Whatever goes wrong, nothing of it is left."""
    try:
        for batch in batches:
            store.add(batch)
        return ResultReader(columns, store.sealed())
    except BaseException:
        store.close()
        raise


def result_of(table: pa.Table, store: Store) -> ResultReader:
    """A result out of a table with any types."""
    return gathered(columns_of(table.schema), plain(table).combine_chunks().to_batches(), store)


def plain(table: pa.Table) -> pa.Table:
    """A table as it goes over the wire: times, dates and decimals as Spark writes them, what is nested as JSON."""
    return pa.table(
        [_plain(one) for one in table.columns], names=[f"c{number}" for number in range(table.num_columns)]
    )


def empty_result() -> ResultReader:
    """Of a statement that has none."""
    return ResultReader((), None)


def columns_of(schema: pa.Schema) -> tuple[ResultColumn, ...]:
    """A table's columns, in Spark's words."""
    return tuple(ResultColumn(name=one.name, type=name_of_arrow(one.type)) for one in schema)


def _share(piece: pa.RecordBatch, taken: int) -> float:
    """Which part of it fits into the rest of a page."""
    size: int = piece.nbytes
    return min((_PAGE_BYTES - taken) / max(size, 1), 1.0)


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = values.type
    if any(holds(type_) for holds in _PLAIN):
        return values
    if pa.types.is_timestamp(type_):
        return values.cast(pa.timestamp("us")).cast(pa.string())
    if pa.types.is_nested(type_):
        found = values.to_pylist(maps_as_pydicts="strict")
        texts = [None if one is None else _json(one) for one in found]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return values.cast(pa.string())


def _json(value: object) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _no_rows(columns: tuple[ResultColumn, ...]) -> pa.RecordBatch:
    fields = [pa.array([], _ARROW.get(one.type, pa.string())) for one in columns]
    return pa.RecordBatch.from_arrays(fields, names=[f"c{number}" for number in range(len(fields))])
