"""The offsets of Iceberg's source (`StreamingOffset`, Iceberg 1.12; run). Pure.

An offset names a snapshot, and how many of the files that it added were read. A batch reads from where the one before
ended up to its own end, along main's line: from a snapshot to the one that was made from it, whatever their numbers.
Where the query began is a file of the checkpoint; without it, everything up to its end counts as read.

* Of each snapshot on the way that appended, the added files were read. One that two batches share counts for both.
* Snapshots that change no row are passed over, and so are those that deleted or replaced rows: the query would have
  ended with an error if its options did not say so (`streaming-skip-delete-snapshots`, `-overwrite-snapshots`).
* Where a snapshot on the way has expired, nobody can tell what was read before.

A stateful query may put out rows of any earlier batch: it has always read everything since it began.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

import orjson

from lakewarden.catalog.formats.iceberg.observation import ICEBERG
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.formats.stream_sources import (
    UNKNOWN_INPUT,
    Began,
    KnownTable,
    KnownTables,
    SourceOffsets,
    StreamBatch,
)
from lakewarden.catalog.model.lineage_record import LineageInput
from lakewarden.catalog.model.rows import UNKNOWN_PARENT

__all__ = ["IcebergSource"]

_VERSION: Final = 1
_KEY: Final = "snapshot_id"
_NO_SNAPSHOT: Final = -1
"""Where a query began with a table that had no snapshot yet."""
_EMPTY: Final = 0
"""The version of a table without snapshots, from which its first was made."""
_PASSED_OVER: Final = frozenset({"replace", "delete", "overwrite", "restore"})


@dataclass(frozen=True, slots=True)
class _IcebergOffset:
    """A place in an Iceberg table."""

    snapshot_id: int
    files: int
    """So many files of it were read."""
    whole: bool
    """All that the table held with it, not only what it added."""

    @property
    def own_id(self) -> str:
        return str(self.snapshot_id)


class IcebergSource:
    """`StreamSource` of Iceberg tables."""

    initial_file: str | None = "offsets/0"

    def knows(self, offset: Mapping[str, Any]) -> bool:
        return _KEY in offset

    def reads(
        self, batch: StreamBatch, source: SourceOffsets, began: Began, tables: KnownTables
    ) -> Iterator[LineageInput]:
        told = source.initial if batch.stateful or source.start is None else source.start
        end, start = _parsed(source.end), _parsed(told)
        if end is None or (told is not None and start is None):
            yield UNKNOWN_INPUT
            return
        if end.snapshot_id == _NO_SNAPSHOT:
            return  # the table was empty
        if start is not None and start.snapshot_id == _NO_SNAPSHOT:
            start = None
        known = tables.find(ICEBERG, end.own_id, None if start is None else start.own_id)
        if known is None:
            yield UNKNOWN_INPUT
            return
        line, is_whole = _line(known.commits, start, end)
        yield from _inputs(known, line, start)
        if not is_whole:
            yield UNKNOWN_INPUT

    def format_id(self, offset: Mapping[str, Any]) -> str | None:
        return None

    def inside_version(self, offset: Mapping[str, Any]) -> int | None:
        return None


def _line(
    commits: Sequence[Commit], start: _IcebergOffset | None, end: _IcebergOffset
) -> tuple[list[Commit], bool]:
    """The snapshots from one place to another, oldest first; and whether none of them is missing."""
    by_version = {one.version: one for one in commits}
    at = next((one for one in commits if one.own_id == end.own_id), None)
    found: list[Commit] = []
    while at is not None:
        is_last = at.own_id == end.own_id
        if start is not None and at.own_id == start.own_id:
            if start.files < (end.files if is_last else at.added_files) or start.whole:
                found.append(at)
            return found[::-1], True
        if not is_last or end.files > 0 or end.whole:
            found.append(at)
        before = at.parent if at.restored is None else at.restored
        if before is None:
            return found[::-1], start is None
        at = by_version.get(before)
    return found[::-1], False


def _inputs(
    known: KnownTable, line: Sequence[Commit], start: _IcebergOffset | None
) -> Iterator[LineageInput]:
    """The appended ones, as few ranges as they make."""
    begin: Commit | None = None
    last: Commit | None = None
    for one in line:
        if start is not None and start.whole and one.own_id == start.own_id:
            yield _input(known, None, one.version)
        elif one.operation in _PASSED_OVER:
            if begin is not None and last is not None:
                yield _range(known, begin, last)
            begin = last = None
        else:
            begin, last = begin or one, one
    if begin is not None and last is not None:
        yield _range(known, begin, last)


def _range(known: KnownTable, first: Commit, last: Commit) -> LineageInput:
    """The changes of some snapshots in a row; all that the last one held, where nobody knows what they were made
    from."""
    if first.parent == UNKNOWN_PARENT:
        return _input(known, None, last.version)
    return _input(known, _EMPTY if first.parent is None else first.parent, last.version)


def _input(known: KnownTable, after: int | None, upto: int) -> LineageInput:
    return LineageInput(
        table_id=known.table_id,
        location="",
        format=ICEBERG,
        version=upto,
        from_version=after,
        format_id=known.format_id,
    )


def _parsed(text: str | None) -> _IcebergOffset | None:
    """An offset of an Iceberg source, None for anything else."""
    try:
        body = None if text is None else orjson.loads(text)
    except ValueError:
        return None
    if not isinstance(body, dict) or body.get("version") != _VERSION:
        return None
    snapshot, files, whole = body.get(_KEY), body.get("position"), body.get("scan_all_files")
    if not _is_number(snapshot) or not _is_number(files) or not isinstance(whole, bool):
        return None
    return _IcebergOffset(snapshot, files, whole)


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
