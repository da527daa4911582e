"""The reads of one batch of a Structured Streaming query, from the offsets that Spark records. Pure.

A streaming sink commits with the id of its query and the number of the batch (`Commit.batch`). What the batch read
lies between the offsets of the batch before and its own; what these mean, the source's format says.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.formats.registry import formats
from lakewarden.catalog.formats.stream_sources import (
    NOT_SAID,
    UNKNOWN_INPUT,
    BatchKey,
    Began,
    KnownTables,
    SourceOffsets,
    StreamBatch,
    StreamSource,
)
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
    "initial_file",
    "inside_version",
    "parse_offsets",
    "reads_of",
    "uuid_in",
]

NO_TABLE: Final = "stream://"
"""How the location of a source begins that is no table: a topic, a rate."""
_NO_OFFSET: Final = "-"
_OFFSETS_VERSION: Final = "v1"
_ELSEWHERE: Final = frozenset({"commitTime", "offsetCommitTime"})
"""Keys that offsets of lake tables have whose formats nobody manages here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamReads:
    """What a batch read."""

    inputs: tuple[LineageInput, ...]
    complete: bool
    """False where it read a lake table that is not managed, or nobody can tell."""


def batch_key(commit: Commit) -> BatchKey | None:
    """The batch that a commit of a streaming sink holds, None for any other commit."""
    return commit.batch


def parse_offsets(text: str) -> tuple[str | None, ...]:
    """The offsets in a file `offsets/<batch>` of a checkpoint, by source:
    the version, a line of metadata, one line each.

    Raises ValueError for a layout that is not known.
    """
    version, _, *offsets = text.splitlines() if text.count("\n") else ("", "")
    if version != _OFFSETS_VERSION or not offsets:
        raise ValueError(f"offsets of version {version!r}")
    return tuple(None if line == _NO_OFFSET else line for line in offsets)


def reads_of(batch: StreamBatch, tables: KnownTables) -> StreamReads:
    """What a batch read. Raises like `KnownTables.find`."""
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
        found = tuple(_of_table(batch, source, began, tables))
        if any(one.table_id is None for one in found):
            complete = False
        inputs.extend(one for one in found if one.table_id is not None)
    return StreamReads(inputs=tuple(dict.fromkeys(inputs)), complete=complete)


def uuid_in(offset: str | None) -> str | None:
    """The UUID of the table that an offset speaks of, None where it names none."""
    told, source = _json(offset), _source_of(offset)
    return None if source is None else source.format_id(told)


def inside_version(offset: str | None) -> int | None:
    """As `StreamSource.inside_version`; None for the offset of no table."""
    told, source = _json(offset), _source_of(offset)
    return None if source is None else source.inside_version(told)


def initial_file(offset: str | None) -> str | None:
    """As `StreamSource.initial_file`; None for the offset of no table."""
    source = _source_of(offset)
    return None if source is None else source.initial_file


def _of_table(
    batch: StreamBatch, source: SourceOffsets, began: Began, tables: KnownTables
) -> Iterator[LineageInput]:
    known = _source_of(source.end)
    return iter((UNKNOWN_INPUT,)) if known is None else known.reads(batch, source, began, tables)


def _source_of(offset: str | None) -> StreamSource | None:
    """What understands an offset, None for one of no table that can be managed here."""
    told = _json(offset)
    sources = (one.stream_source for one in formats().values() if one.stream_source is not None)
    return next((one for one in sources if one.knows(told)), None) if isinstance(told, dict) else None


def _outside(source: SourceOffsets, place: str) -> LineageInput:
    """A source that is no table: its rows come from outside, as those of plain files do."""
    body = _json(source.end)
    topics = body.items() if isinstance(body, dict) else ()
    if topics and all(isinstance(value, dict) for _, value in topics):
        return LineageInput(location=f"kafka://{','.join(sorted(key for key, _ in topics))}", format="kafka")
    return LineageInput(location=place, format="stream")


def _is_lake(text: str | None) -> bool:
    body = _json(text)
    return isinstance(body, dict) and (_source_of(text) is not None or not _ELSEWHERE.isdisjoint(body))


def _json(text: str | None) -> Any:
    try:
        return None if text is None else orjson.loads(text)
    except ValueError:
        return None  # the offset of a source with words of its own
