"""Files of notes that sessions left: which can be read, and which may still be waited for."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.lineage.note_folder import NoteFolder

__all__ = ["is_young", "legible"]

_PATIENCE: Final = timedelta(minutes=10)
"""How long a note waits for its table to become a managed one."""
_Note = TypeVar("_Note")


def legible(notes: NoteFolder[_Note], aside: Callable[[str], object]) -> Mapping[str, Sequence[_Note]]:
    """The notes of each file, the oldest first. One that cannot be read is put aside, and `aside` hears why. Raises
    `UnavailableError`."""
    files: dict[str, Sequence[_Note]] = {}
    for name in notes.names():
        try:
            files[name] = notes.read(name)
        except UnreadableError as error:
            aside(str(error))
            notes.put_aside(name)
    return files


def is_young(notes: NoteFolder[Any], name: str, now: datetime) -> bool:
    """Whether a file was left so lately that its tables may become managed ones yet."""
    at = notes.written_at(name)
    return at is not None and now - at < _PATIENCE
