"""Are the system tables whole? Every file read, every row decoded, every key looked at once.

Findings are values; `catalog/system/recovery/repair_plan.py` makes a plan of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pyarrow as pa

from lakewarden.catalog.errors import NotFoundError, UnreadableError
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.catalog.system.codec import codec, keys_of
from lakewarden.catalog.system.data_files import ColumnCache, DataFiles
from lakewarden.catalog.system.handles import files_of, opened
from lakewarden.catalog.system.own_rows import system_table_id
from lakewarden.catalog.system.port import SYSTEM_TABLES, TABLES, Key, SystemStore, SystemTable
from lakewarden.catalog.system.recovery.backup import BackupSource
from lakewarden.catalog.system.recovery.damage import Damage, Problem
from lakewarden.catalog.system.recovery.log_files import damaged_since, is_other_history, log_problems
from lakewarden.catalog.system.schema import (
    SCHEMA_VERSION,
    bucket_of,
    kept_properties,
    statistics_columns,
)
from lakewarden.catalog.system.snapshot import Piece, Snapshot

__all__ = ["FaultyRows", "data_files", "faulty_rows", "other_histories", "verify"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultyRows:
    """Positions of rows of one file that must not stay as they are, by what is wrong with them."""

    duplicate: tuple[int, ...] = ()
    misplaced: tuple[int, ...] = ()
    unreadable: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.duplicate or self.misplaced or self.unreadable)


def verify(store: SystemStore, source: BackupSource | None = None) -> tuple[Problem, ...]:
    """Check all seven tables; with a backup at hand, look as well whether what it has is still the same here.

    Reads everything; changes nothing. Raises `OutdatedError`, `UnavailableError`."""
    return tuple(problem for table in SYSTEM_TABLES for problem in _verify_table(store, table, source))


def _verify_table(
    store: SystemStore, table: SystemTable[Any], source: BackupSource | None
) -> Iterator[Problem]:
    files = files_of(store, table)
    found = log_problems(table, files)
    if source is not None:
        found += damaged_since(table, files, source)
    yield from found
    if any(one.damage is not Damage.CHECKPOINT_BROKEN for one in found):
        return
    try:
        handle, snapshot = opened(store, table)
    except (NotFoundError, UnreadableError) as error:
        if not found:
            yield Problem(table=table, damage=Damage.LOG_BROKEN, message=str(error))
        return
    if snapshot.schema_version < SCHEMA_VERSION:
        message = f"Its schema has version {snapshot.schema_version}, today's is {SCHEMA_VERSION}."
        yield Problem(table=table, damage=Damage.SCHEMA_OLD, message=message)
    configuration = handle.metadata().configuration
    for name, value in kept_properties(table).items():
        if configuration.get(name) != value:
            message = f"Its property {name} is {configuration.get(name)} instead of {value}."
            yield Problem(table=table, damage=Damage.PROPERTIES, message=message)
    data = data_files(store, table)
    digests = {} if source is None else {one.path: one.digest for one in source.backup.files_of(table)}
    readable: list[Piece] = []
    for piece in snapshot.pieces:
        problem = _file_problem(table, files, data, piece) or _file_changed(table, files, piece, digests)
        if problem is None:
            readable.append(piece)
        else:
            yield problem
    yield from _row_problems(table, snapshot, data, readable)
    if table is TABLES:
        yield from _self_problems(data, readable)


def other_histories(
    store: SystemStore, problems: Iterable[Problem], source: BackupSource
) -> tuple[SystemTable[Any], ...]:
    """The tables with problems whose log may be another history than the backup's:
    single files of it must not be mixed in."""
    return tuple(
        table
        for table in dict.fromkeys(problem.table for problem in problems)
        if is_other_history(table, files_of(store, table), source)
    )


def data_files(store: SystemStore, table: SystemTable[Any]) -> DataFiles:
    """The data files of a table, with a cache of their own."""
    return DataFiles(files_of(store, table), codec(table).schema, statistics_columns(table), ColumnCache())


def _file_problem(table: SystemTable[Any], files: FileStore, data: DataFiles, piece: Piece) -> Problem | None:
    damage = Damage.FILE_UNREADABLE
    try:
        size = files.stat(piece.path).size_bytes
        rows = data.read(piece).num_rows
    except FileNotFoundError:
        damage, message = Damage.FILE_MISSING, f"Its data file {piece.path} is gone."
    except UnreadableError as error:
        message = str(error)
    else:
        if size == piece.size_bytes and piece.rows in (None, rows):
            return None
        message = f"Its data file {piece.path} is not the one the log speaks of."
    return Problem(table=table, damage=damage, message=message, path=piece.path, rows=piece.rows)


def _file_changed(
    table: SystemTable[Any], files: FileStore, piece: Piece, digests: Mapping[str, str | None]
) -> Problem | None:
    """Data files never change under their name: one that a backup has with other contents was damaged."""
    digest = digests.get(f"{table.name}/{piece.path}")
    if digest is None or sha256(files.read(piece.path)).hexdigest() == digest:
        return None
    message = f"Its data file {piece.path} is not what it was when the backup was made."
    return Problem(
        table=table, damage=Damage.FILE_UNREADABLE, message=message, path=piece.path, rows=piece.rows
    )


def _row_problems(
    table: SystemTable[Any], snapshot: Snapshot, data: DataFiles, readable: Sequence[Piece]
) -> Iterator[Problem]:
    sentences = {
        Damage.ROW_DUPLICATE: "{n} rows have a key that a newer row has too.",
        Damage.ROW_MISPLACED: "{n} rows are in another bucket than their key says and cannot be found by it.",
        Damage.ROW_UNREADABLE: "{n} rows hold values that cannot be understood.",
    }
    counts = dict.fromkeys(sentences, 0)
    for faulty in faulty_rows(table, snapshot, data, readable).values():
        counts[Damage.ROW_DUPLICATE] += len(faulty.duplicate)
        counts[Damage.ROW_MISPLACED] += len(faulty.misplaced)
        counts[Damage.ROW_UNREADABLE] += len(faulty.unreadable)
    for damage, count in counts.items():
        if count:
            yield Problem(table=table, damage=damage, message=sentences[damage].format(n=count), rows=count)


def faulty_rows(
    table: SystemTable[Any], snapshot: Snapshot, data: DataFiles, pieces: Sequence[Piece]
) -> dict[Piece, FaultyRows]:
    """Rows that must be moved or taken out, by file. Of several rows with one key the last of the newest file stays."""
    found: dict[Piece, FaultyRows] = {}
    seen: set[Key] = set()
    for piece in sorted(pieces, key=lambda one: one.added_ms, reverse=True):
        rows = data.read(piece)
        unreadable = set(_undecodable(table, rows))
        duplicate: list[int] = []
        misplaced: list[int] = []
        keys = list(keys_of(rows, table.key))
        home = table.key.index(table.bucket_by)
        for index in range(len(keys) - 1, -1, -1):
            if index in unreadable:
                continue
            if keys[index] in seen:
                duplicate.append(index)
            elif bucket_of(str(keys[index][home]), snapshot.buckets) != piece.bucket:
                misplaced.append(index)
            seen.add(keys[index])
        faulty = FaultyRows(
            duplicate=tuple(duplicate), misplaced=tuple(misplaced), unreadable=tuple(sorted(unreadable))
        )
        if faulty:
            found[piece] = faulty
    return found


def _undecodable(table: SystemTable[Any], rows: pa.Table) -> Iterator[int]:
    try:
        codec(table).decode(rows)
    except UnreadableError:
        for index in range(len(rows)):
            try:
                codec(table).decode(rows.slice(index, 1))
            except UnreadableError:
                yield index


def _self_problems(data: DataFiles, readable: Sequence[Piece]) -> Iterator[Problem]:
    there = set(data.read_all(readable, ["table_id"]).column(0).to_pylist())
    for table in SYSTEM_TABLES:
        if system_table_id(table.name) not in there:
            message = f"The row of lakewarden.{table.name} itself is missing."
            yield Problem(table=TABLES, damage=Damage.SELF_MISSING, message=message)
