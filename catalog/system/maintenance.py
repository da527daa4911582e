"""Care of the system tables themselves, by delta-rs alone: compaction, vacuum and log behind the audit window.

Spark never writes a system table: Spark and delta-rs together can lose commits on a `file://` table. Each function does
nothing, and commits nothing, when there is nothing to gain; a conflict with a writer is a `ConflictError` and the
next cycle tries again. Right before anything is deleted or committed the table is opened anew, so that it is
the same one and its leader still the same, and `proceed` is called, which raises if it may not be any more.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, Final

from deltalake import DeltaTable

from lakewarden.catalog.boot_clock import seconds_since_boot
from lakewarden.catalog.errors import ConflictError, UsageError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.log_names import FOLDER, commit_path
from lakewarden.catalog.formats.delta.segment import LogListing, listing_of
from lakewarden.catalog.storage.file_store import FileEntry, FileStore
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.commits import Note, admit, commit, removal
from lakewarden.catalog.system.data_files import ColumnCache, DataFiles
from lakewarden.catalog.system.handles import answering, files_of, open_at, opened
from lakewarden.catalog.system.port import SystemStore, SystemTable
from lakewarden.catalog.system.schema import statistics_columns
from lakewarden.catalog.system.snapshot import Piece, Snapshot, take_snapshot

__all__ = ["Cared", "compact", "tend_log", "vacuum"]

SHORTEST_RETENTION = timedelta(hours=1)
"""Files younger than this may belong to a commit that is still being made."""

_BATCH = 100
"""Files between two askings."""
_LASTS: Final = 1.0
"""Seconds for which an answer counts: a process that was frozen asks again before the next file."""
_LEFT_OVER = f"{FOLDER}/_commit_*.json.tmp"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cared:
    """What was done: the version committed (None: no commit), files and bytes that went, files that came."""

    version: int | None = None
    files_removed: int = 0
    bytes_removed: int = 0
    files_added: int = 0


def compact(
    store: SystemStore,
    table: SystemTable[Any],
    *,
    target_bytes: int,
    min_small_files: int,
    note: Note,
    proceed: Callable[[], None] = lambda: None,
) -> Cared:
    """Join the small files of every bucket that has at least `min_small_files` of them, in one commit.

    Small is less than half of `target_bytes`. The commit is a compare-and-set like any other: delta-rs' own OPTIMIZE
    would let a frozen leader's commit pass. Raises `FencedError`, `ConflictError` (nothing was changed).
    """
    handle, snapshot = _opened(store, table, note)
    groups = _joinable(snapshot.pieces, target_bytes, min_small_files)
    if not groups:
        return Cared()
    files = files_of(store, table)
    data = DataFiles(files, codec(table).schema, statistics_columns(table), ColumnCache())
    added = [data.write(data.read_all(group), group[0].bucket, data_change=False) for group in groups]
    removed = [piece for group in groups for piece in group]
    reach("system.compact")
    try:
        proceed()
        gone = [removal(piece, data_change=False) for piece in removed]
        version = commit(handle, snapshot, files, table.name, [*gone, *added], note)
    except ConflictError:
        for action in added:
            data.discard(action.path)
        raise
    return Cared(
        version=version,
        files_removed=len(removed),
        bytes_removed=sum(piece.size_bytes for piece in removed),
        files_added=len(added),
    )


def _joinable(pieces: Sequence[Piece], target_bytes: int, min_small_files: int) -> list[list[Piece]]:
    """Small files of one bucket each, oldest first, in groups of about the target size; pure."""
    by_bucket: dict[int, list[Piece]] = {}
    for piece in sorted(pieces, key=lambda one: one.added_ms):
        if piece.size_bytes < target_bytes // 2:
            by_bucket.setdefault(piece.bucket, []).append(piece)
    groups: list[list[Piece]] = []
    for small in by_bucket.values():
        if len(small) < max(2, min_small_files):
            continue
        group: list[Piece] = []
        for piece in small:
            if group and sum(one.size_bytes for one in group) + piece.size_bytes > target_bytes:
                groups.append(group)
                group = []
            group.append(piece)
        groups.append(group)
    return [group for group in groups if len(group) > 1]


def vacuum(
    store: SystemStore,
    table: SystemTable[Any],
    *,
    retention: timedelta,
    now: datetime,
    note: Note,
    dry_run: bool = False,
    proceed: Callable[[], None] = lambda: None,
) -> Cared:
    """Delete files that no version of the last `retention` needs, and what killed writers left behind. What they are
    delta-rs says; it does not delete them, for it asks nobody while it does. Makes no commit.

    delta-rs believes the time of a removal that its writer wrote, by his own clock; here that of the log's file has to
    be old as well.

    Raises `UsageError` for a retention below an hour, `FencedError`, `ConflictError` (the rest was not deleted).
    """
    if retention < SHORTEST_RETENTION:
        raise UsageError(
            f"A retention of {retention} is too short for lakewarden.{table.name}.",
            hint="Keep at least an hour: younger files may belong to a commit that is being made.",
        )
    handle, snapshot = _opened(store, table, note)
    hours = math.ceil(retention / timedelta(hours=1))
    with answering(table.name):
        found = handle.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
    files, oldest = files_of(store, table), now - retention
    needed = _files_since(store, table, files, oldest) if found else frozenset()
    entries = [one for one in _existing(files, found) if one.path not in needed and one.modified_at <= oldest]
    planned = Cared(files_removed=len(entries), bytes_removed=sum(entry.size_bytes for entry in entries))
    if dry_run or not entries:
        return planned
    reach("system.vacuum")
    for _ in _deleted(store, table, snapshot, note, proceed, entries):
        pass
    return planned


def _files_since(
    store: SystemStore, table: SystemTable[Any], files: FileStore, moment: datetime
) -> frozenset[str]:
    """The files of the version that was current at a moment, and of later ones what their own times do not show to have
    come later. Where that version is not readable any more, the oldest one that is counts."""
    listing = listing_of(files.list(FOLDER))
    oldest = 0 if 0 in listing.commits else min((one.version for one in listing.checkpoints), default=0)
    version = max(oldest, _current_at(listing, moment))
    handle = open_at(store.location(table), store.storage(), name=table.name, version=version)
    pieces = take_snapshot(handle, table.name).pieces
    late = (one for one, entry in listing.commits.items() if one > version and entry.modified_at <= moment)
    added = chain.from_iterable(_added_in(files, one) for one in late)
    return frozenset((*(piece.path for piece in pieces), *added))


def _added_in(files: FileStore, version: int) -> Iterator[str]:
    actions = (json.loads(line) for line in files.read(commit_path(version)).splitlines() if line)
    return (action["add"]["path"] for action in actions if "add" in action)


def tend_log(
    store: SystemStore,
    table: SystemTable[Any],
    *,
    checkpoint: bool,
    keep: timedelta,
    now: datetime,
    note: Note,
    proceed: Callable[[], None] = lambda: None,
) -> Cared:
    """Write a checkpoint if asked, and remove log entries that no version of the last `keep` needs.

    Every version that was current at `now - keep` or later stays readable. Entries go oldest first, so that a log
    whose cleanup was killed is still a log. Makes no commit. Raises `FencedError`.
    """
    handle, snapshot = _opened(store, table, note)
    if checkpoint:
        with answering(table.name):
            handle.create_checkpoint()
        reach("system.checkpointed")
    files = files_of(store, table)
    removed = _expendable(list(files.list(FOLDER)), oldest=now - keep)
    for _ in _deleted(store, table, snapshot, note, proceed, removed):
        reach("system.log.deleted")
    return Cared(files_removed=len(removed), bytes_removed=sum(entry.size_bytes for entry in removed))


def _expendable(log: Sequence[FileEntry], *, oldest: datetime) -> list[FileEntry]:
    """Log entries below the newest checkpoint that is not younger than the version current at `oldest`; pure."""
    listing = listing_of(log)
    current = _current_at(listing, oldest)
    whole = [one.version for one in listing.checkpoints if one.version <= current]
    left_over = [entry for entry in log if fnmatchcase(entry.path, _LEFT_OVER) and entry.modified_at < oldest]
    if not whole:
        return left_over
    checkpoints = [(one.version, entry) for one in listing.checkpoints for entry in one.files]
    numbered = sorted([*listing.commits.items(), *checkpoints], key=lambda one: one[0])
    return [*left_over, *(entry for version, entry in numbered if version < max(whole))]


def _current_at(listing: LogListing, moment: datetime) -> int:
    """The last version that was there at a moment; -1 where the log has none so old.

    A commit's time is its file's, made monotonic: no version is taken for older than one before it.
    """
    current = -1
    youngest = None
    for version, entry in sorted(listing.commits.items()):
        youngest = entry.modified_at if youngest is None else max(youngest, entry.modified_at)
        if youngest <= moment:
            current = version
    return current


def _opened(store: SystemStore, table: SystemTable[Any], note: Note) -> tuple[DeltaTable, Snapshot]:
    handle, snapshot = opened(store, table)
    admit(handle, snapshot, table.name, note.fence)
    return handle, snapshot


def _confirm(store: SystemStore, table: SystemTable[Any], seen: Snapshot, note: Note) -> None:
    """Raise `ConflictError` unless this is still the table that was looked at,
    `FencedError` if another leader has it."""
    _, now = _opened(store, table, note)
    if now.format_id != seen.format_id or now.version < seen.version:
        raise ConflictError(
            f"lakewarden.{table.name} was replaced meanwhile; the rest of it was left as it is."
        )


def _deleted(
    store: SystemStore,
    table: SystemTable[Any],
    seen: Snapshot,
    note: Note,
    proceed: Callable[[], None],
    entries: Sequence[FileEntry],
) -> Iterator[FileEntry]:
    """Delete the files one by one, each told once it is gone. Raises `ConflictError` where another file lies at the
    place of one of them: somebody has put it back."""
    files, asked_at = files_of(store, table), 0.0
    for number, entry in enumerate(entries):
        if number % _BATCH == 0 or seconds_since_boot() - asked_at > _LASTS:
            _confirm(store, table, seen, note)
            proceed()
            asked_at = seconds_since_boot()
        if not files.delete_listed(entry):
            raise ConflictError(
                f"{entry.path} of lakewarden.{table.name} was put back meanwhile; the rest was left as it is."
            )
        yield entry


def _existing(files: FileStore, paths: Sequence[str]) -> list[FileEntry]:
    found = []
    for path in paths:
        try:
            found.append(files.stat(path))
        except FileNotFoundError:
            continue  # a tombstone whose file an earlier vacuum has deleted already
    return found
