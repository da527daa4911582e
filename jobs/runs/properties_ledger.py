"""What executors keep of a table in its row of `lakewarden.tables`: what stood in its properties before us,
and that nothing of it is left."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from lakewarden.catalog.clock import Clock, SystemClock
from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.model.pending_purge import PURGE_DELETED
from lakewarden.catalog.model.rows import TableRow, TableState
from lakewarden.catalog.policy.original_properties import OriginalProperty, Owed, kept_of, owed_to, with_ours
from lakewarden.catalog.system.port import TABLES, Rows, SystemStore
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.jobs.runs.port import JobContext
from lakewarden.jobs.runs.properties_traced import traced
from lakewarden.jobs.runs.worker_config import WorkerConfig

__all__ = ["StoredLedger", "keep_before", "open_ledger"]


class StoredLedger:
    """`Ledger` on the system tables."""

    def __init__(self, store: SystemStore, clock: Clock | None = None) -> None:
        self._store, self._clock = store, clock or SystemClock()

    def kept(self, table_id: str) -> tuple[OriginalProperty, ...]:
        row = self._store.rows(TABLES).get(table_id)
        return () if row is None else kept_of(row)

    def owed(self, table_id: str) -> Owed | None:
        row = self._store.rows(TABLES).get(table_id)
        return None if row is None else owed_to(row)

    def remember(
        self,
        table_id: str,
        wanted: Iterable[tuple[str, str]],
        present: Mapping[str, str],
        told: Iterable[OriginalProperty] = (),
    ) -> None:
        pairs, earlier = tuple(wanted), tuple(told)

        def changed(rows: Rows[TableRow]) -> Iterable[TableRow]:
            row = rows.get(table_id)
            if row is None:
                return []
            # Not marked as changed: nothing that the table is judged by is another.
            kept = with_ours(row, pairs, present, earlier)
            return [kept] if kept != row else []

        self._store.edit(TABLES, changed, because="what stood in its properties before us")

    def awaits_purge(self, table_id: str) -> bool:
        row = self._store.rows(TABLES).get(table_id)
        return row is not None and row.state is TableState.PURGING

    def is_deleted(self, table_id: str) -> bool:
        row = self._store.rows(TABLES).get(table_id)
        return row is not None and PURGE_DELETED in row.properties

    def note_deleted(self, table_id: str) -> None:
        now = self._clock.now()
        self._store.edit(
            TABLES, lambda rows: _deleted(rows, table_id, now), because="all of its files are deleted"
        )


def _deleted(rows: Rows[TableRow], table_id: str, now: datetime) -> Iterable[TableRow]:
    row = rows.get(table_id)
    if row is None or row.state is not TableState.PURGING:
        raise ConflictError("The table does not wait to be purged any more.")
    if PURGE_DELETED in row.properties:
        return []
    return [replace(row, properties={**row.properties, PURGE_DELETED: now.isoformat()})]


def open_ledger(config: WorkerConfig) -> StoredLedger | None:
    """What a worker keeps it in; None where it was not told of system tables."""
    location = config.system_location
    if location is None:
        return None
    return StoredLedger(DeltaSystemStore(location, config.storage.at(location), actor=config.name))


def keep_before(
    ctx: JobContext, seen: Observation, wanted: Iterable[tuple[str, str]], *, made_here: bool = False
) -> None:
    """Keep what stands in a table's properties before `wanted` are set, where it is not kept already. Called before the
    commit. `made_here`: this run made the table, so that its log has no earlier commit of ours."""
    if ctx.ledger is None:
        return
    pairs = tuple(wanted)
    known = {one.name for one in ctx.ledger.kept(ctx.target.table_id)}
    names = {name for name, _ in pairs} - known
    unknown = {name: value for name, value in seen.properties.items() if name in names}
    told = traced(ctx.reader, ctx.target.location, unknown) if not made_here else ()
    ctx.ledger.remember(ctx.target.table_id, pairs, seen.properties, told)
