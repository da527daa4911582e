"""The files of a snapshot, and the files that it added and removed. Manifests never change: what was read of them is
kept, as long as there is room."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Generic, TypeVar

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.iceberg.errors import UNREADABLE, BrokenMetadataError, missing
from lakewarden.catalog.formats.iceberg.file_paths import FilePaths
from lakewarden.catalog.formats.iceberg.manifests import (
    DELETED,
    ManifestEntry,
    ManifestFile,
    read_manifest,
    read_manifest_list,
)
from lakewarden.catalog.formats.iceberg.metadata import TableMetadata, TableSnapshot
from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.file_store import FileStore, open_store, root_and_path
from lakewarden.catalog.storage.troubles import trouble_at

__all__ = ["KnownManifests", "TableContents", "read_named"]

_Read = TypeVar("_Read")
_MOST: Final = 100_000
"""So many entries are kept of manifests, and of lists of them: some 40 MB each."""


class ManifestCache(Generic[_Read]):
    """A cache of immutable files: the least recently used entry goes first. Thread-safe."""

    def __init__(self, most: int = _MOST) -> None:
        self._most, self._held = most, 0
        self._known: OrderedDict[tuple[str, str], Sequence[_Read]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str]) -> Sequence[_Read] | None:
        """What was read of a table's (UUID) file, if that is still there."""
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
            return known

    def put(self, key: tuple[str, str], entries: Sequence[_Read]) -> None:
        """Keep what was read, if there is room for it."""
        with self._lock:
            if key in self._known or len(entries) > self._most:
                return
            self._known[key] = entries
            self._held += len(entries)
            while self._held > self._most:
                self._held -= len(self._known.popitem(last=False)[1])


@dataclass(frozen=True, slots=True)
class KnownManifests:
    """What is kept of manifests, and of lists of them."""

    lists: ManifestCache[ManifestFile] = field(default_factory=ManifestCache)
    entries: ManifestCache[ManifestEntry] = field(default_factory=ManifestCache)


def read_named(store: FileStore, options: StorageOptions, path: str, *, by: str) -> bytes:
    """A file of a table, as `DataFile.path` has it. Raises `BrokenMetadataError` where it is missing,
    `UnavailableError`."""
    root, inner = root_and_path(store.root, path)
    place = store if root == store.root else open_store(root, options)
    try:
        return place.read(inner)
    except (FileNotFoundError, NotADirectoryError):
        raise missing(path, named_by=by) from None
    except OSError as error:
        raise trouble_at(store.root, error) from error


class TableContents:
    """The files of a table as its metadata has them. Raises `BrokenMetadataError` for manifests that are missing or
    damaged, `UnavailableError`."""

    def __init__(
        self, store: FileStore, options: StorageOptions, metadata: TableMetadata, known: KnownManifests
    ) -> None:
        self._store, self._options, self._known = store, options, known
        self._metadata = metadata
        self.paths = FilePaths(store.root, metadata.location)

    def live(self, snapshot: TableSnapshot) -> Iterator[ManifestEntry]:
        """The files that a snapshot consists of, delete files among them."""
        for manifest in self.manifests(snapshot):
            yield from self.held_by(manifest)

    def changes(self, snapshot: TableSnapshot) -> Iterator[ManifestEntry]:
        """The files that came or went by a snapshot."""
        for manifest in self.manifests(snapshot):
            if manifest.added_by == snapshot.id:
                yield from (
                    one for one in self._entries(manifest) if one.status and one.snapshot_id == snapshot.id
                )

    def held_by(self, manifest: ManifestFile) -> Iterator[ManifestEntry]:
        """The files that are live wherever a manifest is."""
        return (one for one in self._entries(manifest) if one.status != DELETED)

    def read(self, named: str, *, by: str) -> bytes:
        """A file that another one names."""
        return self.read_own(self.paths.path(named), by=by)

    def read_own(self, path: str, *, by: str) -> bytes:
        """A file, as `DataFile.path` has it."""
        return read_named(self._store, self._options, path, by=by)

    def of(self, metadata: TableMetadata) -> "TableContents":
        """Those that other metadata in the table's folder tells of, as they are now."""
        return TableContents(self._store, self._options, metadata, KnownManifests())

    def written_at(self, snapshot: TableSnapshot) -> datetime | None:
        """When the list of a snapshot's manifests was written, by the storage's clock; None where it is not there."""
        path = None if snapshot.manifest_list is None else self.paths.path(snapshot.manifest_list)
        if path is None:
            return None
        root, inner = root_and_path(self._store.root, path)
        place = self._store if root == self._store.root else open_store(root, self._options)
        try:
            return place.stat(inner).modified_at
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise trouble_at(self._store.root, error) from error

    def manifests(self, snapshot: TableSnapshot) -> Sequence[ManifestFile]:
        """What lists the files of a snapshot."""
        if self._metadata.encrypted:
            raise UnreadableError("The table is encrypted: nobody here can read which files it has.", hint="")
        if snapshot.manifest_list is None:
            return [
                ManifestFile(path=path, sequence=0, added_by=snapshot.id, spec_id=0, entries=None)
                for path in snapshot.manifests
            ]
        key = (self._metadata.uuid, snapshot.manifest_list)
        found = self._known.lists.get(key)
        if found is None:
            found = self._listed(snapshot, snapshot.manifest_list)
            self._known.lists.put(key, found)
        return found

    def _listed(self, snapshot: TableSnapshot, named: str) -> Sequence[ManifestFile]:
        path = self.paths.path(named)
        found = read_manifest_list(self.read(named, by=f"snapshot {snapshot.id}"), path)
        if not found and snapshot.summary.get("total-data-files", "0") != "0":
            raise BrokenMetadataError(UNREADABLE, f"{path} is empty, and snapshot {snapshot.id} has files.")
        return found

    def _entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        key = (self._metadata.uuid, manifest.path)
        entries = self._known.entries.get(key)
        if entries is None:
            data = self.read(manifest.path, by="a list of manifests")
            entries = read_manifest(data, self.paths.path(manifest.path), manifest)
            self._known.entries.put(key, entries)
        return entries
