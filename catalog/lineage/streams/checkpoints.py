"""Checkpoints of streaming queries: which ones a table's owner declared, and what the batches in one of them read.

A declaration is a property of the table's row: `stream.<location>` = what the first batch began with. Spark keeps the
offsets of the last 100 batches (`spark.sql.streaming.minBatchesToRetain`); what is gone is not known.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

import orjson

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.lineage.streams.offsets import (
    NOT_SAID,
    BatchKey,
    Began,
    SourceOffsets,
    StreamBatch,
    initial_file,
    parse_offsets,
)
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.storage.file_store import FileStore, canonical

__all__ = [
    "StreamCheckpoint",
    "began_of",
    "checkpoints_of",
    "query_of",
    "read_batches",
    "with_checkpoint",
    "without_checkpoint",
]

_PREFIX: Final = "stream."
_CONTENT: Final = "none"
_OFFSETS: Final = "offsets"
_STATE: Final = "state"
_SOURCES: Final = "sources"


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamCheckpoint:
    """A checkpoint folder (canonical location) of a query that writes the table, and what the query began with."""

    location: str
    began: Began = NOT_SAID

    @property
    def starting_version(self) -> str:
        """`began` in the words of the command: a number, `none`, or nothing where it was not said."""
        return (
            _CONTENT if self.began.content else "" if self.began.version is None else str(self.began.version)
        )


def began_of(text: str) -> Began:
    """What `--starting-version` says. Raises `UsageError`."""
    if text == _CONTENT:
        return Began(content=True)
    version = as_whole(text)
    if version is None:
        raise UsageError(
            f"{text} is not a starting version.",
            hint="A version number, or `none` if the option was not set.",
        )
    return Began(version=version)


def checkpoints_of(row: TableRow) -> tuple[StreamCheckpoint, ...]:
    """The checkpoints declared on a table, by location."""
    return tuple(
        StreamCheckpoint(location=key.removeprefix(_PREFIX), began=began_of(said) if said else NOT_SAID)
        for key, said in sorted(row.properties.items())
        if key.startswith(_PREFIX)
    )


def with_checkpoint(row: TableRow, checkpoint: StreamCheckpoint) -> TableRow:
    """The row with one more checkpoint, or with what is said of it anew."""
    said = {f"{_PREFIX}{checkpoint.location}": checkpoint.starting_version}
    return replace(row, properties={**row.properties, **said})


def without_checkpoint(row: TableRow, location: str) -> TableRow:
    """The row without this checkpoint. Raises `UsageError` if it was not declared."""
    key = f"{_PREFIX}{canonical(location)}"
    if key not in row.properties:
        raise UsageError(
            f"{row.name} has no checkpoint at {location}.", hint="`lakewarden lineage stream` lists them."
        )
    return replace(row, properties={name: said for name, said in row.properties.items() if name != key})


def read_batches(
    store: FileStore, wanted: Collection[BatchKey], *, began: Began = NOT_SAID
) -> Mapping[BatchKey, StreamBatch]:
    """The wanted batches that the checkpoint in this folder knows; one listing, and two small files each.

    What is missing or cannot be read is left out. Raises `UnavailableError` if the storage does not answer.
    """
    query_id = query_of(store)
    epochs = sorted(epoch for query, epoch in wanted if query == query_id)
    if query_id is None or not epochs:
        return {}
    names = (entry.path.rpartition("/")[2] for entry in store.list(_OFFSETS) if not entry.is_dir)
    there = {int(name) for name in names if name.isdigit()}
    stateful = next(iter(store.list(_STATE)), None) is not None
    offsets = {epoch: _offsets(store, epoch) for epoch in there & _needed(epochs, stateful=stateful)}
    found: dict[BatchKey, StreamBatch] = {}
    for epoch in epochs:
        ends = offsets.get(epoch)
        if ends is not None:
            told = _sources(offsets.get(epoch - 1), ends, offsets.get(0) if stateful else None)
            whole = stateful or epoch == 0
            sources = tuple(
                _with_initial(store, number, one) if whole else one for number, one in enumerate(told)
            )
            found[query_id, epoch] = StreamBatch(
                query_id=query_id, epoch=epoch, sources=sources, stateful=stateful, began=began
            )
    return found


def _needed(epochs: Collection[int], *, stateful: bool) -> set[int]:
    return {*epochs, *(epoch - 1 for epoch in epochs), *((0,) if stateful else ())}


def _sources(
    starts: tuple[str | None, ...] | None,
    ends: tuple[str | None, ...],
    firsts: tuple[str | None, ...] | None,
) -> tuple[SourceOffsets, ...]:
    nothing = (None,) * len(ends)
    begins = starts if starts is not None and len(starts) == len(ends) else nothing
    first = firsts if firsts is not None and len(firsts) == len(ends) else nothing
    return tuple(
        SourceOffsets(start=start, end=end, first=one)
        for start, end, one in zip(begins, ends, first, strict=True)
    )


def _with_initial(store: FileStore, number: int, source: SourceOffsets) -> SourceOffsets:
    """A source of the query, with what it began with."""
    path = initial_file(source.end)
    if path is None:
        return source
    try:
        return replace(source, initial=store.read(f"{_SOURCES}/{number}/{path}").decode().strip())
    except (FileNotFoundError, ValueError):
        return source


def query_of(store: FileStore) -> str | None:
    """The id of the query whose checkpoint is in this folder, None if there is none. Raises like `read_batches`."""
    try:
        body = orjson.loads(store.read("metadata"))
    except (FileNotFoundError, ValueError):
        return None
    query_id = body.get("id") if isinstance(body, dict) else None
    return query_id if isinstance(query_id, str) else None


def _offsets(store: FileStore, epoch: int) -> tuple[str | None, ...] | None:
    try:
        return parse_offsets(store.read(f"{_OFFSETS}/{epoch}").decode())
    except (FileNotFoundError, ValueError):
        return None  # purged meanwhile, or written by a Spark of tomorrow: then the batch is not known
