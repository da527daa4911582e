"""What the daemon keeps in mind between sweeps: rows of the system tables, read again only when their version moved.

Nothing here is truth: a daemon without memory reads it all again. Our own commits are folded in as they are made, so a
fleet that does not change costs one look at each system table's log per sweep.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.lineage.edges import NOT_KNOWN, NOTHING
from lakewarden.catalog.lineage.inherited_retention import LongerPromise, ids_by_place, longer_promises
from lakewarden.catalog.lineage.restores import RESTORE_OPERATIONS, restores_of
from lakewarden.catalog.lineage.unrecorded import Recorded, recorded_by_table, recorded_upto
from lakewarden.catalog.model.arrow_columns import distinct_pairs, in_order
from lakewarden.catalog.model.left_by_users import is_watched
from lakewarden.catalog.model.rollbacks import RollbackLock, rollback_locks, rollbacks_of
from lakewarden.catalog.model.rows import (
    GONE,
    Action,
    HealthRow,
    LineageRow,
    PolicySettings,
    RollbackRow,
    RowKind,
    RunRow,
    SchemaRow,
    Source,
    TableRow,
)
from lakewarden.catalog.policy.effective import DownstreamPromise, EffectivePolicy
from lakewarden.catalog.policy.original_properties import awaits_lineage, is_leaving, is_looked_after
from lakewarden.catalog.policy.scopes import Governed, govern, scope_names, scopes_by_name
from lakewarden.catalog.state.port import Run
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import (
    HEALTH,
    LINEAGE,
    ROLLBACKS,
    RUNS,
    SCHEMAS,
    TABLES,
    At,
    Committed,
    R,
    Rows,
    SystemStore,
    SystemTable,
)
from lakewarden.daemon.fleet.reverted_ranges import RevertedRanges
from lakewarden.daemon.fleet.table_views import RUNS_WINDOW, is_planned_for, is_unlooked, view_of
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.actions.world import Past, Standing, World
from lakewarden.jobs.planning.run_history import with_run

__all__ = ["FleetCache"]

_RUN_COLUMNS: Final = (
    "run_id", "table_id", "name", "action", "because", "requires_version", "outcome", "error_class",
    "message", "predicted_bytes", "payload", "queued_at", "started_at", "finished_at",
)  # fmt: skip
_LINEAGE_COLUMNS: Final = (
    "output_id", "output_version", "output_format_id", "input_id", "confidence", "operation",
)  # fmt: skip
_BATCH: Final = 5_000


class FleetCache:
    """Tables under their scopes, their health, what their runs came to, and which have a schema on record;
    `reverted_ranges` is what was taken back of them."""

    def __init__(self, store: SystemStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._rows: dict[str, TableRow] = {}
        self._governed: dict[str, Governed] = {}
        self._health: dict[str, HealthRow] = {}
        self._past: dict[str, Mapping[Action, Past]] = {}
        self._with_schema: set[str] = set()
        self._recorded: dict[str, dict[str | None, int]] = {}
        self._derivations: set[tuple[str, str]] = set()
        self._held: Mapping[str, LongerPromise] = {}
        self._promises_stale = False
        self._downstream: defaultdict[str, set[str]] = defaultdict(set)
        self._locks: Mapping[str, RollbackLock] = {}
        self.reverted_ranges = RevertedRanges()
        self._versions: dict[str, At] = {}
        self._by_name: dict[str, str] = {}
        self._by_location: dict[str, str] = {}
        self._locations: tuple[str, ...] = ()
        self._policies: dict[tuple[Source, PolicySettings, tuple[str, ...]], EffectivePolicy] = {}

    def refresh(self) -> None:
        """Read again what others have written. Raises `UnavailableError` when the storage does not answer; what is
        known of that table stays, and the next call reads it again."""
        self._read(TABLES, self._take_tables)
        self._read(HEALTH, self._take_health)
        self._read(SCHEMAS, self._take_schemas)
        self._read(LINEAGE, self._take_lineage)
        self._read(ROLLBACKS, self._take_rollbacks)
        self.reverted_ranges.reconcile(self._rows, self._derivations)
        self._read(RUNS, self._take_runs)
        self._hold_for_downstream()

    def governed(self) -> Mapping[str, Governed]:
        """Every managed table that is not gone, by `table_id`, under its scopes."""
        return self._governed

    def left(self) -> tuple[TableRow, ...]:
        """The rows of tables that their users dropped not long ago."""
        now = self._clock.now()
        return tuple(row for row in self._rows.values() if is_watched(row, now))

    def gone_unread(self) -> tuple[TableRow, ...]:
        """The rows of tables that are gone, and of whose lineage something may be lost that their logs tell."""
        return tuple(row for row in self._rows.values() if row.state in GONE and awaits_lineage(row))

    def row(self, table_id: str) -> TableRow | None:
        """One row of `lakewarden.tables`, gone ones and scopes included."""
        return self._rows.get(table_id)

    def health(self, table_id: str) -> HealthRow | None:
        """The last health on record."""
        return self._health.get(table_id)

    def healths(self) -> Iterable[HealthRow]:
        """All health on record."""
        return self._health.values()

    def has_schema(self, table_id: str) -> bool:
        """Whether `lakewarden.schemas` knows any version of the table."""
        return table_id in self._with_schema

    def lineage_of(self, table_id: str) -> Recorded:
        """What `lakewarden.lineage` has rows for of the table, by UUID."""
        return self._recorded.get(table_id, {})

    def lineage_upto(self, table_id: str) -> int | None:
        """The newest version of the table, as it is known now, whose commit `lakewarden.lineage` has rows for."""
        row = self._rows.get(table_id)
        last = row.format_ids[-1] if row is not None and row.format_ids else None
        return recorded_upto(self.lineage_of(table_id), last)

    def find(self, subject: str) -> str | None:
        """The `table_id` of a live table called so, or at that canonical location."""
        return self._by_name.get(subject) or self._by_location.get(subject)

    def row_at(self, location: str) -> TableRow | None:
        """The row of the live table at a canonical location."""
        table_id = self.find(location)
        return None if table_id is None else self.row(table_id)

    def rollback_of(self, table_id: str) -> RollbackLock | None:
        """The rollback that holds a table, if one does."""
        return self._locks.get(table_id)

    def downstream(self) -> Mapping[str, AbstractSet[str]]:
        """By `table_id`, the tables that read it, or declare to depend on it."""
        return self._downstream

    def locations(self) -> tuple[str, ...]:
        """Locations of all managed tables, dropped ones included, sorted: nobody may vacuum across them."""
        return self._locations

    def wrote_tables(self, done: Committed[TableRow]) -> None:
        """Fold in our own edit of `lakewarden.tables`."""
        if not done.rows or self._skipped(TABLES.name, done.version):
            return
        self._take(done.rows)
        self._hold_for_downstream()

    def wrote_health(self, done: Committed[HealthRow]) -> None:
        """Fold in our own edit of `lakewarden.health`."""
        if done.rows and not self._skipped(HEALTH.name, done.version):
            self._health.update({row.table_id: row for row in done.rows})
            self.reverted_ranges.take_left(done.rows)
            self.reverted_ranges.reconcile(self._rows, self._derivations)

    def recorded(self, runs: Iterable[RunRow], version: int) -> None:
        """Fold in runs that we have just appended to `lakewarden.runs`."""
        if not self._skipped(RUNS.name, version):
            self.remember_runs(runs)

    def wrote_schemas(self, table_ids: Iterable[str], version: int) -> None:
        """Fold in schema versions that we have just appended."""
        if not self._skipped(SCHEMAS.name, version):
            self._with_schema.update(table_ids)

    def wrote_lineage(self, rows: Iterable[LineageRow], version: int) -> None:
        """Fold in lineage that we have just appended, in the order of versions."""
        kept = tuple(rows)
        if not self._skipped(LINEAGE.name, version):
            for row in kept:
                upto = self._recorded.setdefault(row.output_id, {})
                upto[row.output_format_id] = max(row.output_version, upto.get(row.output_format_id, -1))
                self._derive(row.input_id, row.output_id)
            self.reverted_ranges.add_restores(restores_of(kept))
            self.reverted_ranges.reconcile(self._rows, self._derivations)
            self._hold_for_downstream()

    def learned(self, rows: Iterable[LineageRow], version: int) -> None:
        """Fold in what has turned out about versions that are on record already."""
        if not self._skipped(LINEAGE.name, version):
            for row in rows:
                self._derive(row.input_id, row.output_id)
            self._hold_for_downstream()

    def remember_runs(self, runs: Iterable[RunRow]) -> None:
        """Fold finished runs into what is known of each table's past."""
        for run in runs:
            self._past[run.table_id] = with_run(self._past.get(run.table_id, {}), run)

    def world(
        self,
        unfinished: Iterable[Run],
        budget: Budget,
        *,
        has_metastore: bool,
        no_spark: Callable[[str], str | None] = lambda location: None,
    ) -> World:
        """What the planner sees. `no_spark` says why Spark may not work on a table at a location."""
        busy = {run.request.table_id: run for run in unfinished}
        views = tuple(
            view_of(
                Standing(governed=one, rollback=self._locks.get(table_id)),
                health=self._health.get(table_id),
                past=self._past.get(table_id, {}),
                unfinished=busy.get(table_id),
                reverted=self.reverted_ranges.ranges.get(table_id, ()),
                no_spark=no_spark,
            )
            for table_id, one in chain(self._governed.items(), self._gone_leads())
        )
        return World(
            tables=views,
            locations=self.locations(),
            unfinished=len(busy),
            budget=budget,
            has_metastore=has_metastore,
            unlooked=tuple(
                sorted(view.name for view in views if is_unlooked(view.governed.row, view.health))
            ),
            unread=tuple(sorted(row.name for row in self._rows.values() if awaits_lineage(row))),
        )

    def _gone_leads(self) -> Iterator[tuple[str, Governed]]:
        """Tables that are gone and that rollbacks go by which are not over."""
        leads = (table_id for table_id, lock in self._locks.items() if lock.leads)
        gone = [row for row in map(self._rows.get, leads) if row and row.table_id not in self._governed]
        scopes = scopes_by_name(self._rows.values()) if gone else {}
        for row in gone:
            if is_planned_for(row, self._locks.get(row.table_id)):
                yield row.table_id, self._promised(govern(row, scopes))

    def _take_lineage(self, lineage: Rows[LineageRow]) -> None:
        rows = lineage.arrow(_LINEAGE_COLUMNS)
        kinds = set(pc.unique(rows["operation"]).to_pylist())
        restores = [lineage.find(operation=one) for one in RESTORE_OPERATIONS if one in kinds]
        self._recorded = recorded_by_table(rows)
        self.reverted_ranges.take_restores(restores_of(chain.from_iterable(restores)))
        self._derivations.clear()
        for source, target in distinct_pairs(rows["input_id"], rows["output_id"]):
            self._derive(source, target)

    def _derive(self, source: str, target: str) -> None:
        if source not in (target, NOTHING, NOT_KNOWN) and (source, target) not in self._derivations:
            self._derivations.add((source, target))
            self.reverted_ranges.derived(source, target)
            self._promises_stale = True

    def _hold_for_downstream(self) -> None:
        """Take in which tables are derived from which; sources keep what the promises of derived tables need. Costs
        nothing while no table or derivation changed."""
        if not self._promises_stale:
            return
        self._promises_stale = False
        own = {
            table_id: one.policy.settings.rollback_promise_seconds or 0
            for table_id, one in self._governed.items()
        }
        declared = {
            (one.upstream, table_id) for table_id, row in self._rows.items() for one in row.dependencies
        }
        by_place = ids_by_place((row.location, row.table_id, row.state) for row in self._rows.values())
        pairs = {(by_place.get(source, source), target) for source, target in self._derivations | declared}
        self._downstream = defaultdict(set)
        for source, target in pairs:
            self._downstream[source].add(target)
        before, self._held = self._held, longer_promises(own, pairs)
        for table_id in {*before, *self._held} & self._governed.keys():
            self._governed[table_id] = self._promised(self._governed[table_id])

    def _promised(self, governed: Governed) -> Governed:
        """The same with what derived tables make it keep."""
        promise, downstream = self._held.get(governed.row.table_id), None
        if promise is not None:
            name = self._rows[promise.table_id].name
            downstream = DownstreamPromise(seconds=promise.seconds, name=name)
        return replace(governed, policy=replace(governed.policy, downstream=downstream))

    def _read(self, table: SystemTable[R], take: Callable[[Rows[R]], None]) -> None:
        """Let `take` have the rows where they have moved. It reads all that it needs before it forgets anything."""
        rows = self._store.rows(table)
        if self._versions.get(table.name) != rows.at:
            take(rows)
            self._versions[table.name] = rows.at  # not sooner: the reading may fail

    def _take_tables(self, tables: Rows[TableRow]) -> None:
        rows = tables.all()
        for kept in (self._rows, self._governed, self._by_name, self._by_location, self._policies):
            kept.clear()
        self._take(rows)

    def _take_health(self, health: Rows[HealthRow]) -> None:
        self._health = {row.table_id: row for row in health.all()}
        self.reverted_ranges.take_left(self._health.values())

    def _take_schemas(self, schemas: Rows[SchemaRow]) -> None:
        self._with_schema = set(schemas.arrow(["table_id"]).column(0).to_pylist())

    def _take_rollbacks(self, rollbacks: Rows[RollbackRow]) -> None:
        journal = rollbacks_of(rollbacks.all())
        self._locks = rollback_locks(journal)
        self.reverted_ranges.take_rollbacks(journal)

    def _take_runs(self, runs: Rows[RunRow]) -> None:
        recent = runs.arrow(_RUN_COLUMNS)
        self._past.clear()
        self.remember_runs(self._recent_runs(recent))

    def _skipped(self, table: str, version: int) -> bool:
        """Whether somebody else committed between what we know and our own commit: then `refresh` reads it all."""
        generation, known = self._versions.get(table, (0, -2))
        if version == known + 1:
            self._versions[table] = generation, version
            return False
        return version != known

    def _take(self, rows: Iterable[TableRow]) -> None:
        """Govern rows that are new or changed; all of them when a scope is among them."""
        changed = list(rows)
        self._promises_stale = self._promises_stale or bool(changed)
        self._rows.update({row.table_id: row for row in changed})
        if any(row.kind is RowKind.SCOPE for row in changed):
            changed = list(self._rows.values())
        scopes = scopes_by_name(self._rows.values())
        for row in changed:
            if row.kind is RowKind.TABLE:
                self._place(row, scopes)
        self._locations = tuple(
            sorted(row.location for row in self._rows.values() if row.location is not None)
        )

    def _place(self, row: TableRow, scopes: Mapping[str, TableRow]) -> None:
        before = self._governed.pop(row.table_id, None)
        if before is not None:
            for known, key in (
                (self._by_name, before.row.name),
                (self._by_location, before.row.location or ""),
            ):
                if known.get(key) == row.table_id:  # else it is another table's by now
                    del known[key]
        if not is_looked_after(row):
            return
        governed = govern(row, scopes)
        # Most tables of a namespace share one merged policy: keep it once.
        shared = self._policies.setdefault((row.source, row.policy, scope_names(row.name)), governed.policy)
        if shared.settings == governed.policy.settings:
            governed = replace(governed, policy=shared)
        self._governed[row.table_id] = governed
        if is_leaving(row):
            return  # its name and place may be another table's by now
        self._by_name[row.name] = row.table_id
        if row.location is not None:
            self._by_location[row.location] = row.table_id

    def _recent_runs(self, table: pa.Table) -> Iterator[RunRow]:
        since = self._clock.now() - RUNS_WINDOW
        recent = in_order(table.filter(pc.greater_equal(table["finished_at"], since)), "finished_at")
        for start in range(0, recent.num_rows, _BATCH):
            yield from codec(RUNS).decode(recent.slice(start, _BATCH))
