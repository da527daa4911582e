"""The real places, at this moment, of the files in a log: relative, absolute, through links or mounts, two names of one
file become one."""

from typing import Final
from urllib.parse import urlsplit

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.storage.file_store import canonical, local_path
from lakewarden.catalog.storage.place import Moment

__all__ = ["FilePlaces"]

_OBJECT_STORES: Final = frozenset({"s3", "gs", "abfs", "az", "adl"})
"""Of these, another bucket or account is another place. Of others (HDFS) two names may mean one cluster."""


class FilePlaces:
    """Places of files of the table at a canonical `location`. On local disks links are followed; each folder once.
    Raises `UnavailableError` where it cannot be told where something leads."""

    def __init__(self, location: str) -> None:
        self._location = location.rstrip("/")
        self._moment = Moment(strict=True)
        path = local_path(location)
        self._own = None if path is None else str(path)
        self._root = None if path is None else self._moment.path(str(path))

    def of(self, path: str) -> str:
        """The place of a file as the log names it (decoded; relative, `/absolute` or a URI).

        Raises `PreconditionError` if it cannot be told whether that is in the table's folder.
        """
        scheme, separator, rest = path.partition(":/")
        is_uri = bool(separator) and "/" not in scheme
        if is_uri and scheme.lower() == "file":
            return self._moment.file(f"/{rest.lstrip('/')}")
        if is_uri:
            return self._remote(path, rest)
        if self._root is not None:
            return self._moment.file(path if path.startswith("/") else f"{self._own}/{path}")
        if path.startswith("/"):
            parts = urlsplit(self._location)
            return f"{parts.scheme}://{parts.netloc}{path}"
        return f"{self._location}/{path}"

    def is_own(self, path: str) -> bool:
        """Whether a path relative to the folder leads through no link and to no other place."""
        return self._root is None or self.of(path) == f"{self._root}/{path}"

    def inside(self, place: str) -> bool:
        """Whether a place is in the table's folder."""
        root = self._location if self._root is None else self._root
        return place.startswith(root.rstrip("/") + "/")

    def _remote(self, path: str, rest: str) -> str:
        authority, _, inner = rest.lstrip("/").partition("/")
        # Of the spelling only scheme and authority are canonicalised: a decoded `%` in the path must stay as it is.
        storage = canonical(f"{path.partition(':/')[0]}://{authority}")
        own = urlsplit(self._location)
        theirs = urlsplit(storage)
        elsewhere = {own.scheme, theirs.scheme} & {"file", *_OBJECT_STORES}
        if (own.scheme, own.netloc) != (theirs.scheme, theirs.netloc) and not elsewhere:
            raise PreconditionError(
                f"{self._location} names a file on {storage}. Whether these are one storage cannot be told.",
                hint="Nothing is deleted from it by a listing; vacuum without --full goes by the log.",
            )
        return f"{storage}/{inner}"
