"""Finding out what the batches of streaming sinks read: from declared checkpoints, and from what sessions noted.

Checkpoints are read when a table moves, because Spark purges them.
Nothing here fails because a checkpoint cannot be read:
what is not found out stays unknown.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.formats.stream_sources import KnownTables
from lakewarden.catalog.lineage.recording import NO_STREAMS, rows_from
from lakewarden.catalog.lineage.streams.checkpoints import checkpoints_of, read_batches
from lakewarden.catalog.lineage.streams.offsets import (
    BatchKey,
    Began,
    StreamBatch,
    StreamReads,
    batch_key,
    reads_of,
    uuid_in,
)
from lakewarden.catalog.lineage.streams.session_notes import StreamNote
from lakewarden.catalog.lineage.streams.versions_found import VersionSearch
from lakewarden.catalog.model.rows import GONE, Confidence, LineageRow, RowKind, TableRow
from lakewarden.catalog.storage.file_store import StorageOptions, open_store
from lakewarden.catalog.system.port import TABLES, SystemStore

__all__ = ["StreamHarvest", "rows_told_late", "tables_by_uuid"]

_REMEMBERED: Final = 100_000
"""So many versions; about 15 MB."""
_WINDOW: Final = 64
"""Commits looked at first for those of some batches; twice as many the next time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamHarvest:
    """Reads declared checkpoints."""

    store: SystemStore
    storage: Callable[[str], StorageOptions]
    """Opens a location."""
    readers: Sequence[TableReader]
    """One for each format."""
    remembered: MutableMapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Where versions were found, that offsets name without their table: `table_id` by the format's name for them."""

    def reads(self, row: TableRow, commits: Iterable[Commit]) -> Mapping[BatchKey, StreamReads]:
        """The reads of commits that a declared checkpoint tells of: one listing per checkpoint."""
        declared = checkpoints_of(row)
        wanted = {key for key in map(batch_key, commits) if key is not None} if declared else set()
        if not wanted:
            return NO_STREAMS
        found: dict[BatchKey, StreamBatch] = {}
        for one in declared:
            try:
                folder = open_store(one.location, self.storage(one.location))
                found.update(read_batches(folder, wanted - found.keys(), began=one.began))
            except (UnavailableError, OSError):
                continue
        known: dict[BatchKey, StreamReads] = {}
        tables = self._tables(self.store.rows(TABLES).all() if found else ())
        for key, batch in found.items():
            with suppress(UnavailableError):  # a source that is away: `lineage stream` asks again
                known[key] = reads_of(batch, tables)
        return known

    def noted(
        self,
        notes: Iterable[StreamNote],
        row: TableRow,
        reader: TableReader,
        *,
        at: datetime,
        upto: int | None = None,
    ) -> tuple[tuple[LineageRow, ...], frozenset[BatchKey]]:
        """The rows of those batches of a table that a session noted and that the log has up to version `upto`
        (None: all of it); and the batches that come after it."""
        every = self.store.rows(TABLES).all()
        tables, rows = self._tables(every), {one.table_id: one for one in every}
        sources = {key: rows[one] for key, one in tables.by_format_id.items()}
        batches = [_begun(note.batch, self.readers, sources) for note in notes]
        reads = {batch.key: reads_of(batch, tables) for batch in batches}
        commits = _commits_with(reader, row.location or "", reads.keys())
        late = {batch_key(one) for one in commits if upto is not None and one.version > upto}
        early = {key: read for key, read in reads.items() if key not in late}
        return rows_told_late(row, commits, early, at=at), frozenset(reads.keys() & late)

    def _tables(self, rows: Collection[TableRow]) -> KnownTables:
        if len(self.remembered) > _REMEMBERED:
            self.remembered.clear()
        search = VersionSearch(rows, self.readers, self.remembered)
        return KnownTables(by_format_id=tables_by_uuid(rows), find=search)


def _begun(batch: StreamBatch, readers: Sequence[TableReader], tables: Mapping[str, TableRow]) -> StreamBatch:
    """The batch with the version it really began with: a RESTORE at which it was told to begin is passed over, where
    the query skips such commits. `tables` by their UUIDs."""
    version = batch.began.version
    if version is None or not batch.began.skips:
        return batch
    for source in batch.sources:
        row = tables.get(uuid_in(source.end) or "")
        if row is None or not row.location:
            continue
        reader = reader_of(readers, row.format)
        for commit in reader.commits(row.location, after=version - 1, upto=version):
            if commit.data_change and commit.removed_files:
                return replace(batch, began=Began(version=version + 1))
    return batch


def rows_told_late(
    row: TableRow, commits: Iterable[Commit], reads: Mapping[BatchKey, StreamReads], *, at: datetime
) -> tuple[LineageRow, ...]:
    """Rows for batches only, whose commits may be on record as unknown: these overrule that."""
    format_id = row.format_ids[0] if len(row.format_ids) == 1 else None
    rows = rows_from(row.table_id, commits, format_id=format_id, at=at, streams=reads)
    return tuple(one for one in rows if one.confidence is Confidence.STREAM)


def tables_by_uuid(rows: Iterable[TableRow]) -> Mapping[str, str]:
    """The `table_id` of each table by every UUID that it ever had. Two live tables with one UUID: nobody can tell."""
    live: dict[str, str | None] = {}
    gone: dict[str, str] = {}
    for row in rows:
        if row.kind is not RowKind.TABLE:
            continue
        for uuid in row.format_ids:
            if row.state in GONE:
                gone[uuid] = row.table_id
            else:
                live[uuid] = row.table_id if live.get(uuid, row.table_id) == row.table_id else None
    return {uuid: table_id for uuid, table_id in {**gone, **live}.items() if table_id is not None}


def _commits_with(reader: TableReader, location: str, keys: Collection[BatchKey]) -> Sequence[Commit]:
    """The end of a log, as far back as all these batches are in it."""
    head = reader.probe(location, seen=None).latest
    if head is None:
        return ()
    window = _WINDOW
    while True:
        after = max(head - window, -1)
        commits = tuple(reader.commits(location, after=after))
        if after < 0 or set(keys) <= {batch_key(commit) for commit in commits}:
            return commits
        window *= 2
