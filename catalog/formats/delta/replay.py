"""Replaying the log: from a segment of files to the state of its last version, or on from an earlier state."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.clock import from_millis, to_millis
from lakewarden.catalog.formats.delta.actions import (
    AddFile,
    LogAction,
    Metadata,
    Protocol,
    RemoveFile,
    parse_actions,
)
from lakewarden.catalog.formats.delta.checkpoint import CheckpointHead, file_batches, read_head
from lakewarden.catalog.formats.delta.checkpoint_columns import state_of
from lakewarden.catalog.formats.delta.commit_info import History, ReadCommit, extended, read_commit
from lakewarden.catalog.formats.delta.errors import HISTORY, LOG_READABLE, PROTOCOL, BrokenLogError
from lakewarden.catalog.formats.delta.file_state import Changes, FileState, apply
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.protocol import MAX_READER
from lakewarden.catalog.formats.delta.schema import physical_names
from lakewarden.catalog.formats.delta.segment import LogListing, Segment
from lakewarden.catalog.formats.port import LogProblem
from lakewarden.catalog.storage.file_store import FileEntry

__all__ = [
    "Replayed",
    "metadata_of",
    "oldest_read",
    "partition_names",
    "replay",
    "replay_on",
    "version_actions",
]

LOOK_BACK_COMMITS: Final = 5_000
LOOK_BACK_BYTES: Final = 64 * 1024 * 1024
"""How much of the log before the checkpoint is read for what a checkpoint forgets: removed files past the table's own
retention, and when somebody last wrote, compacted, vacuumed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """One version as its log gives it."""

    version: int
    files: FileState
    metadata: Metadata
    protocol: Protocol
    history: History
    base: int | None
    """The checkpoint's version, if it began with one."""
    looked_back_to: int
    """The oldest commit that was read."""
    warnings: tuple[LogProblem, ...] = ()
    """Commits before it that cannot be understood."""


def replay(log: DeltaLog, listing: LogListing, segment: Segment) -> Replayed:
    """The whole state from the segment's checkpoint on. Raises `BrokenLogError`."""
    history, past, warnings = _look_back(log, listing, segment)
    head = read_head(log, listing, segment.checkpoint) if segment.checkpoint else None
    files = FileState.empty() if head is None else _checkpoint_state(log, listing, head, past)
    if head is not None and history.version < head.checkpoint.version:
        history = replace(history, version=head.checkpoint.version, committed_at=head.checkpoint.written_at)
    start = Replayed(
        version=segment.checkpoint.version if segment.checkpoint else -1,
        files=files,
        metadata=head.metadata if head else _NO_METADATA,
        protocol=head.protocol if head else _NO_PROTOCOL,
        history=history,
        base=segment.checkpoint.version if segment.checkpoint else None,
        looked_back_to=oldest_read(segment),
        warnings=warnings,
    )
    return replay_on(log, listing, start, segment.commits)


def replay_on(
    log: DeltaLog, listing: LogListing, start: Replayed, commits: Iterable[tuple[int, FileEntry]]
) -> Replayed:
    """The state after the commits that follow `start`, in order. Raises `BrokenLogError`."""
    changes, history = Changes(), start.history
    metadata, protocol, version = start.metadata, start.protocol, start.version
    for version, entry in commits:
        read = _read(log, listing, version, entry, changes)
        history = extended(history, read.commit)
        metadata, protocol = read.metadata or metadata, read.protocol or protocol
        _check_protocol(protocol)
    for missing, name in ((metadata is _NO_METADATA, "metadata"), (protocol is _NO_PROTOCOL, "protocol")):
        if missing:
            raise BrokenLogError(
                LOG_READABLE, f"No commit up to version {version} says what the table's {name} is."
            )
    _check_protocol(protocol)
    return replace(
        start,
        version=version,
        files=apply(start.files, changes),
        metadata=metadata,
        protocol=protocol,
        history=history,
    )


def oldest_read(segment: Segment) -> int:
    """The oldest commit that replaying this segment reads (its checkpoint's version + 1 if none before it)."""
    chosen = [*_within_limits(segment), *segment.commits]
    return chosen[0][0] if chosen else segment.head + 1


def version_actions(log: DeltaLog, listing: LogListing, entry: FileEntry) -> Iterator[LogAction]:
    """The actions of one commit file."""
    return parse_actions(log.lines(entry, listing), entry.path)


def metadata_of(log: DeltaLog, listing: LogListing, segment: Segment) -> Metadata:
    """The metadata of the segment's head, without its files. Raises `BrokenLogError`."""
    for _, entry in reversed(segment.commits):
        told = [one for one in version_actions(log, listing, entry) if isinstance(one, Metadata)]
        if told:
            return told[-1]
    if segment.checkpoint is None:
        raise BrokenLogError(
            LOG_READABLE, f"No commit up to version {segment.head} says what the table's metadata is."
        )
    return read_head(log, listing, segment.checkpoint).metadata


def partition_names(metadata: Metadata) -> tuple[str, ...]:
    """Partition columns as partition values name them (physical names where columns are mapped)."""
    try:
        physical = physical_names(metadata.schema_json)
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenLogError(
            LOG_READABLE, "The schema in the table's metadata cannot be understood."
        ) from error
    return tuple(physical.get(name, name) for name in metadata.partition_columns)


_NEVER: Final = from_millis(0)
_NO_METADATA: Final = Metadata("", None, None, None, (), {})
_NO_PROTOCOL: Final = Protocol(0, 0)


def _read(log: DeltaLog, listing: LogListing, version: int, entry: FileEntry, changes: Changes) -> ReadCommit:
    actions = _gathered(version_actions(log, listing, entry), changes, entry.modified_at)
    return read_commit(version, actions, entry.modified_at)


def _gathered(actions: Iterable[LogAction], changes: Changes, written_at: datetime) -> Iterator[LogAction]:
    for action in actions:
        if isinstance(action, AddFile):
            changes.add(action)
        elif isinstance(action, RemoveFile):
            changes.remove(action, committed_ms=to_millis(written_at))
        yield action


def _checkpoint_state(log: DeltaLog, listing: LogListing, head: CheckpointHead, past: Changes) -> FileState:
    """The checkpoint's files, and what the commits before it removed that the checkpoint no longer mentions."""
    _check_protocol(head.protocol)
    written_ms = to_millis(head.checkpoint.written_at)
    batches = file_batches(log, listing, head)
    state = state_of(batches, partition_names(head.metadata), written_ms=written_ms)
    inline = Changes()
    for action in head.actions:
        if isinstance(action, AddFile):
            inline.add(action)
        else:
            inline.remove(action, committed_ms=written_ms)
    forgotten = apply(FileState.empty(), past)
    return apply(state, inline).with_forgotten(forgotten.dead, forgotten.elsewhere)


def _look_back(
    log: DeltaLog, listing: LogListing, segment: Segment
) -> tuple[History, Changes, tuple[LogProblem, ...]]:
    """Read the commits before the checkpoint, as far as they are there and the limits allow, oldest first."""
    history, changes = History(committed_at=_NEVER), Changes()
    warnings: tuple[LogProblem, ...] = ()
    for version, entry in _within_limits(segment):
        try:
            read = _read(log, listing, version, entry, changes)
        except BrokenLogError as problem:
            message = (
                f"{problem} It is older than the checkpoint: head can be read, versions around it cannot."
            )
            warnings = (*warnings, LogProblem(check=HISTORY, message=message))
            continue
        history = extended(history, read.commit)
    return history, changes, warnings


def _within_limits(segment: Segment) -> list[tuple[int, FileEntry]]:
    chosen: list[tuple[int, FileEntry]] = []
    size = 0
    for version, entry in reversed(segment.older[-LOOK_BACK_COMMITS:]):
        size += entry.size_bytes
        if size > LOOK_BACK_BYTES and chosen:
            break
        chosen.append((version, entry))
    return chosen[::-1]


def _check_protocol(protocol: Protocol) -> None:
    if protocol.reader > MAX_READER:
        raise BrokenLogError(
            PROTOCOL,
            f"The table asks for reader version {protocol.reader}; versions up to {MAX_READER} are known.",
        )
