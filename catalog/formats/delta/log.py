"""The log folder of one table on its storage: listing, commits as lines, checkpoints as Parquet."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.delta.errors import LOG_READABLE, BrokenLogError, VanishedError
from lakewarden.catalog.formats.delta.log_names import FOLDER, is_after
from lakewarden.catalog.formats.delta.segment import LogListing, listing_of
from lakewarden.catalog.storage.file_store import FileEntry, FileStore, local_path
from lakewarden.catalog.storage.hadoop_crc import agrees_with_companion, companion_of
from lakewarden.catalog.storage.troubles import trouble_at

__all__ = ["DeltaLog"]

_CHUNK_BYTES: Final = 8 * 1024 * 1024
_IN_MEMORY_BYTES: Final = 64 * 1024 * 1024


class DeltaLog:
    """Reads one table's log through a `FileStore`. Storage trouble is `UnavailableError`,
    odd content `BrokenLogError`."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._is_local = local_path(store.root) is not None

    @property
    def location(self) -> str:
        """The table's canonical location."""
        return self._store.root

    def listing(self) -> LogListing:
        """Everything in the log folder, by what it is."""
        with self._answering():
            return listing_of(self._store.list(FOLDER))

    def listing_after(self, version: int) -> LogListing:
        """What is in the log folder of later versions: all that reading their commits takes."""
        with self._answering():
            return listing_of(self._store.named(FOLDER, lambda name: is_after(name, version)))

    def exists(self, path: str) -> bool:
        """Whether there is a file at `path`, relative to the table."""
        with self._answering():
            return self._store.exists(path)

    def stat(self, path: str) -> FileEntry | None:
        """Size and time of a file, None where there is none."""
        try:
            with self._answering():
                return self._store.stat(path)
        except VanishedError:
            return None

    def text(self, entry: FileEntry, listing: LogListing) -> bytes:
        """A whole small file, compared with the checksum file that Hadoop may have left beside it.

        Raises `BrokenLogError` if they disagree: Spark refuses such a file on a local disk.
        """
        with self._answering():
            data = self._store.read(entry.path)
        companion = companion_of(entry.path)
        if companion in listing.companions:
            with self._answering():
                checksums = self._store.read(companion)
            if not agrees_with_companion(data, checksums):
                raise BrokenLogError(
                    LOG_READABLE,
                    f"{entry.path} is not what was written: it disagrees with its checksum file {companion}.",
                )
        return data

    def lines(self, entry: FileEntry, listing: LogListing) -> Iterator[bytes]:
        """The lines of a JSON file; a large one is streamed. Raises `BrokenLogError` for an empty file."""
        if entry.size_bytes <= _IN_MEMORY_BYTES:
            data = self.text(entry, listing)
            if not data.strip():
                raise BrokenLogError(LOG_READABLE, f"{entry.path} is empty.")
            yield from data.split(b"\n")
            return
        rest = b""
        with self._answering(), self._store.open(entry.path) as stream:
            while chunk := cast(bytes, stream.read(_CHUNK_BYTES)):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from whole
        yield rest

    @contextmanager
    def parquet(self, entry: FileEntry, listing: LogListing) -> Iterator[pq.ParquetFile]:
        """A checkpoint file, open for reading. Raises `BrokenLogError` as soon as something in it makes no sense."""
        with self._source(entry, listing) as source, _understood(entry):
            yield pq.ParquetFile(source, page_checksum_verification=True)

    @contextmanager
    def _source(self, entry: FileEntry, listing: LogListing) -> Iterator[pa.NativeFile]:
        """Bytes that no longer depend on the storage answering, so that an error in them means the file is broken."""
        if entry.size_bytes <= _IN_MEMORY_BYTES:
            yield pa.BufferReader(self.text(entry, listing))
            return
        with self._answering():
            stream = self._store.open(entry.path)
        if self._is_local:
            with stream:
                yield stream
            return
        with tempfile.NamedTemporaryFile(prefix="lakewarden-checkpoint-") as copy:
            with self._answering(), stream:
                while chunk := cast(bytes, stream.read(_CHUNK_BYTES)):
                    copy.write(chunk)
                copy.flush()
            with pa.OSFile(copy.name, "rb") as local:
                yield local

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except BrokenLogError:
            raise
        except UnreadableError as error:  # what stands there is no file
            raise BrokenLogError(LOG_READABLE, str(error)) from error
        except FileNotFoundError as error:
            raise VanishedError(
                f"A file of the log of {self.location} vanished while it was read."
            ) from error
        except OSError as error:
            raise trouble_at(self.location, error) from error


@contextmanager
def _understood(entry: FileEntry) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise BrokenLogError(LOG_READABLE, f"{entry.path} cannot be read as a checkpoint.") from error
