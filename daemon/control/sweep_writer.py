"""What a sweep found, written down: at most one commit per system table, in an order that survives a crash.

A row's state, a schema version and lineage come before the health that says "seen": after a crash in between,
the next sweep looks again and writes what is missing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.lineage.rewritten_logs import RewrittenLog, told_apart
from lakewarden.catalog.model.rows import (
    Action,
    Finding,
    HealthRow,
    LineageRow,
    Outcome,
    RunRow,
    TableRow,
    TableState,
)
from lakewarden.catalog.model.unread_lineage import is_lineage_unread, with_lineage_read
from lakewarden.catalog.registry.service import governed_in
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import HEALTH, LINEAGE, SCHEMAS, TABLES, Fence, Rows, SystemStore
from lakewarden.catalog.units import count_of
from lakewarden.catalog.validation.reverted_reads import READS_REVERTED
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.look import TableLook, resolved_row
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.telemetry.webhook import Event, EventKind, Notifier

__all__ = ["SweepWriter"]

_TOLD: Final = {TableState.QUARANTINED: EventKind.QUARANTINED, TableState.DROPPED: EventKind.DROPPED}
"""The states that a sweep puts tables into, and that people are told of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepWriter:
    """Writes looks. Every edit is a compare-and-set on the rows as they are by then."""

    store: SystemStore
    cache: FleetCache
    notifier: Notifier
    clock: Clock

    def standing(self, looks: Sequence[TableLook]) -> tuple[TableLook, ...]:
        """The looks that are still of their rows, as these are stored now."""
        rows = _stored(self.store.rows(TABLES), looks) if looks else {}
        return tuple(look for look in looks if look.is_of(rows.get(look.table_id)))

    def write(self, looks: Sequence[TableLook], recorded: Iterable[RunRow], fence: Fence) -> int:
        """Write what changed. Returns the number of tables whose health did."""
        because = f"sweep: {count_of(len(looks), 'table')} looked at"
        self._write_rows(looks, fence, because)
        schemas = [look.schema for look in looks if look.schema is not None]
        if schemas:
            version = self.store.append(SCHEMAS, schemas, fence=fence, because=because)
            self.cache.wrote_schemas((row.table_id for row in schemas), version)
        logs = [look.rewritten for look in looks if look.rewritten is not None]
        for log in logs:
            self._tell_apart(log, fence, because)
        lineage = [row for look in looks for row in told_apart(look.lineage, logs, look.made_at)]
        if lineage:
            version = self.store.append(LINEAGE, lineage, fence=fence, because=because)
            self.cache.wrote_lineage(lineage, version)
        self._note_read(looks, fence, because)
        health = list(self._health({look.table_id: look for look in looks}, recorded))
        late = list(_late(looks, self.cache))
        if health:
            done = self.store.edit(HEALTH, lambda _: health, fence=fence, because=because)
            self.cache.wrote_health(done)
        for look, finding in late:
            self._tell_late(look, finding)
        return len(health)

    def _note_read(self, looks: Sequence[TableLook], fence: Fence, because: str) -> None:
        """What tables were made from is on record again. After lineage: a crash leaves it to the next look."""
        read = {look.table_id for look in looks if isinstance(look.seen, Observation)}
        held = ((table_id, self.cache.row(table_id)) for table_id in read)
        ids = {table_id for table_id, row in held if row is not None and is_lineage_unread(row.properties)}
        if not ids:
            return

        def noted(rows: Rows[TableRow]) -> Iterator[TableRow]:
            return (with_lineage_read(row) for row in rows.all() if row.table_id in ids)

        self.cache.wrote_tables(self.store.edit(TABLES, noted, fence=fence, because=because))

    def _tell_apart(self, log: RewrittenLog, fence: Fence, because: str) -> None:
        """Say of the lineage on record what is of a log that is no more. The cache will read all lineage anew."""

        def touched(rows: Rows[LineageRow]) -> Iterator[LineageRow]:
            yield from rows.find(output_id=log.table_id)
            for read in (log.table_id, log.location):
                yield from (one for one in rows.find(input_id=read) if one.output_id != log.table_id)

        self.store.edit(
            LINEAGE,
            lambda rows: log.moved(touched(rows)),
            delete=lambda rows: filter(log.is_meant, touched(rows)),
            fence=fence,
            because=because,
        )

    def prove(self, look: TableLook) -> None:
        """Raise whatever writing this look would raise because of what is in it; nothing is written."""
        row = self.cache.row(look.table_id)
        if row is not None:
            codec(TABLES).encode([resolved_row(row, look, self.clock.now())])
        codec(SCHEMAS).encode([] if look.schema is None else [look.schema])
        codec(LINEAGE).encode(look.lineage)
        codec(HEALTH).encode([] if look.health is None else [look.health])

    def _write_rows(self, looks: Sequence[TableLook], fence: Fence, because: str) -> None:
        now = self.clock.now()
        before = {look.table_id: self.cache.row(look.table_id) for look in looks}
        changing = [look for look in looks if _changes(before[look.table_id], look, now)]
        if not changing:
            return

        def resolve(rows: Rows[TableRow]) -> Iterable[TableRow]:
            stored = _stored(rows, changing)
            held = ((stored.get(look.table_id), look) for look in changing)
            return [
                resolved_row(row, _allowed(rows, row, look), now)
                for row, look in held
                if row is not None and look.is_of(row)
            ]

        done = self.store.edit(TABLES, resolve, fence=fence, because=because)
        self.cache.wrote_tables(done)
        for row in done.rows:
            self._tell(before.get(row.table_id), row)

    def _health(self, looks: Mapping[str, TableLook], recorded: Iterable[RunRow]) -> Iterator[HealthRow]:
        """Changed health. When statistics were refreshed no log tells: that comes from the recorded runs."""
        refreshed = {
            row.table_id: row.finished_at
            for row in recorded
            if row.action is Action.STATISTICS and row.outcome is Outcome.SUCCEEDED
        }
        for table_id in {**looks, **refreshed}:
            look = looks.get(table_id)
            health = look.health if look is not None else None
            if table_id in refreshed:
                known = health or self.cache.health(table_id)
                health = replace(known, last_statistics_at=refreshed[table_id]) if known is not None else None
            if health is not None:
                yield health

    def _tell_late(self, look: TableLook, finding: Finding) -> None:
        """Say so when a table holds what was made from versions that were taken back."""
        row = self.cache.row(look.table_id)
        if row is None:
            return
        get_log("sweep").warning("reads what was undone", table=row.name, because=finding.message)
        self._announce(EventKind.READS_REVERTED, row, f"{row.name}: {finding.message}", look.at)

    def _tell(self, before: TableRow | None, row: TableRow) -> None:
        """Say so when a table has just been quarantined, or counts as dropped by its users from now on."""
        kind = _TOLD.get(row.state)
        if kind is None or (before is not None and before.state is row.state):
            return
        if kind is EventKind.QUARANTINED:
            get_log("sweep").warning("quarantined", table=row.name, because=row.state_reason)
        else:
            get_log("sweep").warning("dropped by its users", table=row.name, because=row.state_reason)
        message = f"{row.name} is {kind}: {row.state_reason}"
        self._announce(kind, row, message, row.updated_at)

    def _announce(self, kind: EventKind, row: TableRow, message: str, at: datetime) -> None:
        self.notifier.tell(
            Event(kind=kind, table_id=row.table_id, name=row.name, owner=row.owner, message=message, at=at)
        )


def _allowed(rows: Rows[TableRow], row: TableRow, look: TableLook) -> TableLook:
    """A hold or a pause keeps a table, also one that was placed on its namespace since it was looked at."""
    if look.dropped is None:
        return look
    governed = governed_in(rows, row)
    return look if governed.hold is None and governed.paused is None else replace(look, dropped=None)


def _late(looks: Iterable[TableLook], cache: FleetCache) -> Iterator[tuple[TableLook, Finding]]:
    """Findings of late taint that say something new, on tables that no rollback is at work on."""
    for look in looks:
        if cache.rollback_of(look.table_id) is not None:
            continue
        before = cache.health(look.table_id)
        known = {one.message for one in before.findings} if before is not None else set()
        for finding in look.findings:
            if finding.check == READS_REVERTED and finding.message not in known:
                yield look, finding


def _changes(row: TableRow | None, look: TableLook, now: datetime) -> bool:
    return row is not None and resolved_row(row, look, now) != row


def _stored(rows: Rows[TableRow], looks: Iterable[TableLook]) -> Mapping[str, TableRow]:
    """The rows of the tables that were looked at, by `table_id`: asked for at once."""
    return {row.table_id: row for row in rows.stored((look.table_id,) for look in looks).values()}
