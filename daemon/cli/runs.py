"""How runs are listed: those in the queue under the column names of those on record."""

import json
from typing import Any, Final

from lakewarden.catalog.state.port import Run, RunState
from lakewarden.catalog.state.run_record import run_row
from lakewarden.daemon.cli.output import plain
from lakewarden.daemon.installation.services import Services

__all__ = ["RUN_COLUMNS", "as_facts", "as_row", "newest_line"]

RUN_COLUMNS: Final = ("finished_at", "name", "action", "outcome", "actual_seconds", "because", "message")


def as_row(run: Run) -> dict[str, Any]:
    """An unfinished run under the column names of `lakewarden.runs`; `outcome` is the state it is in."""
    names = ("run_id", "table_id", "name", "action", "because", "requires_version", "attempt")
    request = {name: plain(getattr(run.request, name)) for name in names}
    return {
        **request,
        "outcome": run.state.value,
        "worker": run.worker,
        "started_at": plain(run.started_at),
        "queued_at": plain(run.queued_at),
    }


def newest_line(services: Services, run: Run) -> str | None:
    """What was said last during a run that somebody has in hand: how far it is."""
    lines = services.run_log.read(run.request.run_id) if run.worker is not None else ()
    return lines[-1].message if lines else None


def as_facts(services: Services, run: Run) -> dict[str, Any]:
    """A run in the queue, fact by fact, as people look at it: what is asked for beside who has it and how far it is."""
    if run.state is RunState.FINISHED:
        recorded: dict[str, Any] = plain(run_row(run, now=services.clock.now()))
        return recorded
    asked = plain(run.request)
    rest = ("location", "runtime", "not_before", "predicted_files", "predicted_bytes", "predicted_seconds")
    return {
        **as_row(run),
        "progress": newest_line(services, run),
        "lease_until": plain(run.lease_until),
        "cancel_requested": run.cancel_requested,
        **{name: asked[name] for name in rest},
        "payload": {
            key: value for key, value in json.loads(run.request.payload).items() if value is not None
        },
    }
