"""The TableReader of Iceberg tables, to whose heads their folders point, or a catalog."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lakewarden.catalog.clock import Clock, SystemClock
from lakewarden.catalog.errors import ConflictError, UnreadableError
from lakewarden.catalog.formats.iceberg.commits import commit_of
from lakewarden.catalog.formats.iceberg.contents import KnownManifests, TableContents, read_named
from lakewarden.catalog.formats.iceberg.errors import (
    EXISTS,
    HISTORY,
    MISSING,
    UNREADABLE,
    BrokenMetadataError,
    not_understood,
)
from lakewarden.catalog.formats.iceberg.files import added_files, deletes_of, live_files
from lakewarden.catalog.formats.iceberg.manifests import ManifestEntry
from lakewarden.catalog.formats.iceberg.metadata import TableMetadata, TableSnapshot, parse_metadata
from lakewarden.catalog.formats.iceberg.observation import (
    ICEBERG,
    HeadFiles,
    head_token,
    is_version_of,
    observation_of,
)
from lakewarden.catalog.formats.iceberg.old_metadata import (
    Shown,
    first_shown,
    forgotten,
    interrupted,
    last_shown,
    own_files,
    why_forgotten,
)
from lakewarden.catalog.formats.iceberg.pointer import (
    HeadFile,
    catalogued_file,
    has_metadata,
    head_file,
    hinted_number,
    metadata_files,
)
from lakewarden.catalog.formats.iceberg.references import references_of, snapshot_names
from lakewarden.catalog.formats.iceberg.released import (
    WrittenAt,
    expiring,
    named_by_all,
    side_files,
    tombstones_of,
)
from lakewarden.catalog.formats.port import (
    Commit,
    DataFile,
    LogProblem,
    Observation,
    OwnFiles,
    ProbeResult,
    Reference,
    Tombstone,
)
from lakewarden.catalog.formats.spec import HeadOf
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.storage.file_store import FileEntry, FileStore, StorageOptions, open_store
from lakewarden.catalog.storage.troubles import answering

__all__ = ["IcebergReader"]

_ATTEMPTS: Final = 3
_HINT: Final = "Ask for a version that `lakewarden tables history` shows."
_CLOCK: Final = SystemClock()
_REMEMBERED: Final = 131_072
"""Heads that are kept, by their files: a name and a few numbers each."""


def _no_options(location: str) -> StorageOptions:
    return StorageOptions()


def _no_catalog(location: str) -> None:
    """Every table's folder tells its head."""


class IcebergReader:
    """Reads Iceberg tables from their metadata; `storage` gives the options for a location, `heads` asks catalogs.

    A version is the sequence number of a snapshot: it tells which of two was made first, on whichever branch. Head is
    main's snapshot. A table without snapshots, or of format version 1, is at version 0 and has no commits.
    """

    def __init__(
        self,
        storage: Callable[[str], StorageOptions] = _no_options,
        heads: HeadOf = _no_catalog,
        clock: Clock = _CLOCK,
    ) -> None:
        self._storage, self._catalog, self._manifests = storage, heads, KnownManifests()
        self._clock = clock
        self._heads: OrderedDict[str, tuple[HeadFile, tuple[int, str, int]]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def format(self) -> TableFormat:
        return ICEBERG

    def is_table(self, location: str) -> bool:
        """Whether there is Iceberg metadata, or a pointer to some."""
        with answering(location):
            return has_metadata(self._store(location))

    def probe(self, location: str, *, seen: int | None, head: str | None = None) -> ProbeResult:
        """One small read and one listing, or what a catalog says, unless the metadata file is another one than last
        time."""
        try:
            file = self._file(location, self._store(location))
            if file is None:
                return ProbeResult(exists=False, moved=False)
            found = self._head(location, file) or self._remembered(location, self._load(location))
        except UnreadableError as error:
            is_gone = isinstance(error, BrokenMetadataError) and error.check == EXISTS
            there = not is_gone or self.is_table(location)
            return ProbeResult(exists=there, moved=there)
        version, now, newest = found
        return ProbeResult(exists=True, moved=version != seen, latest=version, head=now, newest=newest)

    def has_head(self, location: str, *, version: int, head: str) -> bool | None:
        return is_version_of(self._load(location).metadata, version, head)

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        try:
            loaded = self._load(location)
            held = None if loaded.metadata.encrypted else self._held(loaded)
            seen = _observed(location, loaded, held)
        except BrokenMetadataError as broken:
            return broken.problem
        except UnreadableError as error:
            return LogProblem(check=UNREADABLE, message=str(error))
        self._remembered(location, loaded)
        return seen

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        metadata = self._load(location).metadata
        names = snapshot_names(metadata)
        for snapshot in metadata.in_order():
            if snapshot.sequence > after and (upto is None or snapshot.sequence <= upto):
                yield commit_of(metadata, snapshot, names[snapshot.id])

    def newest(self, location: str, *, count: int, after: int = -1) -> tuple[Commit, ...]:
        return tuple(self.commits(location, after=after))[-count:]

    def additions(self, location: str, *, since: int) -> Iterator[tuple[Commit, tuple[DataFile, ...]]]:
        loaded = self._load(location)
        metadata, contents = loaded.metadata, loaded.contents
        names = snapshot_names(metadata)
        for snapshot in metadata.in_order():
            if snapshot.sequence >= since:
                came = () if snapshot.sequence == since else contents.changes(snapshot)
                commit = commit_of(metadata, snapshot, names[snapshot.id])
                yield commit, added_files(came, metadata, contents.paths)

    def files(self, location: str, *, version: int | None = None) -> Iterator[DataFile]:
        loaded = self._load(location, KnownManifests())  # what was read once may be missing by now
        snapshot = loaded.metadata.current if version is None else _snapshot(loaded.metadata, version)
        return iter(()) if snapshot is None else _files(loaded, snapshot)

    def properties(self, location: str, *, version: int) -> Mapping[str, str]:
        """The properties in the last metadata in which the version was head: they are kept with the metadata, not with
        a snapshot."""
        return self._told(location, version, last_shown).properties

    def first_properties(self, location: str, *, version: int) -> Mapping[str, str]:
        """The properties in the first metadata in which the version was head."""
        return self._told(location, version, first_shown).properties

    def restored(self, location: str, *, version: int) -> int | None:
        loaded = self._load(location)
        metadata = loaded.metadata
        wanted = _snapshot(metadata, version)
        if wanted is None:
            return None
        same = _entries(loaded.contents, wanted)
        older = (one for one in reversed(metadata.in_order()) if one.sequence < version)
        return next((one.sequence for one in older if _entries(loaded.contents, one) == same), None)

    def tombstones(self, location: str) -> Iterator[Tombstone]:
        loaded = self._load(location)
        beside = frozenset(side_files(loaded.metadata, loaded.contents, self._clock.now()))
        return iter(self._stones(loaded, beside, loaded.contents.written_at))

    def references(self, location: str) -> tuple[Reference, ...]:
        return references_of(self._load(location).metadata)

    def side_files(self, location: str) -> Iterator[str]:
        loaded = self._load(location, KnownManifests())  # what was read once may be missing by now
        return side_files(loaded.metadata, loaded.contents, self._clock.now())

    def own_files(self, location: str) -> OwnFiles:
        loaded, store = self._load(location, KnownManifests()), self._store(location)
        listed = [one.path for one in metadata_files(store)]
        return own_files(loaded.metadata, loaded.file.path, loaded.contents, listed)

    def expiring(self, location: str, *, head: str, before: int, left_before: datetime) -> tuple[int, ...]:
        """The ids of the snapshots before a version that nothing needs and nobody was at after a moment. Raises
        `ConflictError` unless head is in that state."""
        loaded = self._at(location, head)
        written = loaded.contents.written_at
        found = expiring(loaded.metadata, before, left_before, written, self._clock.now())
        return tuple(one.id for one in found)

    def named_files(self, location: str) -> frozenset[str]:
        """Every file that any metadata file in the table's folder names, as `DataFile.path` has it: older ones, those
        of commits that failed, and those of another table that lies there as well. Raises `BrokenMetadataError` for one
        that cannot be read: nobody knows what it names."""
        loaded = self._load(location, KnownManifests())
        others = (one.path for one in metadata_files(self._store(location)) if one.path != loaded.file.path)
        read = loaded.contents.read_own
        told = (parse_metadata(read(path, by="the folder"), path) for path in others)
        return frozenset(named_by_all(loaded.metadata, loaded.contents, told))

    def forgotten(self, location: str, *, before: datetime) -> tuple[FileEntry, ...]:
        """The metadata files that head does not remember, and that were no head any more at a moment, oldest first."""
        loaded, store = self._load(location), self._store(location)
        with answering(location):
            first = hinted_number(store)
        return forgotten(
            loaded.metadata, loaded.file.path, loaded.contents, metadata_files(store), before, first=first
        )

    def _told(self, location: str, version: int, shown: Shown) -> TableMetadata:
        """Metadata in which a version was head. Raises `UnreadableError` where it is not there any more."""
        loaded, because = self._load(location), ""
        try:
            told = shown(loaded.metadata, loaded.contents, _snapshot(loaded.metadata, version))
        except BrokenMetadataError as broken:
            told, because = None, f" {broken}"
        if told is not None:
            return told
        raise UnreadableError(
            f"No metadata of {location} tells the properties of version {version} any more.{because}",
            hint=f"{why_forgotten(loaded.metadata)}{_HINT}",
        )

    def _at(self, location: str, head: str) -> "_Loaded":
        loaded = self._load(location)
        if head_token(loaded.metadata, loaded.name) != head:
            raise ConflictError(f"The table at {location} moved past the head on which this was decided.")
        return loaded

    def _stones(
        self, loaded: "_Loaded", beside: frozenset[str], written: WrittenAt = lambda _: None
    ) -> tuple[Tombstone, ...]:
        now, unfinished = self._clock.now(), interrupted(loaded.metadata, loaded.contents)
        return tombstones_of(loaded.metadata, loaded.contents, beside, now, unfinished, written)

    def _load(self, location: str, known: KnownManifests | None = None) -> "_Loaded":
        """Head's metadata, with what is `known` of its manifests (None: what this reader knows). Raises
        `BrokenMetadataError` (`LeftByEntryError` too), `UnavailableError`."""
        store = self._store(location)
        for attempt in range(_ATTEMPTS):
            try:
                file = self._file(location, store)
                if file is None:
                    raise BrokenMetadataError(EXISTS, f"There is no Iceberg table at {location}.")
                data = read_named(store, self._storage(location), file.path, by=file.named_by)
            except BrokenMetadataError as broken:  # somebody may have committed, and removed the older one
                if broken.check != MISSING or attempt + 1 == _ATTEMPTS:
                    raise
                continue
            metadata = parse_metadata(data, file.path)
            file.require_own(location, said=metadata.location, format_id=metadata.uuid)
            contents = TableContents(store, self._storage(location), metadata, known or self._manifests)
            return _Loaded(file=file, metadata=metadata, contents=contents)
        raise AssertionError("the last attempt returned or raised")

    def _file(self, location: str, store: FileStore) -> HeadFile | None:
        told = self._catalog(location)
        if told is not None:
            return catalogued_file(location, told)
        with answering(location):
            return head_file(store)

    def _head(self, location: str, file: HeadFile) -> tuple[int, str, int] | None:
        """Version, head and the log's newest version by a metadata file that was read before and is the same still."""
        with self._lock:
            known = self._heads.get(location)
        return None if known is None or known[0] != file else known[1]

    def _remembered(self, location: str, loaded: "_Loaded") -> tuple[int, str, int]:
        metadata, current = loaded.metadata, loaded.metadata.current
        version = 0 if current is None else current.sequence
        head = (version, head_token(metadata, loaded.name), metadata.newest)
        with self._lock:
            self._heads[location] = (loaded.file, head)
            self._heads.move_to_end(location)
            if len(self._heads) > _REMEMBERED:
                self._heads.popitem(last=False)
        return head

    def _held(self, loaded: "_Loaded") -> HeadFiles:
        """What head holds; where older snapshots cannot be read any more, what went by them is not known."""
        entries, stones, problems = _live(loaded), tuple[Tombstone, ...](), tuple[LogProblem, ...]()
        beside = frozenset[str]()
        try:
            beside = frozenset(side_files(loaded.metadata, loaded.contents, self._clock.now()))
            stones = self._stones(loaded, beside)
        except BrokenMetadataError as broken:
            problems = (LogProblem(check=HISTORY, message=f"Older versions are not whole: {broken}"),)
        return HeadFiles(
            files=tuple(live_files(entries, loaded.metadata, loaded.contents.paths)),
            deletes=deletes_of(entries),
            stones=stones,
            manifests=()
            if loaded.metadata.current is None
            else loaded.contents.manifests(loaded.metadata.current),
            beside=beside,
            formats=frozenset(one.format for one in entries),
            problems=problems,
        )

    def _store(self, location: str) -> FileStore:
        return open_store(location, self._storage(location))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Loaded:
    """Head's metadata, the file that it was read from, and the way to the files that it names."""

    file: HeadFile
    metadata: TableMetadata
    contents: TableContents

    @property
    def name(self) -> str:
        """The name of the metadata file."""
        return self.file.path.rpartition("/")[2]


def _observed(location: str, loaded: _Loaded, held: HeadFiles | None) -> Observation:
    try:
        by_folder = loaded.file.entry is not None
        return observation_of(
            location,
            loaded.metadata,
            loaded.name,
            held,
            told_by_folder=by_folder,
            other_names=loaded.file.other_names(),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise not_understood(loaded.file.path) from error


def _live(loaded: _Loaded) -> Sequence[ManifestEntry]:
    current = loaded.metadata.current
    return () if current is None else tuple(loaded.contents.live(current))


def _files(loaded: _Loaded, snapshot: TableSnapshot) -> Iterator[DataFile]:
    entries = tuple(loaded.contents.live(snapshot))
    return live_files(entries, loaded.metadata, loaded.contents.paths)


def _entries(contents: TableContents, snapshot: TableSnapshot) -> frozenset[tuple[str, str | None]]:
    return frozenset((one.path, one.referenced) for one in contents.live(snapshot))


def _snapshot(metadata: TableMetadata, version: int) -> TableSnapshot | None:
    """The snapshot of a version, None for version 0 of a table that has none yet. Raises `UnreadableError`."""
    current = metadata.current
    if version == (0 if current is None else current.sequence):
        return current
    found = next((one for one in metadata.in_order() if one.sequence == version), None)
    if found is None:
        raise UnreadableError(f"There is no version {version}.", hint=_HINT)
    return found
