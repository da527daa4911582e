"""All that a version holds, as one source tells it: a checkpoint, or an earlier state and the commits after it.

For comparing the two. Unlike a replay for readers it leaves nothing out, reads every column of a checkpoint, and never
looks at commits before the one it starts with.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.clock import to_millis
from lakewarden.catalog.formats.delta.actions import (
    AddFile,
    DomainMetadata,
    LogAction,
    Metadata,
    Protocol,
    RemoveFile,
    Transaction,
    parse_actions,
)
from lakewarden.catalog.formats.delta.checkpoint import FileBatch, file_batches, read_head, read_notes
from lakewarden.catalog.formats.delta.checkpoint_columns import state_of, statistics_keys
from lakewarden.catalog.formats.delta.file_state import Changes, FileState, apply, key_of
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.replay import partition_names
from lakewarden.catalog.formats.delta.segment import Checkpoint, LogListing
from lakewarden.catalog.storage.file_store import FileEntry

__all__ = ["STATISTICS", "LogContents", "after_commits", "by_checkpoint"]

STATISTICS: Final = pa.schema({"key": pa.int64(), "stats": pa.int64()})
"""Live files that have statistics as text: hash of (path, vector), hash of the text."""

_SLICE_BYTES: Final = 64 * 1024 * 1024
"""So much of the commits is gathered before it is applied: memory does not grow with their number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogContents:
    """A version as one source tells it. What nothing read so far told is None."""

    files: FileState
    statistics: pa.Table
    """As in `STATISTICS`."""
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    transactions: dict[str, int] = field(default_factory=dict)
    """The last version of each application."""
    domains: dict[str, str] = field(default_factory=dict)
    """What features keep, by their names."""
    written_ms: int = 0
    """The checkpoint's time."""

    @classmethod
    def nothing(cls) -> "LogContents":
        """Before the first commit."""
        return cls(files=FileState.empty(), statistics=STATISTICS.empty_table())


def by_checkpoint(log: DeltaLog, listing: LogListing, checkpoint: Checkpoint) -> LogContents:
    """What a checkpoint tells, all of it read. Raises `BrokenLogError`,
    or `ValueError` for values that make no sense."""
    head = read_head(log, listing, checkpoint)
    written_ms = to_millis(checkpoint.written_at)
    keys: list[pa.Array] = []

    def noted(batches: Iterable[FileBatch]) -> Iterator[FileBatch]:
        for batch in batches:
            keys.append(statistics_keys(batch.adds))
            yield batch

    batches = noted(file_batches(log, listing, head, whole=True))
    files = state_of(batches, partition_names(head.metadata), written_ms=written_ms)
    statistics = pa.table({"key": files.live["key"], "stats": pa.chunked_array(keys, pa.int64())})
    start = LogContents(
        files=files,
        statistics=statistics.filter(statistics["stats"].is_valid()),
        metadata=head.metadata,
        protocol=head.protocol,
        written_ms=written_ms,
    )
    gathered = _Gathered(start)
    for action in (*head.actions, *read_notes(log, listing, checkpoint)):
        gathered.take(action, written_ms)
    return gathered.told()


def after_commits(
    log: DeltaLog, listing: LogListing, start: LogContents, commits: Sequence[tuple[int, FileEntry]]
) -> LogContents:
    """What `start` and the commits after it, in order, tell together. Raises `BrokenLogError`."""
    gathered, size = _Gathered(start), 0
    for _, entry in commits:
        written_ms = to_millis(entry.modified_at)
        for action in parse_actions(log.lines(entry, listing), entry.path):
            gathered.take(action, written_ms)
        size += entry.size_bytes
        if size >= _SLICE_BYTES:
            gathered, size = _Gathered(gathered.told()), 0
    return gathered.told()


class _Gathered:
    """Actions in the order of the log, on top of a state."""

    def __init__(self, start: LogContents) -> None:
        self._start, self._changes = start, Changes()
        self._metadata, self._protocol = start.metadata, start.protocol
        self._transactions, self._domains = dict(start.transactions), dict(start.domains)
        self._statistics: dict[int, int | None] = {}

    def take(self, action: LogAction, written_ms: int) -> None:
        match action:
            case AddFile():
                self._changes.add(action)
                self._statistics[key_of(action)] = action.stats_key
            case RemoveFile():
                self._changes.remove(action, committed_ms=written_ms)
                self._statistics[key_of(action)] = None
            case Metadata():
                self._metadata = action
            case Protocol():
                self._protocol = action
            case Transaction():
                self._transactions[action.app_id] = action.version
            case DomainMetadata(configuration=None):
                self._domains.pop(action.domain, None)
            case DomainMetadata():
                self._domains[action.domain] = action.configuration or ""
            case _:
                pass  # who committed, and where a checkpoint's files are, is no part of the state

    def told(self) -> LogContents:
        return replace(
            self._start,
            files=apply(self._start.files, self._changes),
            statistics=self._with_statistics(),
            metadata=self._metadata,
            protocol=self._protocol,
            transactions=self._transactions,
            domains=self._domains,
        )

    def _with_statistics(self) -> pa.Table:
        before = self._start.statistics
        if not self._statistics:
            return before
        touched = pa.array(list(self._statistics), pa.int64())
        untouched = before.filter(pc.invert(pc.is_in(before["key"], touched)))
        new = pa.table({"key": touched, "stats": pa.array(list(self._statistics.values()), pa.int64())})
        return pa.concat_tables([untouched, new.filter(new["stats"].is_valid())]).combine_chunks()
