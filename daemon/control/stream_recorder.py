"""What sessions noted of their streams' batches becomes rows of `lakewarden.lineage`.

Rows for a batch are written once its commit is on record, so that the newest version on record stays the place where
the next sweep goes on. They overrule that the commit alone says nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.streams.offsets import BatchKey
from lakewarden.catalog.lineage.streams.session_notes import StreamNote, StreamNotes
from lakewarden.catalog.model.rows import LineageRow, TableRow
from lakewarden.catalog.system.port import LINEAGE, Fence, SystemStore
from lakewarden.catalog.units import count_of
from lakewarden.daemon.control.noted_files import is_young, legible
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.questions import Questions
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["StreamClerk"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamClerk:
    """Empties the folder of notes, at most one commit per cycle."""

    store: SystemStore
    notes: StreamNotes
    harvest: StreamHarvest
    cache: FleetCache
    readers: Sequence[TableReader]
    clock: Clock
    questions: Questions = field(default_factory=Questions)
    """Asks disks in time."""

    def record(self, fence: Fence) -> int:
        """Record what was noted; how many rows. Raises `UnavailableError` if the storage of the notes does
        not answer."""
        files = legible(self.notes, _put_aside)
        by_sink: dict[str, list[StreamNote]] = defaultdict(list)
        for notes in files.values():
            for note in notes:
                by_sink[note.sink].append(note)
        rows: list[LineageRow] = []
        waiting: set[tuple[str, BatchKey]] = set()
        unmanaged: set[str] = set()
        for sink, noted in by_sink.items():
            row = self.cache.row_at(sink)
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
            unknown = not unmanaged.isdisjoint(note.sink for note in notes)
            adoptable = unknown and is_young(self.notes, name, self.clock.now())
            if not adoptable and waiting.isdisjoint((note.sink, note.batch.key) for note in notes):
                self.notes.delete(name)
        return len(rows)

    def _rows(
        self, row: TableRow, noted: Sequence[StreamNote]
    ) -> tuple[Sequence[LineageRow], Collection[BatchKey]]:
        """The rows of a table's batches, and the batches for which it is too early."""
        upto = self.cache.lineage_upto(row.table_id)
        if upto is not None:
            reader = reader_of(self.readers, row.format)
            try:
                look = partial(self.harvest.noted, noted, row, reader, at=self.clock.now(), upto=upto)
                return self.questions.one(row.location or "", look)
            except UnavailableError:
                pass  # its storage is away: another time
        return (), [note.batch.key for note in noted]


def _put_aside(problem: str) -> None:
    get_log("streams").warning("a note was put aside", problem=problem)
