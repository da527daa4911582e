"""Notes of sessions about batches of their streams, on the way to `lakewarden.lineage`: the folder `streams`.

A session that was attached leaves a file now and then with all batches since the last one,
whether or not a daemon runs.
The daemon makes rows of them, in one commit, and deletes the files;
until then a rollback plan reads them where they are.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnavailableError, UnreadableError
from lakewarden.catalog.lineage.streams.offsets import Began, SourceOffsets, StreamBatch
from lakewarden.catalog.storage.drop_folder import DropFolder
from lakewarden.catalog.storage.file_store import StorageOptions

__all__ = ["StreamNote", "StreamNotes", "waiting"]

_FOLDER: Final = "streams"
_AT_ONCE: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamNote:
    """One batch and the canonical location of the Delta table that it was written to."""

    sink: str
    batch: StreamBatch

    @property
    def key(self) -> Hashable:
        """What tells a batch from others: one that was tried again is told as it was at last."""
        return (self.sink, *self.batch.key)


class StreamNotes:
    """The folder `streams` of a system location (canonical). Every method may raise `UnavailableError`."""

    def __init__(self, system_location: str, options: StorageOptions, *, clock: Clock | None = None) -> None:
        self._files = DropFolder(system_location, _FOLDER, options, clock=clock)

    def put(self, notes: Iterable[StreamNote]) -> None:
        """Leave notes as one file."""
        told = [_as_json(note) for note in notes]
        if told:
            self._files.put(orjson.dumps({"v": 1, "notes": told}))

    def names(self, limit: int = _AT_ONCE) -> tuple[str, ...]:
        """The oldest files, by name."""
        return self._files.names(limit)

    def written_at(self, name: str) -> datetime | None:
        """When a file was left; None if its name does not say."""
        return self._files.written_at(name)

    def read(self, name: str) -> tuple[StreamNote, ...]:
        """The notes in a file. Raises `UnreadableError` for a file that is none."""
        data = self._files.read(name)
        try:
            body = orjson.loads(data)
            if body["v"] != 1:
                raise ValueError("another version")
            return tuple(_note(one) for one in body["notes"])
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableError(f"{name} has no notes on streams.", hint="It was put aside.") from error

    def delete(self, name: str) -> None:
        """Forget a file that is on record."""
        self._files.delete(name)

    def put_aside(self, name: str) -> None:
        """Move a file that cannot be read out of the way."""
        self._files.put_aside(name)


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
        "sources": [[one.start, one.end, one.first] for one in batch.sources],
    }


def _note(body: Mapping[str, Any]) -> StreamNote:
    version = body["version"]
    began = Began(
        content=body["content"] is True,
        version=None if version is None else _number(version),
        skips=body["skips"] is True,
    )
    return StreamNote(
        sink=_text(body["sink"]),
        batch=StreamBatch(
            query_id=_text(body["query_id"]),
            epoch=_number(body["epoch"]),
            sources=tuple(_source(*one) for one in body["sources"]),
            stateful=body["stateful"] is True,
            began=began,
        ),
    )


def _source(start: object, end: object, first: object) -> SourceOffsets:
    return SourceOffsets(start=_optional(start), end=_optional(end), first=_optional(first))


def _optional(value: object) -> str | None:
    return None if value is None else _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    return value
