"""Runs, newest first: those in the queue, and those on record or about to be."""

from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from lakewarden.catalog.errors import NotFoundError
from lakewarden.catalog.model.identity import require_beginning
from lakewarden.catalog.model.rows import RunRow
from lakewarden.catalog.state.port import Run
from lakewarden.catalog.state.run_record import run_row
from lakewarden.catalog.system.port import RUNS
from lakewarden.daemon.installation.services import Services

__all__ = ["Runs", "newest_on_record", "run_of", "runs_now"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """The runs that there are."""

    unfinished: tuple[Run, ...]
    """As the queue has them."""
    finished: tuple[RunRow, ...] = ()
    """Newest first."""


def runs_now(services: Services, table_id: str | None = None, *, finished: bool = True) -> Runs:
    """Of one table, or of all; without `finished` only what is queued or running."""
    unfinished = tuple(run for run in services.queue.unfinished() if table_id in (None, run.request.table_id))
    if not finished:
        return Runs(unfinished=unfinished)
    recorded, now = services.store.rows(RUNS), services.clock.now()
    found = recorded.find(table_id=table_id) if table_id else recorded.all()
    known = {run.run_id for run in found}
    waiting = [run_row(run, now=now) for run in services.queue.finished(1000)]
    new = [run for run in waiting if run.run_id not in known and table_id in (None, run.table_id)]
    ordered = sorted([*found, *new], key=lambda run: run.finished_at, reverse=True)
    return Runs(unfinished=unfinished, finished=tuple(ordered))


def newest_on_record(services: Services, count: int) -> list[dict[str, Any]]:
    """The runs on record that finished last, newest first, without making an object of the others."""
    recorded = services.store.rows(RUNS).arrow()
    newest = pc.select_k_unstable(recorded, k=count, sort_keys=[("finished_at", "descending")])
    rows: list[dict[str, Any]] = recorded.take(newest).to_pylist()
    return rows


def run_of(services: Services, beginning: str) -> Run | RunRow:
    """The run whose id begins so: as the queue has it, else as it is on record. Raises `UsageError` if that is empty,
    `NotFoundError` for none and for several."""
    require_beginning(beginning, "run")
    found: dict[str, Run | RunRow] = {
        row.run_id: row for row in services.store.rows(RUNS).all() if row.run_id.startswith(beginning)
    }
    waiting = [*services.queue.unfinished(), *services.queue.finished(1000)]
    found |= {run.request.run_id: run for run in waiting if run.request.run_id.startswith(beginning)}
    if beginning in found:
        return found[beginning]
    if len(found) != 1:
        count = f"{len(found)} runs begin" if found else "No run begins"
        raise NotFoundError(f"{count} with {beginning}.", hint="`lakewarden jobs list` shows them.")
    return next(iter(found.values()))
