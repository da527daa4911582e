"""Who ended a run that a worker had: the worker, or somebody else while it hung. Pure."""

from lakewarden.catalog.model.rows import Outcome, RunRow

__all__ = ["ended_without"]


def ended_without(worker: str, ended: RunRow) -> bool:
    """Whether a run that this worker had was ended by somebody else, who found its lease over: a worker says how long
    it took. A run that was cancelled before its worker began it tells nothing against the worker, and no more does one
    that could not be stored as it was (it has no payload)."""
    if ended.worker != worker:
        return True
    unbegun = ended.started_at is None and ended.outcome is Outcome.CANCELLED
    return ended.actual_seconds is None and ended.payload is not None and not unbegun
