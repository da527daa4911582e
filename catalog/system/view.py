"""Rows of one version of a system table, read from its data files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import attrgetter
from typing import Any, Generic

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.system.codec import codec, keys_of
from lakewarden.catalog.system.data_files import DataFiles
from lakewarden.catalog.system.port import At, Key, R, SystemTable
from lakewarden.catalog.system.schema import bucket_of, row_schema
from lakewarden.catalog.system.snapshot import Piece, Snapshot

__all__ = ["DeltaRows", "RowPlace", "check_columns", "key_of", "sortable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RowPlace:
    """Where a stored row is: the file and the position in it."""

    piece: Piece
    index: int


class DeltaRows(Generic[R]):
    """The `Rows` of a snapshot. Immutable: everything read through it comes from that version."""

    def __init__(self, table: SystemTable[R], snapshot: Snapshot, files: DataFiles) -> None:
        self._table = table
        self._snapshot = snapshot
        self._files = files
        self._home = table.key.index(table.bucket_by)

    @property
    def version(self) -> int:
        return self._snapshot.version

    @property
    def at(self) -> At:
        return self._snapshot.generation, self._snapshot.version

    def get(self, *key: str | int | None) -> R | None:
        if len(key) != len(self._table.key):
            raise UsageError(f"A key of lakewarden.{self._table.name} is ({', '.join(self._table.key)}).")
        return self.stored([key]).get(key)

    def find(self, **equals: str | int | None) -> tuple[R, ...]:
        check_columns(self._table, equals)
        pieces = self._snapshot.pieces
        home = equals.get(self._table.bucket_by)
        if isinstance(home, str):
            pieces = self._snapshot.in_bucket(bucket_of(home, self._snapshot.buckets))
        found: list[R] = []
        for piece in pieces:
            mask = _mask(self._files.read(piece, list(equals)), equals)
            if mask is None or pc.any(mask).as_py():
                rows = self._files.read(piece)
                found += codec(self._table).decode(rows if mask is None else rows.filter(mask))
        return tuple(sorted(found, key=lambda row: sortable(key_of(self._table, row))))

    def all(self) -> tuple[R, ...]:
        rows = codec(self._table).decode(self.arrow())
        return tuple(sorted(rows, key=lambda row: sortable(key_of(self._table, row))))

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        check_columns(self._table, columns or ())
        return self._files.read_all(self._snapshot.pieces, columns)

    def highest(self, column: str) -> int | None:
        check_columns(self._table, [column])
        known = self._snapshot.highest.get(column)
        if known is not None or not self._snapshot.pieces:
            return known
        found = pc.max(self.arrow([column]).column(column)).as_py()
        return None if found is None else int(found)

    def stored(self, keys: Iterable[Key]) -> dict[Key, R]:
        """The rows with these keys, those there are."""
        return self.fetch(self.locate(keys))

    def fetch(self, places: Mapping[Key, Sequence[RowPlace]]) -> dict[Key, R]:
        """The rows at these places, the newest of each key."""
        by_piece: dict[Piece, list[int]] = {}
        for held in places.values():
            by_piece.setdefault(held[-1].piece, []).append(held[-1].index)
        found: dict[Key, R] = {}
        for piece, indices in by_piece.items():
            rows = codec(self._table).decode(self._files.read(piece).take(pa.array(indices, pa.int64())))
            found |= {key_of(self._table, row): row for row in rows}
        return found

    def locate(self, keys: Iterable[Key]) -> dict[Key, list[RowPlace]]:
        """Where the rows with these keys are. More than one place per key is damage; the newest file comes last."""
        by_bucket: dict[int, set[Key]] = {}
        for key in keys:
            by_bucket.setdefault(self.bucket_of(key), set()).add(key)
        places: dict[Key, list[RowPlace]] = {}
        for piece in sorted(self._snapshot.pieces, key=lambda one: one.added_ms):
            for key, index in self._matches(piece, by_bucket.get(piece.bucket, set())):
                places.setdefault(key, []).append(RowPlace(piece=piece, index=index))
        return places

    def bucket_of(self, key: Key) -> int:
        """The bucket of a row with this key."""
        return bucket_of(str(key[self._home]), self._snapshot.buckets)

    def _matches(self, piece: Piece, wanted: set[Key]) -> Iterator[tuple[Key, int]]:
        if not wanted:
            return
        columns = self._files.read(piece, self._table.key)
        first = columns.column(0)
        hits = pc.indices_nonzero(pc.is_in(first, value_set=pa.array({key[0] for key in wanted}, first.type)))
        for index, key in zip(hits.to_pylist(), keys_of(columns.take(hits), self._table.key), strict=True):
            if key in wanted:
                yield key, index


def key_of(table: SystemTable[R], row: R) -> Key:
    """The key values of a row."""
    return _key_getter(table)(row)


@cache
def _key_getter(table: SystemTable[Any]) -> Callable[[Any], Key]:
    getter: Callable[[Any], Any] = attrgetter(*table.key)
    return getter if len(table.key) > 1 else lambda row: (getter(row),)


def check_columns(table: SystemTable[R], columns: Iterable[str]) -> None:
    """Raise `UsageError` for a column that the table does not have."""
    known = row_schema(table).names
    for column in columns:
        if column not in known:
            raise UsageError(
                f"lakewarden.{table.name} has no column {column}.", hint=f"It has {', '.join(known)}."
            )


def _mask(columns: pa.Table, equals: Mapping[str, str | int | None]) -> pa.ChunkedArray | None:
    masks = [
        pc.is_null(columns.column(name))
        if value is None
        else pc.fill_null(pc.equal(columns.column(name), pa.scalar(value, columns.column(name).type)), False)
        for name, value in equals.items()
    ]
    return reduce(pc.and_, masks) if masks else None


def sortable(key: Key) -> tuple[tuple[bool, str | int], ...]:
    """A key in a form that sorts, nulls first."""
    return tuple((value is not None, value if value is not None else 0) for value in key)
