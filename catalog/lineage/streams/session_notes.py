"""Notes of sessions about batches of their streams, on the way to `lakewarden.lineage`: the folder `streams`.

A session that was attached leaves a file now and then with all batches since the last one,
whether or not a daemon runs.
The daemon makes rows of them, in one commit, and deletes the files;
until then a rollback plan reads them where they are.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnavailableError, UnreadableError
from lakewarden.catalog.lineage.note_folder import NoteFolder, number_told, text_told
from lakewarden.catalog.lineage.streams.offsets import Began, SourceOffsets, StreamBatch
from lakewarden.catalog.storage.file_store import StorageOptions

__all__ = ["StreamNote", "StreamNotes", "waiting"]

_FOLDER: Final = "streams"


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamNote:
    """One batch and the canonical location of the Delta table that it was written to."""

    sink: str
    batch: StreamBatch

    @property
    def key(self) -> Hashable:
        """What tells a batch from others: one that was tried again is told as it was at last."""
        return (self.sink, *self.batch.key)


class StreamNotes(NoteFolder[StreamNote]):
    """The folder `streams` of a system location (canonical)."""

    def __init__(self, system_location: str, options: StorageOptions, *, clock: Clock | None = None) -> None:
        super().__init__(system_location, _FOLDER, options, clock=clock, write=_as_json, read=_note)


def waiting(notes: StreamNotes) -> Iterator[StreamNote]:
    """The notes that are not on record yet; none where nobody answers. Changes nothing."""
    try:
        names = notes.names()
    except UnavailableError:
        return
    for name in names:
        try:
            yield from notes.read(name)
        except (UnavailableError, UnreadableError):
            continue  # the daemon has just taken it, or will put it aside


def _as_json(note: StreamNote) -> dict[str, Any]:
    batch = note.batch
    return {
        "sink": note.sink,
        "query_id": batch.query_id,
        "epoch": batch.epoch,
        "stateful": batch.stateful,
        "content": batch.began.content,
        "version": batch.began.version,
        "skips": batch.began.skips,
        "sources": [_offsets(one) for one in batch.sources],
    }


def _note(body: Mapping[str, Any]) -> StreamNote:
    version = body["version"]
    began = Began(
        content=body["content"] is True,
        version=None if version is None else number_told(version),
        skips=body["skips"] is True,
    )
    return StreamNote(
        sink=text_told(body["sink"]),
        batch=StreamBatch(
            query_id=text_told(body["query_id"]),
            epoch=number_told(body["epoch"]),
            sources=tuple(_source(*one) for one in body["sources"]),
            stateful=body["stateful"] is True,
            began=began,
        ),
    )


def _offsets(source: SourceOffsets) -> list[str | None]:
    told = [source.start, source.end, source.first]
    return told if source.initial is None else [*told, source.initial]


def _source(start: object, end: object, first: object, initial: object = None) -> SourceOffsets:
    return SourceOffsets(
        start=_optional(start), end=_optional(end), first=_optional(first), initial=_optional(initial)
    )


def _optional(value: object) -> str | None:
    return None if value is None else text_told(value)
