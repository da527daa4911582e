"""How runs are listed: those in the queue under the column names of those on record."""

from typing import Any, Final

from lakewarden.catalog.state.port import Run
from lakewarden.daemon.cli.output import plain

__all__ = ["RUN_COLUMNS", "as_row"]

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
