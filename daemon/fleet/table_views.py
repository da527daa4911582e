"""The input of planning for one table: a sweep among all others (`fleet_cache`) or a command alone (`one_table`)."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final

from lakewarden.catalog.formats.files_elsewhere import is_reach_known
from lakewarden.catalog.model.rollbacks import RollbackLock, Undone
from lakewarden.catalog.model.rows import (
    GONE,
    Action,
    HealthRow,
    RowKind,
    Severity,
    TableRow,
)
from lakewarden.catalog.policy.original_properties import is_looked_after
from lakewarden.catalog.state.port import Run
from lakewarden.jobs.actions.world import Past, Standing, TableView
from lakewarden.jobs.engines.registry import lacking, unable

__all__ = ["RUNS_WINDOW", "is_planned_for", "is_unlooked", "view_of"]

RUNS_WINDOW: Final = timedelta(days=60)
"""Runs older than this decide nothing any more: no interval in the rules is longer."""
_HIDES: Final = ("exists", "judged")
"""Checks whose errors mean that a look did not see the log."""


def view_of(
    standing: Standing,
    *,
    health: HealthRow | None,
    past: Mapping[Action, Past],
    unfinished: Run | None,
    reverted: Iterable[Undone],
    no_spark: Callable[[str], str | None],
) -> TableView:
    """One table as planning sees it. Of `reverted` versions, those that were left as they are were not taken back."""
    row = standing.governed.row
    return TableView(
        governed=standing.governed,
        rollback=standing.rollback,
        health=health,
        past=past,
        unfinished=unfinished,
        taken_back=tuple((one.first, one.last) for one in reverted if not one.left),
        unable=unable(row.format),
        lacking=lacking(row.format),
        no_spark=no_spark(row.location or ""),
    )


def is_planned_for(row: TableRow, rollback: RollbackLock | None) -> bool:
    """Whether there is anything to plan for a row's table. One that is gone stands for a rollback that was begun as
    long as that is not over: the rollback's other tables are waiting."""
    leads = row.kind is RowKind.TABLE and rollback is not None and rollback.leads
    return leads or is_looked_after(row)


def is_unlooked(row: TableRow, health: HealthRow | None) -> bool:
    """Whether the next sweep finds out where the table's files lie. One that is gone, or cannot be judged, it cannot
    look at: a run that has to know finds out itself, or refuses."""
    if is_reach_known(row) or row.state in GONE:
        return False
    found = () if health is None else health.findings
    return not any(one.check in _HIDES and one.severity is Severity.ERROR for one in found)
