"""The outcomes of a table's finished runs, folded one by one. Pure."""

from collections.abc import Mapping

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.model.rows import Action, Outcome, RunRow
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.registry import decode, spec_of
from lakewarden.jobs.actions.world import Past

__all__ = ["remember", "with_run"]

_UNDONE = (Outcome.FAILED, Outcome.ABANDONED)


def with_run(past: Mapping[Action, Past], run: RunRow) -> Mapping[Action, Past]:
    """What is known of a table after one more finished run: a new mapping, or the same where nothing is new."""
    known = remember(past.get(run.action), run)
    return past if known is None else {**past, run.action: known}


def remember(past: Past | None, run: RunRow) -> Past | None:
    """Fold one more finished run into what is known. Runs come in the order in which they finished.

    A dry run did nothing: nothing is known after it that was not before.
    """
    action = _decoded(run.payload)
    if action is not None and spec_of(action).changed_nothing(action):
        return past
    undone = run.outcome in _UNDONE
    # A run that was skipped without being started made way for another one: it says nothing about the table.
    done = run.outcome is Outcome.SUCCEEDED or (run.outcome is Outcome.SKIPPED and run.started_at is not None)
    thorough = action is not None and spec_of(action).is_thorough(action)
    base = past or Past(outcome=run.outcome, at=run.finished_at)
    return Past(
        outcome=run.outcome,
        at=run.finished_at,
        error_class=run.error_class,
        message=run.message if undone else None,
        failures=base.failures + 1 if undone else 0 if done else base.failures,
        done_at=run.finished_at if done else base.done_at,
        done_version=run.requires_version if done else base.done_version,
        left_version=_left_by(run) if done else base.left_version,
        done_bytes=run.predicted_bytes if done else base.done_bytes,
        thorough_at=run.finished_at if done and thorough else base.thorough_at,
    )


def _left_by(run: RunRow) -> int | None:
    return run.requires_version if run.committed_version is None else run.committed_version


def _decoded(payload: str | None) -> AnyAction | None:
    """None where another version of lakewarden wrote it: then nobody knows more than the run's outcome."""
    try:
        return None if payload is None else decode(payload)
    except UnreadableError:
        return None
