"""Ending the runs that are in a rollback's way."""

from lakewarden.catalog.state.port import Queue, Run

__all__ = ["end_run"]


def end_run(queue: Queue, run: Run) -> None:
    """Ask a run to end. One whose worker is gone is ended here and now: nobody else may be there to do it."""
    queue.cancel(run.request.run_id)
    queue.requeue(
        run.request.run_id, attempt=run.request.attempt + 1
    )  # cancelled instead, if its lease is over
