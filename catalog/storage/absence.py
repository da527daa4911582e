"""Is a folder gone, or is only the disk away that it lies on? Nothing may be concluded from a mount that is
not there."""

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.storage.file_store import StorageOptions, open_store

__all__ = ["is_surely_gone"]


def is_surely_gone(location: str, options: StorageOptions) -> bool:
    """Whether a table that is not found at a location is gone from there, and not only out of sight: the
    folder is absent while the one around it answers and holds something else, or it holds something else itself.

    An empty folder says nothing, nor does one that is absent from an empty or absent one: the place where a
    disk is mounted is empty while it is away.
    """
    parent, _, name = location.rstrip("/").rpartition("/")
    if not name or parent.endswith((":/", "://")):
        return False
    try:
        if open_store(location, options).exists(""):
            return any(True for _ in open_store(location, options).list(""))
        return any(True for _ in open_store(parent, options).list(""))
    except (UnavailableError, OSError):  # a dead mount, a folder that may not be listed
        return False
