"""The TableReader of Delta tables."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from lakewarden.catalog.clock import to_millis
from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.delta.actions import AddFile
from lakewarden.catalog.formats.delta.cache import VersionCache, remember
from lakewarden.catalog.formats.delta.commit_info import read_commit
from lakewarden.catalog.formats.delta.errors import CHECKSUM, BrokenLogError, VanishedError
from lakewarden.catalog.formats.delta.hint import lost_checkpoint
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.log_names import FOLDER, HINT, commit_path
from lakewarden.catalog.formats.delta.observation import bucketed, observation_of
from lakewarden.catalog.formats.delta.proof.files import data_file, live_files, tombstones
from lakewarden.catalog.formats.delta.proof.version_checksum import parse_version_checksum
from lakewarden.catalog.formats.delta.replay import Replayed, metadata_of, replay, replay_on, version_actions
from lakewarden.catalog.formats.delta.restore_target import restored_version
from lakewarden.catalog.formats.delta.retention import DELTA_RETENTION
from lakewarden.catalog.formats.delta.segment import LogListing, Segment, segment_of
from lakewarden.catalog.formats.delta.streams.delta_source import DeltaSource
from lakewarden.catalog.formats.delta.streams.delta_ways import DeltaWays
from lakewarden.catalog.formats.heads import has_commit, time_of_head
from lakewarden.catalog.formats.port import (
    Commit,
    DataFile,
    LogProblem,
    Observation,
    ProbeResult,
    Reference,
    Tombstone,
)
from lakewarden.catalog.formats.spec import FormatSpec, Sign, StorageOf
from lakewarden.catalog.model.bucket_layout import BucketedFiles
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.storage.file_store import FileEntry, StorageOptions, open_store

__all__ = ["DELTA_FORMAT", "DeltaReader"]

_OPEN_LOGS: Final = 2_048
_OPEN_LOCAL_LOGS: Final = 131_072
"""Local ones are little more than a path; others hold a client of their storage."""
_ATTEMPTS: Final = 3
_MEMORY_BYTES: Final = 8 * 1024 * 1024
"""What the reader may keep of tables it has read. Enough for the few that move between two sweeps."""


def _no_options(location: str) -> StorageOptions:
    return StorageOptions()


class DeltaReader:
    """Reads Delta tables from their logs; `storage` gives the options for a location.

    It caches the tables seen last (`VersionCache`): `observe(since=...)` reads only later commits. Whatever it
    remembers or forgets, the answers are the same.
    """

    def __init__(
        self, storage: Callable[[str], StorageOptions] = _no_options, *, memory: VersionCache | None = None
    ) -> None:
        self._storage, self._memory = storage, memory or VersionCache()
        self._logs: OrderedDict[str, DeltaLog] = OrderedDict()
        self._local_logs: OrderedDict[str, DeltaLog] = OrderedDict()
        self._compared: OrderedDict[str, tuple[str, FileEntry, bool]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def format(self) -> TableFormat:
        return DELTA

    def is_table(self, location: str) -> bool:
        """Whether the log folder holds anything that a Delta writer puts there. An empty folder is no table."""
        log = self._log(location)
        if log.exists(HINT):
            return True
        if not log.exists(FOLDER):
            return False
        listing = log.listing()
        return not listing.is_empty or bool(listing.checksums)

    def probe(self, location: str, *, seen: int | None, head: str | None = None) -> ProbeResult:
        """Two looks at names at most, unless the version seen last is no longer in the log, or may be another's."""
        log = self._log(location)
        if seen is not None:
            if log.exists(commit_path(seen + 1)):
                return ProbeResult(exists=True, moved=True, latest=seen + 1)
            now = log.stat(commit_path(seen))
            same = None if now is None else self._is_same(location, seen, now, head)
            if same is not None:
                return ProbeResult(exists=True, moved=not same, latest=seen)
        listing = log.listing()
        if listing.is_empty:
            return ProbeResult(exists=False, moved=False)
        return ProbeResult(exists=True, moved=listing.latest != seen, latest=listing.latest)

    def _is_same(self, location: str, version: int, now: FileEntry, head: str | None) -> bool | None:
        """Whether a commit's file as it is `now` is the one that was seen, and not the same version of another log.
        None if it vanished just now."""
        kept = self._memory.get(location, version)
        if kept is not None and kept.last is not None and now != kept.last:
            return False  # not the one that was read here, whatever somebody else has put on record since
        if head is None:
            return True
        if time_of_head(head) == to_millis(now.modified_at):
            return True  # a commit's file is no older than its other clocks
        with self._lock:
            known = self._compared.get(location)
        if known is None or known[:2] != (head, now):
            try:
                told = self.has_head(location, version=version, head=head)
            except UnreadableError:
                return False  # it is not as it was: who reads the table says what is wrong
            if told is None:
                return None
            known = (head, now, told)
            with self._lock:
                self._compared[location] = known
                if len(self._compared) > _OPEN_LOCAL_LOGS:
                    self._compared.popitem(last=False)
        return known[2]

    def has_head(self, location: str, *, version: int, head: str) -> bool | None:
        return has_commit(self, location, version=version, head=head)

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        log = self._log(location)
        for attempt in range(_ATTEMPTS):
            try:
                return self._observe(log, since)
            except BrokenLogError as broken:
                self._memory.forget(location)
                return broken.problem
            except VanishedError:
                if attempt + 1 == _ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returned or raised")

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        log = self._log(location)
        listing = log.listing_after(after)
        wanted = (one for one in listing.commits if upto is None or one <= upto)
        yield from _readable(log, listing, sorted(wanted))

    def newest(self, location: str, *, count: int, after: int = -1) -> tuple[Commit, ...]:
        log = self._log(location)
        listing = log.listing_after(after)
        return tuple(_readable(log, listing, sorted(listing.commits)[-count:]))

    def additions(self, location: str, *, since: int) -> Iterator[tuple[Commit, tuple[DataFile, ...]]]:
        log = self._log(location)
        listing = log.listing_after(since - 1)
        for version in sorted(listing.commits):
            entry = listing.commits[version]
            if version == since:
                yield read_commit(version, version_actions(log, listing, entry), entry.modified_at).commit, ()
                continue
            actions = tuple(version_actions(log, listing, entry))
            added = tuple(data_file(one) for one in actions if isinstance(one, AddFile))
            yield read_commit(version, actions, entry.modified_at).commit, added

    def files(self, location: str, *, version: int | None = None) -> Iterator[DataFile]:
        log = self._log(location)
        listing = log.listing()
        for add in live_files(log, listing, segment_of(listing, location=location, upto=version)):
            yield data_file(add)

    def properties(self, location: str, *, version: int) -> Mapping[str, str]:
        log = self._log(location)
        listing = log.listing()
        return metadata_of(log, listing, segment_of(listing, location=location, upto=version)).properties

    def restored(self, location: str, *, version: int) -> int | None:
        log = self._log(location)
        try:
            return restored_version(log, log.listing(), version)
        except BrokenLogError:
            return None

    def tombstones(self, location: str) -> Iterator[Tombstone]:
        log = self._log(location)
        listing = log.listing()
        return tombstones(log, listing, segment_of(listing, location=location))

    def references(self, location: str) -> tuple[Reference, ...]:
        return ()

    def side_files(self, location: str) -> Iterator[str]:
        return iter(())

    def own_files(self, location: str) -> None:
        return None

    def _observe(self, log: DeltaLog, since: Observation | None) -> Observation:
        listing = log.listing()
        segment = segment_of(listing, location=log.location)
        replayed = self._replayed(log, listing, segment, since)
        seen = observation_of(log.location, replayed, segment)
        _check_totals(log, listing, seen)
        if seen.buckets is not None:
            seen = bucketed(seen, BucketedFiles.of(seen.buckets, live_files(log, listing, segment), _path))
        self._memory.put(log.location, remember(replayed, segment))
        lost = lost_checkpoint(log, listing)
        return seen if lost is None else replace(seen, warnings=(*seen.warnings, lost))

    def _replayed(
        self, log: DeltaLog, listing: LogListing, segment: Segment, since: Observation | None
    ) -> Replayed:
        kept = self._memory.get(log.location, since.version) if since is not None else None
        if kept is not None and kept.leads_to(segment):
            later = [
                (version, entry)
                for version, entry in (*segment.older, *segment.commits)
                if version > kept.replayed.version
            ]
            return replay_on(log, listing, kept.replayed, later)
        return replay(log, listing, segment)

    def _log(self, location: str) -> DeltaLog:
        is_local = location.startswith("file://")
        logs, most = (self._local_logs, _OPEN_LOCAL_LOGS) if is_local else (self._logs, _OPEN_LOGS)
        with self._lock:
            log = logs.get(location)
            if log is not None:
                logs.move_to_end(location)
                return log
        log = DeltaLog(open_store(location, self._storage(location)))
        with self._lock:
            logs[location] = log
            if len(logs) > most:
                logs.popitem(last=False)
        return log


def _path(added: AddFile) -> str:
    return added.path


def _check_totals(log: DeltaLog, listing: LogListing, seen: Observation) -> None:
    """Compare with the version's checksum file, where its writer left one. Raises `BrokenLogError`."""
    entry = listing.checksums.get(seen.version)
    checksum = parse_version_checksum(log.text(entry, listing)) if entry is not None else None
    if checksum is not None and (checksum.files, checksum.bytes) != (seen.files, seen.bytes):
        message = (
            f"The log gives version {seen.version} {seen.files} files and {seen.bytes} bytes, "
            f"its checksum file {checksum.files} and {checksum.bytes}: "
            "a commit or checkpoint is not what was written."
        )
        raise BrokenLogError(CHECKSUM, message)


def _reader(storage: StorageOf) -> DeltaReader:
    return DeltaReader(storage, memory=VersionCache(_MEMORY_BYTES))


DELTA_FORMAT: Final = FormatSpec(
    name=DELTA,
    label="Delta",
    reader=_reader,
    sign=Sign(folder=FOLDER),
    retention=DELTA_RETENTION,
    stream_source=DeltaSource(),
    stream_ways=DeltaWays(),
    provider="delta",
    kept=("_change_data/", "_delta_index/", "_symlink_format_manifest/"),
    mirrored_by=("delta.universalFormat.enabledFormats",),
)


def _readable(log: DeltaLog, listing: LogListing, versions: Sequence[int]) -> Iterator[Commit]:
    """The versions whose entries are still there when they are read."""
    for version in versions:
        entry = listing.commits[version]
        try:
            yield read_commit(version, version_actions(log, listing, entry), entry.modified_at).commit
        except VanishedError:
            continue
