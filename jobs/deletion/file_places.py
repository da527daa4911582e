"""The real places, at this moment, of the files in a log: relative, absolute, through links or mounts, two names of one
file become one."""

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.storage.file_store import canonical, local_path
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.storage.same_storage import Sameness, compared, is_one_kind, plain, spelled_like

__all__ = ["FilePlaces"]


class FilePlaces:
    """Places of files of the table at a canonical `location`. On local disks links are followed; each folder once.
    Raises `UnavailableError` where it cannot be told where something leads.

    `of_folder`: they are compared with places of files in that folder of another table. A storage that is, or may be,
    the folder's is called as it is called there, whatever the log calls it.
    """

    def __init__(self, location: str, *, of_folder: str | None = None) -> None:
        self._location = location.rstrip("/")
        self._is_own = of_folder is None
        self._folder = location if of_folder is None else of_folder
        self._storages: dict[str, str] = {}
        self._moment = Moment(strict=True)
        path = local_path(location)
        self._own = None if path is None else str(path)
        self._root = None if path is None else self._moment.path(str(path))

    def of(self, path: str) -> str:
        """The place of a file as the log names it (decoded; relative, `/absolute` or a URI).

        Raises `PreconditionError` if it cannot be told whether that is in the folder.
        """
        scheme, separator, rest = path.partition(":/")
        is_uri = bool(separator) and "/" not in scheme
        if is_uri and scheme.lower() == "file":
            return self._moment.file(f"/{rest.lstrip('/')}")
        if is_uri:
            authority, _, inner = rest[1:].partition("/") if rest.startswith("/") else ("", "", rest)
            return self._remote(f"{scheme}://{authority}", inner)
        if self._root is not None:
            return self._moment.file(path if path.startswith("/") else f"{self._own}/{path}")
        scheme, _, rest = self._location.partition("://")
        authority, _, folder = rest.partition("/")
        return self._remote(f"{scheme}://{authority}", path if path.startswith("/") else f"{folder}/{path}")

    def is_own(self, path: str) -> bool:
        """Whether a path relative to the folder leads through no link and to no other place."""
        return self._root is None or self.of(path) == f"{self._root}/{path}"

    def inside(self, place: str) -> bool:
        """Whether a place is in the table's folder."""
        root = self._location if self._root is None else self._root
        return place.startswith(root.rstrip("/") + "/")

    def _remote(self, storage: str, path: str) -> str:
        known = self._storages.get(storage)
        if known is None:
            # Of the spelling only scheme and authority are canonicalised: a decoded `%` in the path must stay as it is.
            known = self._storages[storage] = self._called(canonical(storage))
        return plain(f"{known}/{path.lstrip('/')}")

    def _called(self, storage: str) -> str:
        """A storage as it is called in the folder."""
        told = compared(storage, self._folder)
        if told is Sameness.UNTOLD and (self._is_own or not is_one_kind(storage, self._folder)):
            raise PreconditionError(
                f"{self._location} names a file on {storage}. Whether that is the storage of {self._folder} "
                "cannot be told.",
                hint="Nothing is deleted from it by a listing; vacuum without --full goes by the log.",
            )
        return spelled_like(storage, self._folder)
