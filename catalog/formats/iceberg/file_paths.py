"""Where the files lie that metadata names: Iceberg writes whole paths, each engine in its own spelling."""

import re
from typing import Final

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.storage.file_store import canonical, from_hadoop, is_inside, local_path

__all__ = ["FilePaths"]

_FILE: Final = "file:"
_DOUBLED: Final = re.compile("//+")


class FilePaths:
    """Paths of one table at a canonical location; `told` is where its metadata says that it lies."""

    def __init__(self, location: str, told: str) -> None:
        self._told = told.rstrip("/")
        self.is_relative = "://" not in told and not told.startswith(("/", _FILE))
        self.is_here = self.is_relative or _canonical(told) == location
        own = local_path(location)
        self._own = location if own is None else str(own)

    def path(self, named: str) -> str:
        """As `DataFile.path` has it: relative to the table's folder, or whole where it is not in there."""
        if self.is_here and named.startswith(f"{self._told}/"):
            inner = named[len(self._told) + 1 :]
            if not inner.startswith("/"):
                return inner
        plain = _plain(named)
        inner = plain[len(self._own) + 1 :] if is_inside(plain, self._own) else ""
        return plain if not inner or inner.startswith("/") else inner

    def is_elsewhere(self, folder: str) -> bool:
        """Whether a folder that a property names is not in the table's own."""
        inside = self.path(f"{folder.rstrip('/')}/x")
        return inside.startswith("/") or "://" in inside


def _canonical(told: str) -> str | None:
    try:
        return from_hadoop(told)
    except UsageError:
        return None


def _plain(named: str) -> str:
    """One spelling of a whole path; nothing in it is percent-encoded."""
    if named.startswith(_FILE):
        named = "/" + named.removeprefix(_FILE).lstrip("/")
    scheme, separator, rest = named.partition("://")
    if not separator:
        return _DOUBLED.sub("/", named)  # which means something else on object stores
    authority, _, inner = rest.partition("/")
    return f"{canonical(f'{scheme}://{authority}')}/{inner}"
