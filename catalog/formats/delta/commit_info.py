"""What commits say about what was done when. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.clock import from_millis, to_millis
from lakewarden.catalog.formats.delta.actions import (
    AddFile,
    CommitInfo,
    LogAction,
    Metadata,
    Protocol,
    RemoveFile,
    Transaction,
)
from lakewarden.catalog.formats.delta.commit_kind import (
    kind_of,
    named_properties,
    overwrites_all,
    restored_to,
    streamed_batch,
)
from lakewarden.catalog.formats.port import Commit, Maintenance, Partition

__all__ = ["History", "ReadCommit", "extended", "read_commit"]

_COMPACTIONS: Final = frozenset({"OPTIMIZE", "REORG"})
_INSTALLATIONS: Final = 8
"""So many are remembered of a table: anybody can write any number of ids into a log."""
_VACUUM_START: Final = "VACUUM START"
_VACUUM_END: Final = "VACUUM END"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadCommit:
    """A commit that was read: what it says of itself, and the table's metadata and protocol if it changed them."""

    commit: Commit
    metadata: Metadata | None = None
    protocol: Protocol | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """What a run of commits came to. Times as in `Commit.committed_at`."""

    version: int = -1
    """The last of them."""
    committed_at: datetime
    last_write_at: datetime | None = None
    last_compaction_at: datetime | None = None
    last_vacuum_at: datetime | None = None
    vacuum_limit_ms: int | None = None
    """What the last vacuum that began, and may not have ended, deletes up to."""
    vacuumed_ms: int | None = None
    """What a completed vacuum deleted up to: files removed before it are dealt with."""
    maintained: tuple[Maintenance, ...] = ()
    """As in `Observation`."""


def read_commit(version: int, actions: Iterable[LogAction], written_at: datetime) -> ReadCommit:
    """One commit from its actions; `written_at` is its file's time."""
    info, metadata, protocol = CommitInfo(), None, None
    added, removed, data_change, gained, lost = 0, 0, False, set[Partition](), set[Partition | None]()
    transactions: list[tuple[str, int]] = []
    for action in actions:
        if isinstance(action, AddFile):
            added += 1
            gained.add(action.partition)
            data_change = data_change or action.data_change
        elif isinstance(action, RemoveFile):
            removed += 1
            lost.add(action.partition)
            data_change = data_change or action.data_change
        elif isinstance(action, Metadata):
            metadata = action
        elif isinstance(action, Protocol):
            protocol = action
        elif isinstance(action, Transaction):
            transactions.append((action.app_id, action.version))
        elif isinstance(action, CommitInfo):
            info = action
    commit = Commit(
        version=version,
        parent=version - 1 if version > 0 else None,
        committed_at=_youngest(info, written_at),
        stamped_at=None if info.timestamp_ms is None else from_millis(info.timestamp_ms),
        kind=kind_of(
            info.operation,
            info.parameters,
            first=version == 0,
            data_change=data_change,
            redefines=metadata is not None,
            added=added,
            removed=removed,
            whole=overwrites_all(info.engine, gained, lost),
        ),
        operation=info.operation,
        parameters=info.parameters,
        metrics=info.metrics,
        data_change=data_change,
        added_files=added,
        removed_files=removed,
        blind_append=info.blind_append,
        engine=info.engine,
        user=info.user,
        user_metadata=info.user_metadata,
        run_id=info.run_id,
        installation=info.installation,
        lineage=info.lineage.record,
        lineage_verdict=info.lineage.verdict,
        format_id=None if metadata is None else metadata.id,
        restored=restored_to(info.operation, info.parameters),
        changed_properties=named_properties(info.operation, info.parameters),
        transactions=tuple(transactions),
        redefines=metadata is not None or protocol is not None,
        ends_vacuum=info.operation == _VACUUM_END,
        batch=streamed_batch(info.operation, info.parameters),
    )
    return ReadCommit(commit=commit, metadata=metadata, protocol=protocol)


def extended(history: History, commit: Commit) -> History:
    """The history with one more commit, the next in order."""
    at, operation = commit.committed_at, commit.operation
    history = replace(history, version=commit.version, committed_at=at)
    if commit.data_change:
        history = replace(history, last_write_at=_later(history.last_write_at, at))
    if commit.installation is not None:
        history = replace(history, maintained=_maintained(history, commit.installation, commit))
    if operation in _COMPACTIONS:
        history = replace(history, last_compaction_at=_later(history.last_compaction_at, at))
    if operation == _VACUUM_START:
        return replace(history, vacuum_limit_ms=_vacuum_limit(commit))
    if operation == _VACUUM_END and commit.parameters.get("status", "COMPLETED") == "COMPLETED":
        limit, done = history.vacuum_limit_ms, history.vacuumed_ms
        vacuumed = limit if done is None or (limit is not None and limit > done) else done
        return replace(
            history,
            last_vacuum_at=_later(history.last_vacuum_at, at),
            vacuum_limit_ms=None,
            vacuumed_ms=vacuumed,
        )
    return history


def _maintained(history: History, installation: str, commit: Commit) -> tuple[Maintenance, ...]:
    now = Maintenance(installation=installation, version=commit.version, at=commit.committed_at)
    others = (one for one in history.maintained if one.installation != installation)
    return (now, *others)[:_INSTALLATIONS]


def _vacuum_limit(commit: Commit) -> int | None:
    """When a vacuum's files must have been removed, to be deleted, by the clock that stamps removed files: the time of
    the commit's file is another's in a copied table. Spark writes `specifiedRetentionMillis` only where it honoured it
    (run: Delta 4.4 ignores RETAIN unless it is 0), delta-rs always."""
    for key in ("specifiedRetentionMillis", "defaultRetentionMillis"):
        millis = as_whole(commit.parameters.get(key, ""))
        if millis is not None:
            return to_millis(commit.stamped_at or commit.committed_at) - millis
    return None


def _youngest(info: CommitInfo, written_at: datetime) -> datetime:
    told = [from_millis(ms) for ms in (info.timestamp_ms, info.in_commit_ms) if ms is not None]
    return max([written_at, *told])


def _later(one: datetime | None, other: datetime) -> datetime:
    return other if one is None else max(one, other)
