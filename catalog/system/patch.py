"""An edit of a system table as file changes: which rows really differ, which files are rewritten because of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import pyarrow as pa

from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.data_files import DataFiles
from lakewarden.catalog.system.port import R, SystemTable
from lakewarden.catalog.system.snapshot import Piece, Snapshot
from lakewarden.catalog.system.view import DeltaRows, RowPlace, key_of

__all__ = ["Patch", "Rewrite", "patch", "rewrites"]

_MERGE_BELOW_BYTES = (
    4 * 1024 * 1024
)  # new rows join their bucket's smallest file while that is smaller than this


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch(Generic[R]):
    """What an edit changes: rows to store (each differs from what is stored), and the places whose rows go."""

    rows: tuple[R, ...]
    dropped: tuple[RowPlace, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rows or self.dropped)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewrite(Generic[R]):
    """One bucket's share: the files to remove, their rows that are dropped, and the new rows."""

    table: SystemTable[R]
    bucket: int
    removed: tuple[Piece, ...]
    dropped: Mapping[Piece, Sequence[int]]
    added: tuple[R, ...]

    def contents(self, files: DataFiles) -> pa.Table:
        """The rows of the one file that replaces the removed ones."""
        kept = [_without(files.read(piece), self.dropped.get(piece, ())) for piece in self.removed]
        return pa.concat_tables([*kept, codec(self.table).encode(self.added)]).combine_chunks()


def patch(table: SystemTable[R], view: DeltaRows[R], written: Iterable[R], deleted: Iterable[R]) -> Patch[R]:
    """Leave out rows equal to what is stored and deletions of rows that are not there. The last row of a key wins."""
    wanted = {key_of(table, row): row for row in written}
    gone = [key for key in (key_of(table, row) for row in deleted) if key not in wanted]
    places = view.locate([*wanted, *gone])
    stored = view.fetch(places)
    rows = {key: row for key, row in wanted.items() if stored.get(key) != row}
    return Patch(
        rows=tuple(rows.values()),
        dropped=tuple(place for key in (*rows, *gone) for place in places.get(key, ())),
    )


def rewrites(
    table: SystemTable[R], snapshot: Snapshot, view: DeltaRows[R], change: Patch[R], *, merge: bool
) -> list[Rewrite[R]]:
    """The file changes that make a patch true: one new file per bucket touched.

    With `merge`, new rows join the bucket's smallest file; without, they get a file of their own (append only).
    """
    added: dict[int, list[R]] = {}
    for row in change.rows:
        added.setdefault(view.bucket_of(key_of(table, row)), []).append(row)
    dropped: dict[Piece, list[int]] = {}
    for place in change.dropped:
        dropped.setdefault(place.piece, []).append(place.index)
    made = []
    for bucket in sorted({*added, *(piece.bucket for piece in dropped)}):
        pieces = snapshot.in_bucket(bucket)
        removed = tuple(piece for piece in pieces if piece in dropped)
        if merge and not removed:
            removed = _to_join(pieces)
        made.append(
            Rewrite(
                table=table,
                bucket=bucket,
                removed=removed,
                dropped=dropped,
                added=tuple(added.get(bucket, ())),
            )
        )
    return made


def _to_join(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    smallest = min(pieces, key=lambda piece: piece.size_bytes, default=None)
    return (smallest,) if smallest is not None and smallest.size_bytes < _MERGE_BELOW_BYTES else ()


def _without(rows: pa.Table, indices: Sequence[int]) -> pa.Table:
    if not indices:
        return rows
    keep = [True] * len(rows)
    for index in indices:
        keep[index] = False
    return rows.filter(pa.array(keep, pa.bool_()))
