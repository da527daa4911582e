"""The offsets of Delta's source (`DeltaSourceOffset`, Delta 4.4; run). Pure.

An offset names a version and an index within it:

* everything before `reservoirVersion` was read, and of that version the files up to `index`; a negative index stands
  before all files (-1, and -100, -20, -19 in offsets of version 3). A version read to its end counts as the next one;
* with `isStartingVersion` the query is still reading the content that the table had when it began.

A version that two batches share counts for both. Where the first batch began is not in the checkpoint: Spark's option
`startingVersion` decides it, so unless somebody says, all changes up to its end count as read. A stateful query may
put out rows of any earlier batch: it has always read everything since it began.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

import orjson

from lakewarden.catalog.formats.stream_sources import (
    UNKNOWN_INPUT,
    Began,
    KnownTables,
    SourceOffsets,
    StreamBatch,
)
from lakewarden.catalog.model.lineage_record import LineageInput

__all__ = ["DeltaSource"]

_Ranges = Iterator[tuple[int | None, int]]
"""(after, up to); None in front: the whole content."""
_OFFSET_VERSIONS: Final = frozenset({1, 3})
_BEFORE_ALL: Final = -1
_KEY: Final = "reservoirId"


@dataclass(frozen=True, slots=True)
class _DeltaOffset:
    """A place in a Delta table."""

    format_id: str
    version: int
    """The last one of which anything was read."""
    next: int
    """The one to go on with."""
    snapshot: bool
    """What is read is still the content of the next version."""

    def content(self) -> _Ranges:
        """The versions read so far by a query that is still reading its initial content."""
        if self.version == self.next:
            yield None, self.version


class DeltaSource:
    """`StreamSource` of Delta tables."""

    initial_file: str | None = None

    def knows(self, offset: Mapping[str, Any]) -> bool:
        return _KEY in offset

    def reads(
        self, batch: StreamBatch, source: SourceOffsets, began: Began, tables: KnownTables
    ) -> Iterator[LineageInput]:
        end, start, first = _parsed(source.end), _parsed(source.start), _parsed(source.first)
        if end is None or (source.start is not None and (start is None or start.format_id != end.format_id)):
            yield UNKNOWN_INPUT
            return
        if batch.stateful:
            ranges = _since_the_beginning(first if batch.epoch else end, end, began)
        elif batch.epoch == 0 and source.start is None:
            ranges = _first(end, began)
        else:
            ranges = _between(start, end)
        for after, upto in ranges:
            yield LineageInput(
                table_id=tables.by_format_id.get(end.format_id),
                location="",
                format="delta",
                version=upto,
                from_version=after,
                format_id=end.format_id,
            )

    def format_id(self, offset: Mapping[str, Any]) -> str | None:
        told = _offset(offset)
        return None if told is None else told.format_id

    def inside_version(self, offset: Mapping[str, Any]) -> int | None:
        told = _offset(offset)
        return told.next if told is not None and told.version == told.next and not told.snapshot else None


def _between(start: _DeltaOffset | None, end: _DeltaOffset) -> _Ranges:
    if end.snapshot:
        yield from end.content()
    elif start is not None and start.snapshot:
        yield None, start.next
        yield from _changes(start.next, end.version)
    else:
        yield from _changes(-1 if start is None else start.next - 1, end.version)


def _first(end: _DeltaOffset, began: Began) -> _Ranges:
    if end.snapshot:
        yield from end.content()
    elif began.content:
        yield None, end.version
    else:
        yield from _changes(_before(began, end), end.version)


def _since_the_beginning(first: _DeltaOffset | None, end: _DeltaOffset, began: Began) -> _Ranges:
    if end.snapshot:
        yield from end.content()
    elif began.version is None and first is not None and (first.snapshot or began.content):
        content = first.next if first.snapshot else first.version
        yield None, content
        yield from _changes(content, end.version)
    else:
        yield from _changes(_before(began, end), end.version)


def _before(began: Began, end: _DeltaOffset) -> int:
    """The version before the one that the query began with; -1 if nobody said it, or what was said cannot be."""
    return began.version - 1 if began.version is not None and began.version <= end.version else -1


def _changes(after: int, upto: int) -> _Ranges:
    if upto > after:
        yield after, upto


def _parsed(text: str | None) -> _DeltaOffset | None:
    """An offset of a Delta source, None for anything else."""
    try:
        body = None if text is None else orjson.loads(text)
    except ValueError:
        return None
    return _offset(body) if isinstance(body, dict) else None


def _offset(body: Mapping[str, Any]) -> _DeltaOffset | None:
    if body.get("sourceVersion") not in _OFFSET_VERSIONS:
        return None
    format_id, version, index = body.get(_KEY), body.get("reservoirVersion"), body.get("index")
    if not isinstance(format_id, str) or not _is_number(version) or not _is_number(index):
        return None
    last = version if index > _BEFORE_ALL else version - 1
    return _DeltaOffset(format_id, last, version, body.get("isStartingVersion") is True)


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
