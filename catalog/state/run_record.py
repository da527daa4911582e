"""What of a finished run goes on record in `lakewarden.runs`. Pure."""

from datetime import datetime

from lakewarden.catalog.model.rows import Outcome, RunRow
from lakewarden.catalog.state.port import Result, Run

__all__ = ["run_row"]


def run_row(run: Run, *, now: datetime) -> RunRow:
    """The row of a finished run."""
    request, result = (
        run.request,
        run.result or Result(outcome=Outcome.ABANDONED, message="It left no result."),
    )
    return RunRow(
        run_id=request.run_id,
        table_id=request.table_id,
        name=request.name,
        action=request.action,
        because=request.because,
        requires_version=request.requires_version,
        committed_version=result.committed_version,
        outcome=result.outcome,
        error_class=result.error_class,
        message=result.message,
        hint=result.hint,
        attempt=request.attempt,
        predicted_files=request.predicted_files,
        predicted_bytes=request.predicted_bytes,
        predicted_seconds=request.predicted_seconds,
        actual_files=result.actual_files,
        actual_bytes=result.actual_bytes,
        actual_seconds=result.actual_seconds,
        payload=request.payload,
        details=result.details,
        worker=run.worker,
        queued_at=run.queued_at,
        started_at=run.started_at,
        finished_at=run.finished_at or now,
    )
