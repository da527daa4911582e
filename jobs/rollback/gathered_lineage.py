"""The lineage that a rollback plan is made of: what is on record, and what logs tell beyond it, also where no sweep has
written it down yet.

A table whose lineage went back in time is read from the beginning of its log, one that is dropped as well: what was
made from it may be managed. Where its log cannot be read, nobody knows what it was made from, and the plan says so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnavailableError, UnreadableError
from lakewarden.catalog.formats.heads import HEAD_COLUMNS, SweptHead, swept_heads
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.lineage.graph.build import ROW_COLUMNS
from lakewarden.catalog.lineage.rewritten_logs import RewrittenLog
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.streams.session_notes import StreamNote
from lakewarden.catalog.lineage.unrecorded import Recorded, recorded_by_table
from lakewarden.catalog.lineage.unswept import ended_logs_on_record, unswept_rows
from lakewarden.catalog.model.rows import GONE, LineageRow, TableRow
from lakewarden.catalog.model.unread_lineage import is_given_up, is_lineage_unread
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import HEALTH, LINEAGE, Rows, SystemStore

__all__ = ["GatheredLineage", "LineageGatherer", "encoded"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GatheredLineage:
    """What is known of who was made from what."""

    rows: pa.Table
    """Rows of `ROW_COLUMNS`: those on record, those of commits that no sweep has seen, what sessions noted."""
    recorded: Mapping[str, Recorded]
    """By table what is on record."""
    ended: Sequence[RewrittenLog]
    """The logs that were put back and written on."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """By table, why its log cannot be read although something of its lineage may be lost."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageGatherer:
    """Reads it."""

    store: SystemStore
    readers: Sequence[TableReader]
    """One for each format."""
    harvest: StreamHarvest
    clock: Clock

    def gather(self, managed: Mapping[str, TableRow], notes: Sequence[StreamNote]) -> GatheredLineage:
        """Lineage before the health that was recorded by then: a sweep writes it first. Raises `UnavailableError` where
        the log of a table that is not gone does not answer."""
        held = self.store.rows(LINEAGE)
        known = held.arrow(ROW_COLUMNS)
        health = self.store.rows(HEALTH)
        recorded, swept = recorded_by_table(known), swept_heads(health.arrow(HEAD_COLUMNS))
        ended = ended_logs_on_record(managed.get, health)
        fresh: list[LineageRow] = []
        unread: dict[str, str] = {}

        def take(row: TableRow) -> None:
            if row.state in GONE and is_given_up(row.properties):
                unread[row.table_id] = "Its log could not be read when lineage had been lost."
                return
            known_of = recorded.get(row.table_id, {}), swept.get(row.table_id)
            try:
                fresh.extend(self._told(row, *known_of, notes, held=held, ended=ended))
            except UnreadableError as error:
                if is_lineage_unread(row.properties):
                    unread[row.table_id] = str(error)
            except UnavailableError as error:
                if row.state not in GONE:
                    raise
                unread[row.table_id] = str(error)

        gone = []
        for row in managed.values():
            if row.state not in GONE:
                take(row)
            elif is_lineage_unread(row.properties):
                gone.append(row)
        while gone:  # of tables that are gone, those matter that something was made from
            sources = _sources(known, fresh, managed.values())
            now = [row for row in gone if not sources.isdisjoint((row.table_id, row.location))]
            if not now:
                break
            taken = {row.table_id for row in now}
            gone = [row for row in gone if row.table_id not in taken]
            for row in now:
                take(row)
        return GatheredLineage(
            rows=pa.concat_tables([known, encoded(fresh)]), recorded=recorded, ended=ended, unread=unread
        )

    def _told(
        self,
        row: TableRow,
        recorded: Recorded,
        swept: SweptHead | None,
        notes: Sequence[StreamNote],
        *,
        held: Rows[LineageRow],
        ended: Sequence[RewrittenLog],
    ) -> Iterator[LineageRow]:
        """What a table's log, and notes of its batches, tell that is not on record."""
        reader, at = reader_of(self.readers, row.format), self.clock.now()
        told = unswept_rows(
            reader, row, recorded, self.harvest, held=held, ended=lambda _: ended, at=at, swept=swept
        )
        if told is None and is_lineage_unread(row.properties):
            raise UnreadableError(f"Its log is not at {row.location} any more.")
        yield from told or ()
        noted = [note for note in notes if note.sink == row.location]
        if noted:
            yield from self.harvest.noted(noted, row, reader, at=at)[0]


def _sources(known: pa.Table, fresh: Iterable[LineageRow], rows: Iterable[TableRow]) -> set[str | None]:
    """What anything was made from, ids and locations."""
    declared = {one.upstream for row in rows for one in row.dependencies}
    return {*pc.unique(known["input_id"]).to_pylist(), *(one.input_id for one in fresh), *declared}


def encoded(rows: Sequence[LineageRow]) -> pa.Table:
    """Rows as a table of `ROW_COLUMNS`."""
    return codec(LINEAGE).encode(rows).select(list(ROW_COLUMNS))
