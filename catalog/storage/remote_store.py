"""Files on storages that are reached by requests, through delta-rs' object stores."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.fs as pafs

from lakewarden.catalog.storage.arrow_handler import ArrowHandler
from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.file_entry import FileEntry
from lakewarden.catalog.storage.secret_files import current
from lakewarden.catalog.storage.troubles import answering

__all__ = ["RemoteStore", "temporary"]

_PATIENCE = {"retry_timeout": "10s"}
"""For object stores whose options say nothing else. delta-rs itself repeats a request that fails for three minutes, and
lets no other thread run while it waits for a listing: not even the one that renews the lease."""


class RemoteStore:
    """A folder behind one of delta-rs' object stores."""

    def __init__(self, root: str, options: StorageOptions) -> None:
        self._root, self._options = root, options
        self._opened = self._open(current(options))

    @property
    def _fs(self) -> pafs.FileSystem:
        """What reaches the storage with the credentials of now: another one once they were rotated."""
        if self._options.files:
            told = current(self._options)
            if told != self._opened[0]:
                self._opened = self._open(told)
        return self._opened[1]

    def _open(self, options: dict[str, str]) -> tuple[dict[str, str], pafs.FileSystem]:
        told = options if self._root.startswith("hdfs://") else {**_PATIENCE, **options}
        with answering(self._root):
            return options, pafs.PyFileSystem(ArrowHandler(self._root, told or None))

    @property
    def root(self) -> str:
        return self._root

    def exists(self, path: str) -> bool:
        return bool(self._info(path).type != pafs.FileType.NotFound)

    def read(self, path: str) -> bytes:
        if self._info(path).type != pafs.FileType.File:
            raise FileNotFoundError(f"{self._root}/{path}")
        with answering(self._root), self._fs.open_input_stream(path) as stream:
            return bytes(stream.read())

    def open(self, path: str) -> pa.NativeFile:
        if self._info(path).type != pafs.FileType.File:
            raise FileNotFoundError(f"{self._root}/{path}")
        with answering(self._root):
            return self._fs.open_input_file(path)

    def stat(self, path: str) -> FileEntry:
        info = self._info(path)
        if info.type == pafs.FileType.NotFound:
            raise FileNotFoundError(f"{self._root}/{path}")
        return _remote_entry(info)

    def list(self, path: str, *, recursive: bool = False) -> Iterator[FileEntry]:
        selector = pafs.FileSelector(path, allow_not_found=True, recursive=recursive)
        with answering(self._root):
            infos = self._fs.get_file_info(selector)
        yield from sorted(map(_remote_entry, infos), key=lambda entry: entry.path)

    def tree(self) -> Iterator[FileEntry]:
        return self.list("", recursive=True)

    def named(self, path: str, wanted: Callable[[str], bool]) -> Iterator[FileEntry]:
        return (entry for entry in self.list(path) if wanted(entry.path.rpartition("/")[2]))

    def folders(self, path: str) -> Iterator[str]:
        return (entry.path for entry in self.list(path) if entry.is_dir)

    def write(self, path: str, data: bytes) -> None:
        # HDFS shows a growing file, hence the move. Object stores show a file when it is closed, and move by copying.
        grows = self._root.startswith("hdfs://")
        first = temporary(path) if grows else path
        with answering(self._root):
            with self._fs.open_output_stream(first) as stream:
                stream.write(data)
            if grows:
                self._fs.move(first, path)

    def delete(self, path: str) -> None:
        if self.exists(path):
            with answering(self._root):
                self._fs.delete_file(path)

    def delete_listed(self, entry: FileEntry) -> bool:
        info = self._info(entry.path)
        if info.type == pafs.FileType.NotFound:
            return True
        if not self._is_same(_remote_entry(info), entry):
            return False
        with answering(self._root):
            self._fs.delete_file(entry.path)
        return True

    def _is_same(self, now: FileEntry, listed: FileEntry) -> bool:
        if self._root.startswith("hdfs://"):
            return now == listed
        # Object stores tell times in whole seconds when they are asked for one file, and some of them exactly in lists.
        return replace(now, modified_at=_second(now)) == replace(listed, modified_at=_second(listed))

    def _info(self, path: str) -> pafs.FileInfo:
        with answering(self._root):
            return self._fs.get_file_info(path)


def _second(entry: FileEntry) -> datetime:
    return entry.modified_at.replace(microsecond=0)


def _remote_entry(info: pafs.FileInfo) -> FileEntry:
    is_dir = info.type == pafs.FileType.Directory
    modified = (info.mtime or datetime.fromtimestamp(0, UTC)).replace(tzinfo=UTC)
    return FileEntry(
        path=info.path, size_bytes=0 if is_dir else info.size, modified_at=modified, is_dir=is_dir
    )


def temporary(name: str) -> str:
    """What a file is called until it is whole. Not by the process: in containers two of them have the same number."""
    return f"{name}.{uuid.uuid4().hex}.tmp"
