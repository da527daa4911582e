"""Queued runs that a command makes wrong are taken back by that very command, with its reason.

What a worker has begun is not its business: the guard finds the same out before the next step
(jobs/runs/guard.py). So this may fail, or come late, and nothing wrong is done;
without it a queue would show work that will only be refused.
"""

from collections.abc import Collection
from typing import Final

from lakewarden.catalog.errors import RevokedError, UnavailableError
from lakewarden.catalog.model.rows import Action, Outcome, RowKind, TableRow
from lakewarden.catalog.policy.scopes import is_scope, scope_names
from lakewarden.catalog.state.port import Result, RunState
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.jobs.actions.registry import SPECS
from lakewarden.jobs.actions.spec import Deletes

__all__ = ["EVERYTHING", "HELD", "PLANNED", "PURGES", "take_back_runs"]

EVERYTHING: Final = frozenset(Action)
HELD: Final = frozenset(one.action for one in SPECS.values() if one.deletes is not Deletes.NEVER)
"""What a legal hold forbids, or may."""
PURGES: Final = frozenset({Action.PURGE})
PLANNED: Final = frozenset(one.action for one in SPECS.values() if not one.asked_for)
"""What is decided by a table's policy."""


def take_back_runs(
    services: Services,
    row: TableRow,
    actions: Collection[Action],
    because: str,
    *,
    ordered: bool = True,
) -> int:
    """End the queued runs of these actions on a table, or on the tables of a scope's row. Returns how many.

    Without `ordered`, runs that a person asked for stay: they are what somebody wants now. A database that
    does not answer is no reason to fail: the guard stops what should not run.
    """
    try:
        queued = [
            run.request
            for run in services.queue.unfinished()
            if run.state is RunState.QUEUED
            and run.request.action in actions
            and (ordered or not run.request.is_ordered)
        ]
        tables = _tables(services, row) if queued else frozenset()
        taken = 0
        for request in queued:
            if request.table_id in tables:
                message = f"It was taken back before it began: {because}."
                # Whoever waits for a run that he ordered is told that it was not done.
                refused = Result(outcome=Outcome.FAILED, message=message, error_class=RevokedError.__name__)
                skipped = Result(outcome=Outcome.SKIPPED, message=message, retry=True)
                taken += services.queue.close(request.run_id, refused if request.is_ordered else skipped)
    except UnavailableError as error:
        get_log("revoke").warning("queued runs stay", because=str(error))
        return 0
    return taken


def _tables(services: Services, row: TableRow) -> frozenset[str]:
    if not is_scope(row.name):
        return frozenset({row.table_id})
    names = services.store.rows(TABLES).arrow(["table_id", "kind", "name"]).to_pylist()
    return frozenset(
        one["table_id"]
        for one in names
        if one["kind"] == RowKind.TABLE and row.name in scope_names(one["name"])
    )
