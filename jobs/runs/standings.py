"""The state of one table in the system tables at this moment: the guard's eyes. Reads them anew, parses only what
moved."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Final

import pyarrow.compute as pc

from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE, Look, is_reach_known, reads_from
from lakewarden.catalog.formats.heads import HEAD_COLUMNS
from lakewarden.catalog.lineage.clones import reaches
from lakewarden.catalog.lineage.inherited_retention import downstream_of, ids_by_place
from lakewarden.catalog.model.arrow_columns import distinct_pairs
from lakewarden.catalog.model.rollbacks import RollbackLock, rollback_locks, rollbacks_of
from lakewarden.catalog.model.rows import RowKind, Source, TableRow, TableState
from lakewarden.catalog.model.unread_lineage import is_lineage_unread
from lakewarden.catalog.policy.effective import DownstreamPromise
from lakewarden.catalog.policy.original_properties import awaits_lineage, is_looked_after
from lakewarden.catalog.policy.scopes import Governed, govern, scopes_by_name
from lakewarden.catalog.registry.shared_folders import other_at
from lakewarden.catalog.state.db import Database
from lakewarden.catalog.state.system_heads import DatabaseSystemHeads
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.system.port import HEALTH, LINEAGE, ROLLBACKS, TABLES, At, Rows, SystemStore
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.catalog.validation.system_history import SystemHistory
from lakewarden.jobs.actions.world import Standing
from lakewarden.jobs.runs.worker_config import WorkerConfig

__all__ = ["StoredStandings", "ids_unread", "ids_without_reach", "open_standings"]

_MOVED_FOR_SECONDS: Final = 60.0
"""A worker that deletes looks at each table once a minute, as a sweep does."""
_NEVER: Final[At] = (0, -1)
_AT_ONCE: Final = 8
"""Looks at a storage under way at the same time."""


class StoredStandings:
    """`Standings` on the system tables. Not thread-safe. `history`: what they say of a table counts only while they are
    those that the operational database last saw; None for whoever has asked that already."""

    def __init__(self, store: SystemStore, history: SystemHistory | None = None) -> None:
        self._store, self._history = store, history
        self._locked: tuple[At, Mapping[str, RollbackLock]] = (_NEVER, {})
        self._reaching: tuple[At, tuple[TableRow, ...]] = (_NEVER, ())
        self._moved: tuple[float, tuple[TableRow, ...]] = (-inf, ())
        self._unread: tuple[At, tuple[TableRow, ...]] = (_NEVER, ())
        self._pairs: tuple[tuple[At, At], frozenset[tuple[str, str]]] = ((_NEVER, _NEVER), frozenset())

    def of(self, table_id: str) -> Standing | None:
        if self._history is not None:
            self._history.require()
        governed = self.governed(table_id)
        if governed is None:
            return None
        other = other_at(self._store.rows(TABLES), governed.row)
        return Standing(
            governed=governed,
            rollback=self._locks().get(table_id),
            at_another=None if other is None else other.name,
            # Nothing of system tables is inherited through lineage.
            unread=None if governed.row.source is Source.SELF else self._unread_beside(table_id),
        )

    def governed(self, table_id: str) -> Governed | None:
        """The row under its scopes, with what derived tables make it keep. None: it has no row."""
        tables = self._store.rows(TABLES)
        row = tables.get(table_id)
        if row is None:
            return None
        scopes = scopes_by_name(tables.find(kind=RowKind.SCOPE))
        return self._with_downstream(tables, scopes, govern(row, scopes))

    def readers_of(self, location: str) -> tuple[TableRow, ...]:
        tables = self._store.rows(TABLES)
        if self._reaching[0] != tables.at:
            found = (tables.get(table_id) for table_id, reach in reaches(tables) if reach != "")
            self._reaching = (tables.at, tuple(row for row in found if row is not None))
        now = Moment(strict=True)
        return tuple(
            row for row in self._reaching[1] if not is_reach_known(row) or reads_from(row, location, now)
        )

    def moved(self, look: Look) -> tuple[TableRow, ...]:
        now = monotonic()
        if now > self._moved[0] + _MOVED_FOR_SECONDS:
            health = self._store.rows(HEALTH).arrow(HEAD_COLUMNS).to_pylist()
            seen = {one["table_id"]: (one["version"], one["head"]) for one in health}
            rows = [row for row in self._store.rows(TABLES).all() if _is_looked_at(row)]
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                found = pool.map(lambda row: look(row, *seen.get(row.table_id, (None, None))), rows)
                self._moved = (now, tuple(row for row in found if row is not None))
        return self._moved[1]

    def _unread_beside(self, table_id: str) -> str | None:
        """Another managed table of which nobody knows what it was made from."""
        tables = self._store.rows(TABLES)
        if self._unread[0] != tables.at:
            rows = (tables.get(one) for one in ids_unread(tables))
            self._unread = (tables.at, tuple(row for row in rows if row is not None and awaits_lineage(row)))
        return next((row.name for row in self._unread[1] if row.table_id != table_id), None)

    def _locks(self) -> Mapping[str, RollbackLock]:
        rows = self._store.rows(ROLLBACKS)
        if self._locked[0] != rows.at:
            self._locked = (rows.at, rollback_locks(rollbacks_of(rows.all())))
        return self._locked[1]

    def _with_downstream(
        self, tables: Rows[TableRow], scopes: Mapping[str, TableRow], governed: Governed
    ) -> Governed:
        """Longer promises of derived tables, as the planner counts them (`longer_promises`)."""
        derived = sorted(downstream_of(governed.row.table_id, self._derivations(tables)))
        rows = (tables.get(table_id) for table_id in derived)
        promises = [
            DownstreamPromise(
                seconds=govern(row, scopes).policy.settings.rollback_promise_seconds or 0, name=row.name
            )
            for row in rows
            if row is not None and is_looked_after(row)
        ]
        longest = max(promises, key=lambda promise: promise.seconds, default=None)
        own = governed.policy.settings.rollback_promise_seconds or 0
        if longest is None or longest.seconds <= own:
            return governed
        return replace(governed, policy=replace(governed.policy, downstream=longest))

    def _derivations(self, tables: Rows[TableRow]) -> Iterable[tuple[str, str]]:
        lineage = self._store.rows(LINEAGE)
        versions = (tables.at, lineage.at)
        if self._pairs[0] != versions:
            edges = lineage.arrow(["input_id", "output_id"])
            declared = tables.arrow(["table_id", "dependencies"])
            declared = declared.filter(pc.greater(pc.list_value_length(declared["dependencies"]), 0))
            rows = tables.arrow(["location", "table_id", "state"]).to_pydict()
            by_place = ids_by_place(zip(rows["location"], rows["table_id"], rows["state"], strict=True))
            pairs = distinct_pairs(edges["input_id"], edges["output_id"])
            found = {(by_place.get(source, source), target) for source, target in pairs}
            for row in declared.to_pylist():
                found.update((one["upstream"], row["table_id"]) for one in row["dependencies"])
            self._pairs = (versions, frozenset(found))
        return self._pairs[1]


def _is_looked_at(row: TableRow) -> bool:
    """Whether the row is a user's table with a log that was looked at before: others are looked at anyway."""
    if row.kind is not RowKind.TABLE or row.source is Source.SELF or row.location is None:
        return False
    return READS_ELSEWHERE in row.properties and row.state is not TableState.PURGED


def ids_without_reach(tables: Rows[TableRow]) -> tuple[str, ...]:
    """Rows that do not name the place of the table's files, even where they need not."""
    return tuple(table_id for table_id, reach in reaches(tables) if reach is None)


def ids_unread(tables: Rows[TableRow]) -> Iterator[str]:
    """Rows of tables of which something may be lost that they were made from, gone ones included."""
    found = tables.arrow(["table_id", "properties"]).to_pylist()
    return (one["table_id"] for one in found if is_lineage_unread(dict(one["properties"] or ())))


def open_standings(config: WorkerConfig, database: Database) -> StoredStandings | None:
    """What a worker reads them by; None where it was not told of system tables."""
    location = config.system_location
    if location is None:
        return None
    store = DeltaSystemStore(location, config.storage.at(location), actor=config.name)
    return StoredStandings(store, SystemHistory(store, DatabaseSystemHeads(database, location)))
