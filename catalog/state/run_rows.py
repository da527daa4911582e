"""Runs as rows of the operational database and back. Column names are the values' field names."""

from dataclasses import fields
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row

from lakewarden.catalog.clock import from_millis, to_millis
from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.state.models import now_ms
from lakewarden.catalog.state.port import Result, Run, RunRequest, RunState

__all__ = ["anew", "ended", "from_row", "to_columns"]

_REQUEST: Final = tuple(field.name for field in fields(RunRequest))
_RESULT: Final = tuple(field.name for field in fields(Result))


def to_columns(request: RunRequest, state: RunState) -> dict[str, Any]:
    """All columns of a run that nobody has asked to cancel, but for its moments and its worker."""
    columns = {name: getattr(request, name) for name in _REQUEST}
    columns["action"] = request.action.value
    columns["not_before"] = None if request.not_before is None else to_millis(request.not_before)
    return columns | {"state": state.value, "cancel_requested": False}


def anew(run: Run, worker: str, state: RunState) -> dict[str, Any]:
    """All columns of a run that was under way when its database was lost."""
    return to_columns(run.request, state) | {
        "worker": worker,
        "queued_at": to_millis(run.queued_at),
        "started_at": now_ms() if run.started_at is None else to_millis(run.started_at),
    }


def ended(result: Result, at: datetime | None = None) -> dict[str, Any]:
    """The columns that change when a run is finished: by the database's clock now, if not at a moment long gone."""
    columns = {name: getattr(result, name) for name in _RESULT}
    return columns | {
        "outcome": result.outcome.value,
        "state": RunState.FINISHED.value,
        "finished_at": now_ms() if at is None else to_millis(at),
        "lease_until": None,
    }


def from_row(row: Row[Any]) -> Run:
    """A row of `lakewarden_run` as a value."""
    request = {name: getattr(row, name) for name in _REQUEST}
    request |= {"action": Action(row.action), "not_before": _moment(row.not_before)}
    result = None
    if row.outcome is not None:
        told = {name: getattr(row, name) for name in _RESULT}
        result = Result(**(told | {"outcome": Outcome(row.outcome)}))
    return Run(
        request=RunRequest(**request),
        state=RunState(row.state),
        queued_at=from_millis(row.queued_at),
        worker=row.worker,
        lease_until=_moment(row.lease_until),
        started_at=_moment(row.started_at),
        finished_at=_moment(row.finished_at),
        result=result,
        cancel_requested=row.cancel_requested,
    )


def _moment(millis: int | None) -> datetime | None:
    return None if millis is None else from_millis(millis)
