"""The reads of one batch of a Structured Streaming query, from the offsets that Spark records. Pure.

A streaming sink commits `STREAMING UPDATE` with `queryId` and `epochId`, the number of the batch. What the batch read
lies between the offsets of the batch before and its own. An offset of a Delta source names a version and an index
within it (`DeltaSourceOffset`, Delta 4.4; run):

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

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.model.lineage_record import LineageInput

__all__ = [
    "NOT_SAID",
    "NO_TABLE",
    "BatchKey",
    "Began",
    "SourceOffsets",
    "StreamBatch",
    "StreamReads",
    "batch_key",
    "inside_version",
    "parse_offsets",
    "reads_of",
    "uuid_in",
]

BatchKey = tuple[str, int]
"""A query's id and the number of one of its batches."""
_Ranges = Iterator[tuple[int | None, int]]
"""(after, up to); None in front: the whole content."""
NO_TABLE: Final = "stream://"
"""How the location of a source begins that is no table: a topic, a rate."""
_SINK: Final = "STREAMING UPDATE"
_NO_OFFSET: Final = "-"
_OFFSETS_VERSION: Final = "v1"
_OFFSET_VERSIONS: Final = frozenset({1, 3})
_BEFORE_ALL: Final = -1
_LAKE_KEYS: Final = frozenset({"reservoirId", "snapshot_id", "commitTime", "offsetCommitTime"})
"""Keys that offsets of lake tables have: Delta, Iceberg, Hudi."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Began:
    """What a query's first batch began with. Neither content nor version: nobody said."""

    content: bool = False
    """The table's whole content."""
    version: int | None = None
    """This version, by the option `startingVersion`."""
    skips: bool = False
    """By the option `skipChangeCommits`, versions that take rows away are passed over."""


NOT_SAID: Final = Began()


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceOffsets:
    """One source of a batch: offsets as JSON text, None where there is none."""

    start: str | None
    end: str | None
    first: str | None = None
    """The end of the query's first batch, where it is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamBatch:
    """One batch as a checkpoint, or the query's own progress, tells it."""

    query_id: str
    epoch: int
    sources: tuple[SourceOffsets, ...]
    stateful: bool = False
    began: Began = NOT_SAID

    @property
    def key(self) -> BatchKey:
        """What the sink's commit names it by."""
        return (self.query_id, self.epoch)


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamReads:
    """What a batch read."""

    inputs: tuple[LineageInput, ...]
    complete: bool
    """False where it read a lake table that is not managed, or nobody can tell."""


@dataclass(frozen=True, slots=True)
class _Offset:
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


def batch_key(commit: Commit) -> BatchKey | None:
    """The batch that a commit of a streaming sink holds, None for any other commit."""
    if commit.operation != _SINK:
        return None
    query_id, epoch = commit.parameters.get("queryId", ""), as_whole(commit.parameters.get("epochId", ""))
    return (query_id, epoch) if query_id and epoch is not None else None


def parse_offsets(text: str) -> tuple[str | None, ...]:
    """The offsets in a file `offsets/<batch>` of a checkpoint, by source:
    the version, a line of metadata, one line each.

    Raises ValueError for a layout that is not known.
    """
    version, _, *offsets = text.splitlines() if text.count("\n") else ("", "")
    if version != _OFFSETS_VERSION or not offsets:
        raise ValueError(f"offsets of version {version!r}")
    return tuple(None if line == _NO_OFFSET else line for line in offsets)


def reads_of(batch: StreamBatch, tables: Mapping[str, str]) -> StreamReads:
    """What a batch read. `tables` has the `table_id` of each managed table by every UUID that it ever had."""
    inputs: list[LineageInput] = []
    complete = True
    alone = sum(_is_lake(source.end) for source in batch.sources) == 1
    for number, source in enumerate(batch.sources):
        if source.end is None:
            continue  # a source that has not said anything yet
        if not _is_lake(source.end):
            inputs.append(_outside(source, f"{NO_TABLE}{batch.query_id}/{number}"))
            continue
        began = batch.began if alone or batch.began.content else NOT_SAID
        found = tuple(_delta_reads(batch, source, began, tables))
        if any(one.table_id is None for one in found):
            complete = False
        inputs.extend(one for one in found if one.table_id is not None)
    return StreamReads(inputs=tuple(dict.fromkeys(inputs)), complete=complete)


def uuid_in(offset: str | None) -> str | None:
    """The UUID of the Delta table that an offset speaks of, None if it speaks of none."""
    told = _offset(offset)
    return None if told is None else told.format_id


def inside_version(offset: str | None) -> int | None:
    """The version of a Delta table in the middle of whose changes an offset stands; None at the edges of versions, and
    within the content that a query begins with, which has nothing but insertions."""
    told = _offset(offset)
    return told.next if told is not None and told.version == told.next and not told.snapshot else None


def _delta_reads(
    batch: StreamBatch, source: SourceOffsets, began: Began, tables: Mapping[str, str]
) -> Iterator[LineageInput]:
    """The ranges of one source; one input without a table where that cannot be told."""
    end, start, first = _offset(source.end), _offset(source.start), _offset(source.first)
    if end is None or (source.start is not None and (start is None or start.format_id != end.format_id)):
        yield LineageInput(location="", format="")
        return
    if batch.stateful:
        ranges = _since_the_beginning(first if batch.epoch else end, end, began)
    elif batch.epoch == 0 and source.start is None:
        ranges = _first(end, began)
    else:
        ranges = _between(start, end)
    for after, upto in ranges:
        yield LineageInput(
            table_id=tables.get(end.format_id),
            location="",
            format="delta",
            version=upto,
            from_version=after,
            format_id=end.format_id,
        )


def _between(start: _Offset | None, end: _Offset) -> _Ranges:
    if end.snapshot:
        yield from end.content()
    elif start is not None and start.snapshot:
        yield None, start.next
        yield from _changes(start.next, end.version)
    else:
        yield from _changes(-1 if start is None else start.next - 1, end.version)


def _first(end: _Offset, began: Began) -> _Ranges:
    if end.snapshot:
        yield from end.content()
    elif began.content:
        yield None, end.version
    else:
        yield from _changes(_before(began, end), end.version)


def _since_the_beginning(first: _Offset | None, end: _Offset, began: Began) -> _Ranges:
    if end.snapshot:
        yield from end.content()
    elif began.version is None and first is not None and (first.snapshot or began.content):
        content = first.next if first.snapshot else first.version
        yield None, content
        yield from _changes(content, end.version)
    else:
        yield from _changes(_before(began, end), end.version)


def _before(began: Began, end: _Offset) -> int:
    """The version before the one that the query began with; -1 if nobody said it, or what was said cannot be."""
    return began.version - 1 if began.version is not None and began.version <= end.version else -1


def _changes(after: int, upto: int) -> _Ranges:
    if upto > after:
        yield after, upto


def _offset(text: str | None) -> _Offset | None:
    """An offset of a Delta source, None for anything else."""
    body = _json(text)
    if not isinstance(body, dict) or body.get("sourceVersion") not in _OFFSET_VERSIONS:
        return None
    format_id, version, index = body.get("reservoirId"), body.get("reservoirVersion"), body.get("index")
    if not isinstance(format_id, str) or not _is_number(version) or not _is_number(index):
        return None
    last = version if index > _BEFORE_ALL else version - 1
    return _Offset(format_id, last, version, body.get("isStartingVersion") is True)


def _outside(source: SourceOffsets, place: str) -> LineageInput:
    """A source that is no table: its rows come from outside, as those of plain files do."""
    body = _json(source.end)
    topics = body.items() if isinstance(body, dict) else ()
    if topics and all(isinstance(value, dict) for _, value in topics):
        return LineageInput(location=f"kafka://{','.join(sorted(key for key, _ in topics))}", format="kafka")
    return LineageInput(location=place, format="stream")


def _is_lake(text: str | None) -> bool:
    body = _json(text)
    return isinstance(body, dict) and not _LAKE_KEYS.isdisjoint(body)


def _json(text: str | None) -> Any:
    try:
        return None if text is None else orjson.loads(text)
    except ValueError:
        return None  # the offset of a source with words of its own


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
