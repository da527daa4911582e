"""Notes of sessions about writes that are not governed, on the way to `lakewarden.lineage`: the folder `writes`.

An attached session that sees what a plan of Spark's has read, and which version came of it, leaves a file now and then
with all such writes since the last one, whether or not a daemon runs. The daemon makes rows of them, and deletes the
files.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from lakewarden.catalog.clock import Clock, from_millis, to_millis
from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.storage.drop_folder import DropFolder
from lakewarden.catalog.storage.file_store import StorageOptions

__all__ = ["SeenRead", "WriteNote", "WriteNotes"]

_FOLDER: Final = "writes"
_AT_ONCE: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenRead:
    """A version of a table that was read."""

    location: str
    """Canonical."""
    version: int
    from_version: int | None = None
    """Set where only changes were read: those of the versions after it, up to the version."""
    format_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteNote:
    """One write that a session saw, and has not made a commit of its own for."""

    location: str
    """The canonical place of the table that was written to."""
    began: datetime
    ended: datetime
    """By the clock of the session, which its commit is stamped with."""
    version: int | None
    """The one that came of it, where the write itself tells."""
    reads: tuple[SeenRead, ...]
    complete: bool
    """Whether `reads` is all that was read."""
    twice: bool
    """Whether Spark has looked for what it reads once more when it wrote: somebody may have committed in between."""

    @property
    def key(self) -> Hashable:
        """What tells a write from others."""
        return (self.location, self.began, self.ended)


class WriteNotes:
    """The folder `writes` of a system location (canonical). Every method may raise `UnavailableError`."""

    def __init__(self, system_location: str, options: StorageOptions, *, clock: Clock | None = None) -> None:
        self._files = DropFolder(system_location, _FOLDER, options, clock=clock)

    def put(self, notes: Iterable[WriteNote]) -> None:
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

    def read(self, name: str) -> tuple[WriteNote, ...]:
        """The notes in a file. Raises `UnreadableError` for a file that is none."""
        data = self._files.read(name)
        try:
            body = orjson.loads(data)
            if body["v"] != 1:
                raise ValueError("another version")
            return tuple(_note(one) for one in body["notes"])
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableError(f"{name} has no notes on writes.", hint="It was put aside.") from error

    def delete(self, name: str) -> None:
        """Forget a file that is on record."""
        self._files.delete(name)

    def put_aside(self, name: str) -> None:
        """Move a file that cannot be read out of the way."""
        self._files.put_aside(name)


def _as_json(note: WriteNote) -> dict[str, Any]:
    return {
        "location": note.location,
        "began": to_millis(note.began),
        "ended": to_millis(note.ended),
        "version": note.version,
        "complete": note.complete,
        "twice": note.twice,
        "reads": [[one.location, one.version, one.from_version, one.format_id] for one in note.reads],
    }


def _note(body: Mapping[str, Any]) -> WriteNote:
    version = body["version"]
    return WriteNote(
        location=_text(body["location"]),
        began=from_millis(_number(body["began"])),
        ended=from_millis(_number(body["ended"])),
        version=None if version is None else _number(version),
        complete=body["complete"] is True,
        twice=body["twice"] is not False,
        reads=tuple(_read(*one) for one in body["reads"]),
    )


def _read(location: object, version: object, from_version: object, format_id: object) -> SeenRead:
    return SeenRead(
        location=_text(location),
        version=_number(version),
        from_version=None if from_version is None else _number(from_version),
        format_id=None if format_id is None else _text(format_id),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    return value
