"""Tables that lie around a location, told by a look at the folders above it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lakewarden.catalog.errors import AccessDeniedError, PreconditionError
from lakewarden.catalog.formats.inner_tables import signs
from lakewarden.catalog.model.identity import ancestors
from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.file_store import local_path, open_store
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.storage.troubles import trouble_at

__all__ = ["Above", "Outer", "require_no_outer"]

_AT_ONCE: Final = 8
"""Looks at a remote storage under way at the same time."""
Above = Callable[[str], str | None]
"""The nearest table that a location lies in; None where it lies in none."""


class Outer:
    """`Above` at one moment: whoever manages it, or nobody. Each folder is looked at once.

    A folder of a remote storage that may not be looked into counts as none: a key may be good for a part of it alone.
    Raises `UnavailableError` where a storage does not answer.
    """

    def __init__(self, storage: Callable[[str], StorageOptions]) -> None:
        self._storage, self._moment = storage, Moment()
        self._is_table: dict[str, bool] = {}

    def __call__(self, location: str) -> str | None:
        is_local = local_path(location) is not None
        real = self._moment.spelling(location) if is_local else location
        folders = [one if one != "file://" else "file:///" for one in ancestors(real)]
        new = [folder for folder in folders if folder not in self._is_table]
        if is_local:
            self._is_table.update((folder, self._look(folder)) for folder in new)
        else:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                self._is_table.update(zip(new, pool.map(self._look, new), strict=True))
        return next((folder for folder in folders if self._is_table[folder]), None)

    def _look(self, folder: str) -> bool:
        store = open_store(folder, self._storage(folder))
        try:
            return any(
                sign.is_seen(sign.folder, [entry.path.rpartition("/")[2]])
                for sign in signs().values()
                for entry in store.list(sign.folder)
            )
        except AccessDeniedError:
            return False
        except PermissionError:  # a local folder that is there and may not be listed
            return True
        except OSError as error:
            raise trouble_at(folder, error) from error


def require_no_outer(above: Above, location: str, *, name: str, hint: str) -> None:
    """Raise `PreconditionError` if a table lies in another one's folder: what it does not need, that one may."""
    outer = above(location)
    if outer is not None:
        raise PreconditionError(
            f"{name} lies inside another table, {outer}, which may need its files.", hint=hint
        )
