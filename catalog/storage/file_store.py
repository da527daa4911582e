"""Locations as canonical URIs, and small files on any storage, without a JVM.

The control plane reads logs and writes spool files through `FileStore`. Local paths use the operating system,
everything else delta-rs' object stores (hdfs://, s3://, abfs://, gs://).
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from errno import ELOOP
from pathlib import Path
from stat import S_ISDIR, S_ISLNK
from typing import Final, Protocol
from urllib.parse import SplitResult, quote, unquote, urlsplit

import pyarrow as pa

from lakewarden.catalog.bounds import as_moment
from lakewarden.catalog.errors import RefusedError, UsageError
from lakewarden.catalog.storage.credentials import NO_OPTIONS, StorageOptions
from lakewarden.catalog.storage.file_entry import FileEntry
from lakewarden.catalog.storage.regular_files import opened, whole
from lakewarden.catalog.storage.remote_store import RemoteStore, temporary
from lakewarden.catalog.storage.troubles import trouble_at
from lakewarden.catalog.units import storable

__all__ = [
    "FileEntry",
    "FileStore",
    "StorageOptions",
    "as_hadoop_says",
    "below",
    "canonical",
    "from_hadoop",
    "is_inside",
    "is_spelled_once",
    "local_path",
    "location_of",
    "open_store",
    "root_and_path",
    "spelled",
]

_ALIASES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "abfs", "gcs": "gs"}
_UNENCODED: Final = "/=:@!$&'()*+,;-._~"
_READ_IN_TWO_WAYS: Final = re.compile(r"[#?%\x00-\x1f\x7f]")


def canonical(location: str) -> str:
    """One spelling per place: absolute, scheme lower-case, no trailing slash, symbolic links and `..` resolved.

    `/a/b/`, `file:/a/b` and `file:///a/b` become `file:///a/b`; `s3a://` becomes `s3://`. Local paths are
    percent-encoded where a URI needs it; of others every character after the authority is one of the path. A blank at
    the end is one of a local path's, but not of a URI. Raises `UsageError` for what is none.
    """
    return _one_spelling(location, os.path.realpath)


def spelled(location: str) -> str:
    """The same by the text alone: no link is followed and no disk asked. Raises `UsageError` for what is none."""
    return _one_spelling(location, os.path.abspath)


def _one_spelling(location: str, resolved: Callable[[str], str]) -> str:
    text = location.strip()
    if not text:
        raise UsageError(
            "A location cannot be empty.", hint="Give a path or a URI such as hdfs://host:9000/data/t."
        )
    scheme = _parts(text).scheme.lower() if "://" in text or text.lower().startswith("file:") else ""
    if "\0" in text:
        raise UsageError("A location cannot hold a NUL character.", hint="Give a path or a URI.")
    if scheme in ("", "file"):
        raw = location.lstrip() if scheme == "" else unquote("/" + text.split(":", 1)[1].lstrip("/"))
        return location_of(resolved(os.path.expanduser(raw)))
    authority, _, inner = text.partition("://")[2].partition("/")
    path = os.path.normpath("/" + inner.lstrip("/")) if inner.strip("/") else ""
    return f"{_ALIASES.get(scheme, scheme)}://{authority}{path}"


def location_of(path: str) -> str:
    """The location of an absolute local path, as it is spelled: no link is followed."""
    return "file://" + quote(path, safe=_UNENCODED)


def from_hadoop(text: str) -> str:
    """The canonical location that Hadoop's text for a `Path` means, as engines write it into the metastore: nothing
    in it is percent-encoded."""
    return canonical(as_hadoop_says(text))


def as_hadoop_says(text: str) -> str:
    """Hadoop's text for a `Path` as a path or a URI of ours; nothing is resolved."""
    return text.removeprefix("file:") if text.startswith("file:/") else text


def below(location: str, path: str) -> str:
    """The canonical location of what a listing of the store at a canonical `location` calls `path`.

    A local name that is no UTF-8 stays as it is: it has no canonical spelling, and whoever meets it refuses it.
    """
    if not path:
        return location
    spelled = (
        quote(path, safe=_UNENCODED) if location.startswith("file://") and storable(path) == path else path
    )
    return f"{location.removesuffix('/')}/{spelled}"


def is_spelled_once(location: str) -> bool:
    """Whether storages and engines take a canonical location for the same place. Object stores take it for a URL,
    Hadoop for plain text: on remote storages `#`, `?` and `%` mean one thing to the ones, another to the others."""
    return location.startswith("file://") or not _READ_IN_TWO_WAYS.search(location)


def _parts(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError as error:
        raise UsageError(
            f"'{text}' is not a location: {error}.",
            hint="Give a path or a URI such as hdfs://host:9000/data/t.",
        ) from error


def local_path(location: str) -> Path | None:
    """The file-system path of a canonical local location, None for any other storage."""
    return Path(unquote(location.removeprefix("file://"))) if location.startswith("file://") else None


def is_inside(inner: str, outer: str) -> bool:
    """Whether canonical location `inner` lies strictly below `outer`."""
    return inner.startswith(outer.rstrip("/") + "/")


def root_and_path(location: str, path: str) -> tuple[str, str]:
    """Where a file named by a table's log is: a store's root and the path within it.

    `path` is decoded: relative to the table's canonical `location`, absolute on the same storage, or a whole URI.
    """
    if "://" in path:
        parts = urlsplit(path)
        return f"{_ALIASES.get(parts.scheme, parts.scheme)}://{parts.netloc}", parts.path.lstrip("/")
    if path.startswith("/"):
        parts = urlsplit(location)
        return f"{parts.scheme}://{parts.netloc or '/'}", path.lstrip("/")
    return location, path


class FileStore(Protocol):
    """A folder on some storage. Paths are relative to it, `/`-separated. Missing files raise FileNotFoundError."""

    @property
    def root(self) -> str:
        """The canonical location this store is rooted at."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder at `path`. Raises `UnavailableError` where that cannot be told."""

    def read(self, path: str) -> bytes:
        """The whole file."""

    def open(self, path: str) -> pa.NativeFile:
        """The file for reading at any offset, for those too large to hold; the caller closes it."""

    def stat(self, path: str) -> FileEntry:
        """Size and time of one file."""

    def list(self, path: str, *, recursive: bool = False) -> Iterator[FileEntry]:
        """Entries below a folder, by name; nothing when it is absent. `recursive` refuses links that go in a circle."""

    def tree(self) -> Iterator[FileEntry]:
        """All that lies below the root, a folder before what is in it. No link is followed, wherever it leads: it is a
        file without a size."""

    def named(self, path: str, wanted: Callable[[str], bool]) -> Iterator[FileEntry]:
        """The entries of a folder whose own names are `wanted`, by name; nothing is asked of the others."""

    def folders(self, path: str) -> Iterator[str]:
        """The paths of the folders in a folder, by name; nothing when it is absent. For a search: links that lead
        nowhere, or round in a circle, are passed over, for which `list` raises."""

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file so that readers see all of it or nothing."""

    def delete(self, path: str) -> None:
        """Delete one file; quietly when it is absent."""

    def delete_listed(self, entry: FileEntry) -> bool:
        """Delete a file if it still is the one of that listing, by size and time; quietly when it is absent. False:
        another one lies there by now, and stays. Costs no request more than `delete`."""


def open_store(location: str, options: StorageOptions = NO_OPTIONS) -> FileStore:
    """The file store rooted at a canonical location."""
    path = local_path(location)
    return _LocalStore(location, path) if path is not None else RemoteStore(location, options)


class _LocalStore:
    def __init__(self, root: str, path: Path) -> None:
        self._root, self._path, self._text = root, path, str(path)

    @property
    def root(self) -> str:
        return self._root

    def exists(self, path: str) -> bool:
        try:
            os.stat(f"{self._text}/{path}")  # every sweep asks this of every table
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise trouble_at(self._root, error) from error
        return True

    def read(self, path: str) -> bytes:
        return whole(self._at(path))

    def open(self, path: str) -> pa.NativeFile:
        os.close(opened(self._at(path)))
        return pa.OSFile(str(self._at(path)), "rb")

    def stat(self, path: str) -> FileEntry:
        status = os.stat(f"{self._text}/{path}")
        return _local_entry(path, status, is_dir=S_ISDIR(status.st_mode))

    def list(self, path: str, *, recursive: bool = False) -> Iterator[FileEntry]:
        return self._listed(path, recursive=recursive, follows=True)

    def tree(self) -> Iterator[FileEntry]:
        return self._listed("", recursive=True, follows=False)

    def _listed(self, path: str, *, recursive: bool, follows: bool) -> Iterator[FileEntry]:
        for relative, entry in self._scanned(path):
            try:
                is_dir, status = entry.is_dir(follow_symlinks=follows), entry.stat(follow_symlinks=follows)
            except FileNotFoundError:
                continue  # gone between listing and stat: as if it had never been listed
            except OSError as error:
                if error.errno != ELOOP or not recursive:
                    raise
                raise self._circular(relative) from error
            yield _local_entry(relative, status, is_dir=is_dir)
            if recursive and is_dir:
                if follows and entry.is_symlink() and _is_above(self._at(relative), self._at(path)):
                    raise self._circular(relative)
                yield from self._listed(relative, recursive=True, follows=follows)

    def _circular(self, link: str) -> RefusedError:
        return RefusedError(f"{link} in {self._root} is a link that goes in a circle.", hint="Remove it.")

    def _scanned(self, path: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """What is in a folder, by name, each with its path; nothing when it is absent."""
        try:
            entries = sorted(os.scandir(self._at(path)), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            yield f"{path}/{entry.name}" if path else entry.name, entry

    def named(self, path: str, wanted: Callable[[str], bool]) -> Iterator[FileEntry]:
        try:
            names = sorted(name for name in os.listdir(self._at(path)) if wanted(name))
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            try:
                yield self.stat(f"{path}/{name}" if path else name)
            except FileNotFoundError:
                continue  # gone between listing and stat: as if it had never been listed

    def folders(self, path: str) -> Iterator[str]:
        return (relative for relative, entry in self._scanned(path) if _is_folder(entry))

    def write(self, path: str, data: bytes) -> None:
        target = self._at(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        unseen = target.with_name(temporary(f".{target.name}"))
        unseen.write_bytes(data)
        os.replace(unseen, target)

    def delete(self, path: str) -> None:
        self._at(path).unlink(missing_ok=True)

    def delete_listed(self, entry: FileEntry) -> bool:
        place = f"{self._text}/{entry.path}"
        with suppress(FileNotFoundError, NotADirectoryError):
            status = os.lstat(place)
            if not _is_listed(entry, status) and not (
                S_ISLNK(status.st_mode)
                and _is_listed(entry, os.stat(place))  # by a listing that follows links
            ):
                return False
            os.unlink(place)
        return True

    def _at(self, path: str) -> Path:
        return self._path / path


def _is_above(link: Path, folder: Path) -> bool:
    return any(one.resolve().is_relative_to(link.resolve()) for one in (folder, *folder.parents))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno == ELOOP:
            return False
        raise


def _local_entry(path: str, status: os.stat_result, *, is_dir: bool) -> FileEntry:
    size = 0 if is_dir or S_ISLNK(status.st_mode) else status.st_size
    return FileEntry(path=path, size_bytes=size, modified_at=as_moment(status.st_mtime), is_dir=is_dir)


def _is_listed(entry: FileEntry, status: os.stat_result) -> bool:
    return entry == _local_entry(entry.path, status, is_dir=S_ISDIR(status.st_mode))
