"""What sessions noted of their streams' batches becomes rows of `lakewarden.lineage`.

Rows for a batch are written once its commit is on record, so that the newest version on record stays the place where
the next sweep goes on. They overrule that the commit alone says nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnavailableError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.streams.offsets import BatchKey
from lakewarden.catalog.lineage.streams.session_notes import StreamNote, StreamNotes
from lakewarden.catalog.model.rows import LineageRow, TableRow
from lakewarden.catalog.system.port import LINEAGE, Fence, SystemStore
from lakewarden.catalog.units import count_of
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["StreamClerk"]

_PATIENCE: Final = timedelta(minutes=10)
"""How long a note waits for its table to become a managed one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamClerk:
    """Empties the folder of notes, at most one commit per cycle."""

    store: SystemStore
    notes: StreamNotes
    harvest: StreamHarvest
    cache: FleetCache
    readers: Sequence[TableReader]
    clock: Clock

    def record(self, fence: Fence) -> int:
        """Record what was noted; how many rows. Raises `UnavailableError` if the storage of the notes does
        not answer."""
        files = self._read()
        by_sink: dict[str, list[StreamNote]] = defaultdict(list)
        for notes in files.values():
            for note in notes:
                by_sink[note.sink].append(note)
        rows: list[LineageRow] = []
        waiting: set[tuple[str, BatchKey]] = set()
        unmanaged: set[str] = set()
        for sink, noted in by_sink.items():
            row = self._row(sink)
            if row is None:
                unmanaged.add(sink)
                continue
            found, late = self._rows(row, noted)
            rows.extend(found)
            waiting.update((sink, key) for key in late)
        if rows:
            because = f"what {count_of(len(by_sink), 'table')} got from streams"
            self.cache.learned(rows, self.store.append(LINEAGE, rows, fence=fence, because=because))
            reach("streams.recorded")
        for name, notes in files.items():
            adoptable = self._is_young(name) and not unmanaged.isdisjoint(note.sink for note in notes)
            if not adoptable and waiting.isdisjoint((note.sink, note.batch.key) for note in notes):
                self.notes.delete(name)
        return len(rows)

    def _read(self) -> Mapping[str, Sequence[StreamNote]]:
        files: dict[str, Sequence[StreamNote]] = {}
        for name in self.notes.names():
            try:
                files[name] = self.notes.read(name)
            except UnreadableError as error:
                get_log("streams").warning("a note was put aside", problem=str(error))
                self.notes.put_aside(name)
        return files

    def _rows(
        self, row: TableRow, noted: Sequence[StreamNote]
    ) -> tuple[Sequence[LineageRow], Collection[BatchKey]]:
        """The rows of a table's batches, and the batches for which it is too early."""
        upto = self.cache.lineage_upto(row.table_id)
        if upto is not None:
            reader = reader_of(self.readers, row.format)
            try:
                return self.harvest.noted(noted, row, reader, at=self.clock.now(), upto=upto)
            except UnavailableError:
                pass  # its storage is away: another time
        return (), [note.batch.key for note in noted]

    def _row(self, sink: str) -> TableRow | None:
        table_id = self.cache.find(sink)
        return None if table_id is None else self.cache.row(table_id)

    def _is_young(self, name: str) -> bool:
        at = self.notes.written_at(name)
        return at is not None and self.clock.now() - at < _PATIENCE
