"""Notes of sessions about writes that are not governed, on the way to `lakewarden.lineage`: the folder `writes`.

An attached session that sees what a plan of Spark's has read, and which version came of it, leaves a file now and then
with all such writes since the last one, whether or not a daemon runs. The daemon makes rows of them, and deletes the
files.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lakewarden.catalog.clock import Clock, from_millis, to_millis
from lakewarden.catalog.lineage.note_folder import NoteFolder, number_told, text_told
from lakewarden.catalog.storage.file_store import StorageOptions

__all__ = ["SeenRead", "WriteNote", "WriteNotes"]

_FOLDER: Final = "writes"


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


class WriteNotes(NoteFolder[WriteNote]):
    """The folder `writes` of a system location (canonical)."""

    def __init__(self, system_location: str, options: StorageOptions, *, clock: Clock | None = None) -> None:
        super().__init__(system_location, _FOLDER, options, clock=clock, write=_as_json, read=_note)


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
        location=text_told(body["location"]),
        began=from_millis(number_told(body["began"])),
        ended=from_millis(number_told(body["ended"])),
        version=None if version is None else number_told(version),
        complete=body["complete"] is True,
        twice=body["twice"] is not False,
        reads=tuple(_read(*one) for one in body["reads"]),
    )


def _read(location: object, version: object, from_version: object, format_id: object) -> SeenRead:
    return SeenRead(
        location=text_told(location),
        version=number_told(version),
        from_version=None if from_version is None else number_told(from_version),
        format_id=None if format_id is None else text_told(format_id),
    )
