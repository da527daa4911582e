"""The daemon's cached facts about one table, read for that table alone: a command about one table does not pay for the
fleet.

The columns that speak of other tables (places, who reads whom) are read as columns; rows are made of this table's only.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from itertools import chain
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.lineage.restores import RESTORE_OPERATIONS, restores_of
from lakewarden.catalog.model.rollbacks import Rollback, Undone, rollback_locks, rollbacks_of
from lakewarden.catalog.model.rows import Action, HealthRow, TableRow
from lakewarden.catalog.policy.original_properties import awaits_lineage
from lakewarden.catalog.state.port import Run
from lakewarden.catalog.system.port import HEALTH, LINEAGE, ROLLBACKS, RUNS, TABLES, Rows, SystemStore
from lakewarden.daemon.fleet.reverted_ranges import RevertedRanges
from lakewarden.daemon.fleet.table_views import RUNS_WINDOW, is_planned_for, is_unlooked, view_of
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.actions.world import Past, Standing, TableView, World
from lakewarden.jobs.planning.run_history import with_run
from lakewarden.jobs.runs.standings import StoredStandings, ids_unread, ids_without_reach

__all__ = ["world_of"]

_FEW: Final = 50
"""So many rows are read one by one."""


def world_of(
    store: SystemStore,
    clock: Clock,
    table_id: str,
    *,
    unfinished: Iterable[Run] = (),
    budget: Budget | None = None,
    has_metastore: bool = False,
    no_spark: Callable[[str], str | None] = lambda location: None,
) -> World:
    """The planner's world with this table alone in it; with none if it is not managed. `no_spark` as in
    `FleetCache.world`. Raises `UnavailableError`."""
    busy = {run.request.table_id: run for run in unfinished}
    governed = StoredStandings(store).governed(table_id)
    views: tuple[TableView, ...] = ()
    journal = rollbacks_of(store.rows(ROLLBACKS).all())
    lock = rollback_locks(journal).get(table_id)
    if governed is not None and is_planned_for(governed.row, lock):
        health = store.rows(HEALTH).get(table_id)
        view = view_of(
            Standing(governed=governed, rollback=lock),
            health=health,
            past=_past(store, clock, table_id),
            unfinished=busy.get(table_id),
            reverted=_reverted(store, governed.row, health, journal),
            no_spark=no_spark,
        )
        views = (view,)
    rows = store.rows(TABLES)
    places = rows.arrow(["location"]).column(0).to_pylist()
    return World(
        tables=views,
        locations=tuple(sorted(place for place in places if place is not None)),
        unfinished=len(busy),
        budget=budget or Budget(),
        has_metastore=has_metastore,
        unlooked=tuple(sorted(_unlooked(store, rows))),
        unread=tuple(
            sorted(row.name for row in map(rows.get, ids_unread(rows)) if row and awaits_lineage(row))
        ),
    )


def _unlooked(store: SystemStore, rows: Rows[TableRow]) -> Iterator[str]:
    ids = ids_without_reach(rows)
    if not ids:
        return
    health = store.rows(HEALTH)
    if len(ids) <= _FEW:
        known = ((rows.get(table_id), health.get(table_id)) for table_id in ids)
    else:  # a home of an older lakewarden, before the first sweep
        healths = {one.table_id: one for one in health.all()}
        known = ((row, healths.get(row.table_id)) for row in rows.all())
    for row, seen in known:
        if row is not None and is_unlooked(row, seen):
            yield row.name


def _past(store: SystemStore, clock: Clock, table_id: str) -> Mapping[Action, Past]:
    since = clock.now() - RUNS_WINDOW
    runs = [run for run in store.rows(RUNS).find(table_id=table_id) if run.finished_at >= since]
    nothing: Mapping[Action, Past] = {}
    return reduce(with_run, sorted(runs, key=lambda one: one.finished_at), nothing)


def _reverted(
    store: SystemStore, row: TableRow, health: HealthRow | None, journal: Iterable[Rollback]
) -> tuple[Undone, ...]:
    lineage = store.rows(LINEAGE)
    commits = (lineage.find(output_id=row.table_id, operation=one) for one in RESTORE_OPERATIONS)
    reverted_ranges = RevertedRanges()
    reverted_ranges.take_rollbacks(tuple(journal))
    reverted_ranges.take_restores(restores_of(chain.from_iterable(commits)))
    reverted_ranges.take_left(() if health is None else (health,))
    reverted_ranges.reconcile({row.table_id: row}, ())
    return reverted_ranges.ranges.get(row.table_id, ())
