"""The logs of tables that are gone, read again for lineage that was lost: no sweep looks at such tables otherwise.

What was made from one may be managed, and one that waits to be purged, or to leave, still has its promise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.lineage.rewritten_logs import ended_logs
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.unswept import unswept_rows
from lakewarden.catalog.model.rows import LineageRow, TableRow
from lakewarden.catalog.model.unread_lineage import LINEAGE_UNREAD, with_lineage_read
from lakewarden.catalog.policy.original_properties import awaits_lineage
from lakewarden.catalog.system.port import LINEAGE, TABLES, Fence, Rows, SystemStore
from lakewarden.catalog.units import count_of
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.questions import Questions
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["GoneLineageClerk"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GoneLineageClerk:
    """Reads each log once, with at most one commit per system table and cycle. Of one that cannot be read, others may
    wait for the lineage: it is tried again."""

    store: SystemStore
    cache: FleetCache
    readers: Sequence[TableReader]
    harvest: StreamHarvest
    clock: Clock
    questions: Questions = field(default_factory=Questions)
    """Asks disks in time."""
    _in_vain: dict[str, str] = field(default_factory=dict)
    """Since when (`LINEAGE_UNREAD`) something is lost of tables whose logs this process could not read, by
    `table_id`."""

    def record(self, fence: Fence) -> int:
        """Record what these logs tell; how many were read. Raises `UnavailableError` for the system tables' storage."""
        waiting = {
            row.table_id: row
            for row in self.cache.gone_unread()
            if awaits_lineage(row) or not self._is_in_vain(row)
        }
        if not waiting:
            return 0
        at_place: dict[str, list[TableRow]] = {}
        for row in waiting.values():
            at_place.setdefault(row.location or "", []).append(row)

        def read(place: str) -> dict[str, Sequence[LineageRow]]:
            told = ((row.table_id, self._told(row)) for row in at_place[place])
            return {table_id: rows for table_id, rows in told if rows is not None}

        found: dict[str, Sequence[LineageRow]] = {}
        for answer in self.questions.each(at_place, read).values():
            found |= answer
        self._write({table_id: (waiting[table_id], rows) for table_id, rows in found.items()}, fence)
        return len(found)

    def _told(self, row: TableRow) -> Sequence[LineageRow] | None:
        """What a log tells that is not on record; None where it cannot be read, or not now."""
        try:
            rows = unswept_rows(
                reader_of(self.readers, row.format),
                row,
                self.cache.lineage_of(row.table_id),
                self.harvest,
                held=self.store.rows(LINEAGE),
                ended=partial(ended_logs, self.cache.reverted_ranges.ranges),
                at=self.clock.now(),
                swept=None,
            )
            because = f"Its log is not at {row.location} any more."
        except UnavailableError:
            return None
        except LakewardenError as error:
            rows, because = None, str(error)
        if rows is None and not self._is_in_vain(row):
            self._in_vain[row.table_id] = row.properties[LINEAGE_UNREAD]
            get_log("cycle").warning("its last lineage is not known", table=row.name, because=because)
        return rows

    def _is_in_vain(self, row: TableRow) -> bool:
        return self._in_vain.get(row.table_id) == row.properties[LINEAGE_UNREAD]

    def _write(self, found: Mapping[str, tuple[TableRow, Sequence[LineageRow]]], fence: Fence) -> None:
        """Lineage before the rows that say that it was read: killed in between, it is read once more."""
        because = f"lineage of {count_of(len(found), 'table')} read again"
        rows = [one for _, told in found.values() for one in told]
        if rows:
            self.cache.wrote_lineage(rows, self.store.append(LINEAGE, rows, fence=fence, because=because))

        def noted(tables: Rows[TableRow]) -> Iterator[TableRow]:
            for table_id, (row, _) in found.items():
                now = tables.get(table_id)
                since = row.properties[LINEAGE_UNREAD]
                if now is not None and now.properties.get(LINEAGE_UNREAD) == since:
                    yield with_lineage_read(now)

        if found:
            self.cache.wrote_tables(self.store.edit(TABLES, noted, fence=fence, because=because))
