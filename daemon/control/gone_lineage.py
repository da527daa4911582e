"""The logs of tables that are gone, read again for lineage that was lost: no sweep looks at such tables otherwise.

What was made from one may be managed, and one that waits to be purged, or to leave, still has its promise.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.isolation import Unforeseen, isolated
from lakewarden.catalog.lineage.rewritten_logs import ended_logs
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.unswept import EndedLogs, unswept_rows
from lakewarden.catalog.model.rows import LineageRow, TableRow
from lakewarden.catalog.model.unread_lineage import LINEAGE_UNREAD, with_lineage_given_up, with_lineage_read
from lakewarden.catalog.system.port import LINEAGE, TABLES, Fence, Rows, SystemStore
from lakewarden.catalog.threads import Late, in_time
from lakewarden.catalog.units import count_of
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["GoneLineageClerk"]

_AT_ONCE: Final = 4
"""Logs that are read at a time."""
_WAIT: Final = 5.0
"""Seconds that a cycle waits for those that it begins."""
_PAUSE: Final = timedelta(minutes=5)
"""Before a storage that does not answer is asked again."""
_GIVES_UP: Final = timedelta(days=7)
"""Storage that has not answered for so long since lineage was lost may be gone with the table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _GoneLog:
    """What a log has told that is not on record."""

    row: TableRow
    """The table's row when its log was begun."""
    rows: Sequence[LineageRow] | None
    """None where the log cannot be read."""
    because: str = ""
    """Why it cannot."""
    is_away: bool = False
    """It may be read at another time."""


@dataclass(kw_only=True, slots=True)
class GoneLineageClerk:
    """Reads each log once, a few in a cycle, which does not wait long for them: a log that takes longer is taken up by
    a later cycle. At most one commit per system table and cycle.

    A log that is not there any more, or that cannot be read, is given up, and so is one whose storage has not answered
    for a week: others do not wait for it.
    """

    store: SystemStore
    cache: FleetCache
    readers: Sequence[TableReader]
    harvest: StreamHarvest
    clock: Clock
    tick: Callable[[], None] = lambda: None
    """Called while logs are waited for; may raise."""
    wait: float = _WAIT
    """Seconds."""
    _late: dict[str, Late[TableRow, _GoneLog]] = field(default_factory=dict)
    """Logs that are still read, by `table_id`."""
    _away: dict[str, datetime] = field(default_factory=dict)
    """When a table is tried again whose storage did not answer."""

    def record(self, fence: Fence) -> int:
        """Record what these logs tell; how many are done with. Raises `UnavailableError` for the system tables'
        storage."""
        waiting = {row.table_id: row for row in self.cache.gone_unread()}
        now = self.clock.now()
        came = [late for late in self._late.values() if late.result is not None]
        told = [one for late in came for one in late.result or ()]
        for late in came:
            del self._late[late.thing.table_id]
        able = [
            row
            for table_id, row in waiting.items()
            if table_id not in self._late and self._away.get(table_id, now) <= now
        ]
        begun = able[: max(0, _AT_ONCE - len(self._late))]
        if begun:
            ended = partial(ended_logs, self.cache.reverted_ranges.ranges)
            read = partial(self._told, self.store.rows(LINEAGE), ended)
            done, left = in_time(read, begun, threads=_AT_ONCE, limit=self.wait, tick=self.tick)
            told += done
            self._late |= {late.thing.table_id: late for late in left}
        over = [one for one in told if self._is_over(one, waiting.get(one.row.table_id), now)]
        self._write(over, fence)
        return len(over)

    def _is_over(self, told: _GoneLog, row: TableRow | None, now: datetime) -> bool:
        """Whether what was told settles it for the row as it is by now."""
        since = told.row.properties[LINEAGE_UNREAD]
        if row is None or row.properties[LINEAGE_UNREAD] != since:
            return False
        if told.is_away and now - datetime.fromisoformat(since) < _GIVES_UP:
            self._away[row.table_id] = now + _PAUSE
            return False
        return True

    def _told(self, held: Rows[LineageRow], ended: EndedLogs, row: TableRow) -> _GoneLog:
        """What a log tells."""

        def read() -> Sequence[LineageRow] | None:
            return unswept_rows(
                reader_of(self.readers, row.format),
                row,
                {},  # what is on record does not tell from where
                self.harvest,
                held=held,
                ended=ended,
                at=self.clock.now(),
                swept=None,
            )

        try:
            rows = isolated(read)
        except UnavailableError as error:
            return _GoneLog(row=row, rows=None, because=str(error), is_away=True)
        except LakewardenError as error:
            return _GoneLog(row=row, rows=None, because=str(error))
        if isinstance(rows, Unforeseen):
            return _GoneLog(row=row, rows=None, because=rows.problem)
        return _GoneLog(row=row, rows=rows, because=f"Its log is not at {row.location} any more.")

    def _write(self, found: Sequence[_GoneLog], fence: Fence) -> None:
        """Lineage before the rows that say that it was read: killed in between, it is read once more."""
        for one in found:
            if one.rows is None:
                get_log("cycle").warning(
                    "its last lineage is not known", table=one.row.name, because=one.because
                )
        because = f"lineage of {count_of(len(found), 'table')} read again"
        rows = [row for one in found for row in one.rows or ()]
        if rows:
            self.cache.wrote_lineage(rows, self.store.append(LINEAGE, rows, fence=fence, because=because))

        def noted(tables: Rows[TableRow]) -> Iterator[TableRow]:
            for one in found:
                now = tables.get(one.row.table_id)
                since = one.row.properties[LINEAGE_UNREAD]
                if now is not None and now.properties.get(LINEAGE_UNREAD) == since:
                    yield with_lineage_given_up(now) if one.rows is None else with_lineage_read(now)

        if found:
            self.cache.wrote_tables(self.store.edit(TABLES, noted, fence=fence, because=because))
