"""A folder in which sessions leave notes for the daemon, as files of several notes each, whether or not one runs. The
daemon makes rows of them, and deletes the files."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

import orjson

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.storage.drop_folder import DropFolder
from lakewarden.catalog.storage.file_store import StorageOptions

__all__ = ["NoteFolder", "number_told", "text_told"]

_AT_ONCE: Final = 500
_Note = TypeVar("_Note")


class NoteFolder(Generic[_Note]):
    """A folder of a system location (canonical). Every method may raise `UnavailableError`."""

    def __init__(
        self,
        system_location: str,
        folder: str,
        options: StorageOptions,
        *,
        clock: Clock | None,
        write: Callable[[_Note], Mapping[str, Any]],
        read: Callable[[Mapping[str, Any]], _Note],
    ) -> None:
        """`write` gives the JSON of a note, and `read` the note of such JSON; it raises `ValueError`, `KeyError` or
        `TypeError` for any other."""
        self._files = DropFolder(system_location, folder, options, clock=clock)
        self._folder, self._write, self._read = folder, write, read

    def put(self, notes: Iterable[_Note]) -> None:
        """Leave notes as one file."""
        told = [self._write(note) for note in notes]
        if told:
            self._files.put(orjson.dumps({"v": 1, "notes": told}))

    def names(self, limit: int = _AT_ONCE) -> tuple[str, ...]:
        """The oldest files, by name."""
        return self._files.names(limit)

    def written_at(self, name: str) -> datetime | None:
        """When a file was left; None if its name does not say."""
        return self._files.written_at(name)

    def read(self, name: str) -> tuple[_Note, ...]:
        """The notes in a file. Raises `UnreadableError` for a file that is none."""
        data = self._files.read(name)
        try:
            body = orjson.loads(data)
            if body["v"] != 1:
                raise ValueError("another version")
            return tuple(self._read(one) for one in body["notes"])
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableError(
                f"{name} has no notes on {self._folder}.", hint="It was put aside."
            ) from error

    def delete(self, name: str) -> None:
        """Forget a file that is on record."""
        self._files.delete(name)

    def put_aside(self, name: str) -> None:
        """Move a file that cannot be read out of the way."""
        self._files.put_aside(name)


def text_told(value: object) -> str:
    """A text in JSON. Raises `TypeError` for anything else."""
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def number_told(value: object) -> int:
    """A whole number in JSON. Raises `TypeError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    return value
