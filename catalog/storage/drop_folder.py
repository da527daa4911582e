"""A folder beside the system tables in which processes leave small files for the leader, whole or not at all.

A file is `<folder>/<milliseconds>-<random>.json`. The leader reads them oldest first, acts, and deletes them:
a crash in between delivers twice.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.clock import Clock, SystemClock, from_millis, to_millis
from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.storage.file_store import FileStore, StorageOptions, open_store

__all__ = ["DropFolder"]

_ASIDE: Final = "unreadable"
_DIGITS: Final = 15


class DropFolder:
    """`folder` below a system location (canonical). Touches the storage only when it is used.

    Every method raises `UnavailableError` if the storage does not answer, `put` also where there are no system tables.
    """

    def __init__(
        self, system_location: str, folder: str, options: StorageOptions, *, clock: Clock | None = None
    ) -> None:
        self._location, self._folder, self._options = system_location, folder, options
        self._clock = clock or SystemClock()
        self._store: FileStore | None = None

    def put(self, data: bytes) -> None:
        """Leave one file."""
        name = f"{to_millis(self._clock.now()):0{_DIGITS}d}-{uuid.uuid4().hex}.json"
        with self._answering():
            self._opened().write(f"{self._folder}/{name}", data)

    def names(self, limit: int) -> tuple[str, ...]:
        """The oldest files, by name."""
        with self._answering():
            entries = self._opened().list(self._folder)
            paths = [entry.path for entry in entries if not entry.is_dir and _is_whole(entry.path)]
        return tuple(sorted(paths)[:limit])

    def read(self, name: str) -> bytes:
        """One file. Raises `UnavailableError`, too, if somebody has deleted it."""
        with self._answering():
            return self._opened().read(name)

    def delete(self, name: str) -> None:
        """Forget a file that was acted on."""
        with self._answering():
            self._opened().delete(name)

    def put_aside(self, name: str) -> None:
        """Move a file that cannot be read to `unreadable`, where it disturbs nobody and can be looked at."""
        with self._answering():
            store = self._opened()
            store.write(f"{self._folder}/{_ASIDE}/{name.rpartition('/')[2]}", store.read(name))
            store.delete(name)

    def written_at(self, name: str) -> datetime | None:
        """When a file was left, by the clock of who left it; None if its name does not say."""
        digits = name.rpartition("/")[2][:_DIGITS]
        millis = as_whole(digits)
        return None if millis is None else from_millis(millis)

    def _opened(self) -> FileStore:
        if self._store is None:
            store = open_store(self._location, self._options)
            if not store.exists(""):
                raise UnavailableError(
                    f"There are no system tables at {self._location}.", hint="`lakewarden init` makes them."
                )
            self._store = store
        return self._store

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UnavailableError(
                f"The {self._folder} folder of {self._location} cannot be used.",
                hint="Check the storage and its permissions.",
            ) from error


def _is_whole(path: str) -> bool:
    return path.endswith(".json") and not path.rpartition("/")[2].startswith(".")
