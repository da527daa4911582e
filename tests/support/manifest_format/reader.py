"""The TableReader of manifest tables."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.port import (
    Capabilities,
    Commit,
    CommitKind,
    DataFile,
    LogProblem,
    Observation,
    ProbeResult,
    Reference,
    SizeHistogram,
    Tombstone,
)
from lakewarden.catalog.model.lineage_record import read_record
from lakewarden.catalog.model.rows import Column, TableFormat
from lakewarden.catalog.storage.file_store import FileStore, StorageOptions, open_store
from support.manifest_format.manifest import FOLDER, Entry, File, Manifest, parse

__all__ = ["NAME", "ManifestReader"]

NAME: Final[TableFormat] = "manifest"
_KINDS: Final = {
    "create": CommitKind.CREATE,
    "append": CommitKind.APPEND,
    "overwrite": CommitKind.OVERWRITE,
    "delete": CommitKind.DELETE,
    "remove": CommitKind.DELETE,
    "compact": CommitKind.MAINTENANCE,
    "expire": CommitKind.MAINTENANCE,
    "restore": CommitKind.RESTORE,
    "fence": CommitKind.METADATA,
    "properties": CommitKind.PROPERTIES,
}
_CAN: Final = Capabilities(restore=True, vacuum=True, compact=True, file_statistics=False)


def _no_options(location: str) -> StorageOptions:
    return StorageOptions()


class ManifestReader:
    """Reads the newest generation, each time anew."""

    def __init__(self, storage: Callable[[str], StorageOptions] = _no_options) -> None:
        self._storage = storage

    @property
    def format(self) -> TableFormat:
        return NAME

    def is_table(self, location: str) -> bool:
        return _newest(self._store(location)) is not None

    def probe(self, location: str, *, seen: int | None, head: str | None = None) -> ProbeResult:
        if not self.is_table(location):
            return ProbeResult(exists=False, moved=False)
        try:
            manifest = self._manifest(location)
        except UnreadableError:
            return ProbeResult(exists=True, moved=True)
        main = manifest.main
        return ProbeResult(exists=True, moved=main != seen, latest=main, head=manifest.head)

    def has_head(self, location: str, *, version: int, head: str) -> bool | None:
        manifest = self._manifest(location)
        if version not in manifest.versions:
            return None
        return head.startswith(f"{manifest.table_id}@{version}@")

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        if not self.is_table(location):
            return LogProblem(check="exists", message=f"There is no manifest at {location}.")
        try:
            return _observed(location, self._manifest(location))
        except UnreadableError as error:
            return LogProblem(check="log_readable", message=str(error))

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        manifest = self._manifest(location)
        for number in sorted(manifest.versions):
            if after < number and (upto is None or number <= upto):
                yield _commit(manifest, manifest.versions[number])

    def newest(self, location: str, *, count: int, after: int = -1) -> tuple[Commit, ...]:
        return tuple(self.commits(location, after=after))[-count:]

    def additions(self, location: str, *, since: int) -> Iterator[tuple[Commit, tuple[DataFile, ...]]]:
        manifest = self._manifest(location)
        for number in sorted(one for one in manifest.versions if one >= since):
            entry = manifest.versions[number]
            new = () if number == since else _added(manifest, entry)
            yield _commit(manifest, entry), tuple(_data_file(file) for file in new)

    def files(self, location: str, *, version: int | None = None) -> Iterator[DataFile]:
        manifest = self._manifest(location)
        return (_data_file(file) for file in _version(manifest, version).files)

    def properties(self, location: str, *, version: int) -> Mapping[str, str]:
        manifest = self._manifest(location)
        _version(manifest, version)
        return manifest.properties

    def restored(self, location: str, *, version: int) -> int | None:
        manifest = self._manifest(location)
        entry = _version(manifest, version)
        if entry.back_to is not None:
            return entry.back_to
        older = sorted(number for number in manifest.versions if number < version)
        same = [number for number in older if _paths(manifest.versions[number]) == _paths(entry)]
        return same[-1] if same else None

    def tombstones(self, location: str) -> Iterator[Tombstone]:
        return iter(_tombstones(self._manifest(location)))

    def references(self, location: str) -> tuple[Reference, ...]:
        return ()

    def side_files(self, location: str) -> Iterator[str]:
        return iter(())

    def own_files(self, location: str) -> None:
        return None

    def _manifest(self, location: str) -> Manifest:
        store = self._store(location)
        path = _newest(store)
        if path is None:
            raise UnreadableError(f"There is no manifest at {location}.")
        try:
            return parse(store.read(path))
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableError(f"{path} of {location} cannot be understood.") from error

    def _store(self, location: str) -> FileStore:
        return open_store(location, self._storage(location))


def _newest(store: FileStore) -> str | None:
    if not store.exists(FOLDER):
        return None
    return max((one.path for one in store.list(FOLDER) if one.path.endswith(".json")), default=None)


def _version(manifest: Manifest, number: int | None) -> Entry:
    entry = manifest.versions.get(manifest.main if number is None else number)
    if entry is None:
        raise UnreadableError(f"There is no version {number}.", hint="Ask for one that the history shows.")
    return entry


def _observed(location: str, manifest: Manifest) -> Observation:
    head, stones = _version(manifest, None), _tombstones(manifest)
    line = list(manifest.line(head.number))
    return Observation(
        format=NAME,
        location=location,
        version=head.number,
        head=manifest.head,
        committed_at=head.committed_at,
        format_id=manifest.table_id,
        schema=tuple(
            Column(id=place, path=name, type=kind)
            for place, (name, kind) in enumerate(manifest.columns_of(head.number), 1)
        ),
        properties=manifest.properties,
        capabilities=_CAN,
        files=len(head.files),
        bytes=sum(file.size_bytes for file in head.files),
        sizes=_histogram([file.size_bytes for file in head.files]),
        rows=sum(file.rows for file in head.files),
        partitions=min(len(head.files), 1),
        tombstones=len(stones),
        tombstone_bytes=sum(one.size_bytes or 0 for one in stones),
        oldest_tombstone_at=min((one.removed_at for one in stones), default=None),
        commits_since_checkpoint=len(
            manifest.versions
        ),  # each manifest carries them all: log care shortens it
        first_version=line[-1].number,
        last_compaction_at=_last(line, "compact"),
        last_write_at=max((one.committed_at for one in line if one.operation != "compact"), default=None),
    )


def _last(line: list[Entry], operation: str) -> datetime | None:
    return max((one.committed_at for one in line if one.operation == operation), default=None)


def _commit(manifest: Manifest, entry: Entry) -> Commit:
    added, removed = _added(manifest, entry), _removed(manifest, entry)
    record = read_record(entry.lineage, None)
    return Commit(
        version=entry.number,
        parent=entry.parent,
        committed_at=entry.committed_at,
        stamped_at=entry.committed_at,
        kind=_KINDS.get(entry.operation, CommitKind.UNKNOWN),
        operation=entry.operation,
        data_change=bool(added or removed) and entry.operation != "compact",
        added_files=len(added),
        removed_files=len(removed),
        user=entry.user,
        run_id=entry.run_id,
        lineage=record.record,
        lineage_verdict=record.verdict,
        format_id=manifest.table_id if entry.parent is None or entry.columns is not None else None,
        restored=entry.back_to,
    )


def _paths(entry: Entry) -> frozenset[str]:
    return frozenset(file.path for file in entry.files)


def _before(manifest: Manifest, entry: Entry) -> tuple[File, ...]:
    parent = None if entry.parent is None else manifest.versions.get(entry.parent)
    return () if parent is None else parent.files


def _added(manifest: Manifest, entry: Entry) -> tuple[File, ...]:
    before = {file.path for file in _before(manifest, entry)}
    return tuple(file for file in entry.files if file.path not in before)


def _removed(manifest: Manifest, entry: Entry) -> tuple[File, ...]:
    after = {file.path for file in entry.files}
    return tuple(file for file in _before(manifest, entry) if file.path not in after)


def _tombstones(manifest: Manifest) -> tuple[Tombstone, ...]:
    """Files of versions that are still there, and that no ref names."""
    kept, found = manifest.files_of_refs(), dict[str, Tombstone]()
    for number in sorted(manifest.versions):
        entry = manifest.versions[number]
        for file in _removed(manifest, entry):
            found[file.path] = _stone(file, entry)
    for number in sorted(manifest.versions):  # what no commit removed: `main` went back, away from it
        entry = manifest.versions[number]
        for file in entry.files:
            found.setdefault(file.path, _stone(file, entry))
    return tuple(stone for path, stone in found.items() if path not in kept)


def _stone(file: File, entry: Entry) -> Tombstone:
    return Tombstone(
        path=file.path,
        removed_at=entry.committed_at,
        removed_in=entry.number,
        size_bytes=file.size_bytes,
    )


def _data_file(file: File) -> DataFile:
    return DataFile(
        path=file.path,
        size_bytes=file.size_bytes,
        modified_at=file.added_at,
        rows=file.rows,
        has_statistics=True,
    )


def _histogram(sizes: list[int]) -> SizeHistogram:
    bins = [max(size, 1).bit_length() - 1 for size in sizes]
    length = max(bins, default=-1) + 1
    return SizeHistogram(
        counts=tuple(bins.count(place) for place in range(length)),
        bytes=tuple(
            sum(size for size, at in zip(sizes, bins, strict=True) if at == place) for place in range(length)
        ),
    )
