"""Holes in rollbacks, and in what one bad value may do, opened again: like `holes`, each at named seams."""

from dataclasses import replace
from typing import Any, Final

from lakewarden.jobs.rollback.plan import rollback_planner as planner
from support.adversary.holes import Hole

__all__ = ["ROLLBACK_HOLES"]

_losses = planner._losses
"""As it is in the product, whatever is open."""


def _as_the_journal_has_it(rollback: Any, *reader: Any) -> Any:
    return rollback


def _ended(self: Any, rollback: Any) -> Any:
    return rollback


def _unfenced(self: Any, row: Any, step: Any) -> Any:
    return self.done(row, step)


def _by_state(executor: Any, row: Any) -> bool:
    return bool(row.state != "compensated")


def _whatever_comes(self: Any, listed: Any) -> Any:
    return self


def _without_unknown(scene: Any, line: Any, history: Any, fitting: Any) -> Any:
    return replace(_losses(scene, line, history, fitting), keeps_unknown=lambda version: False)


def _every_commit(self: Any, node: int) -> bool:
    one = self.history.get(self.graph.versions[node])
    return one is None or str(one.touch) != "maintenance"


def _by_rows(commit: Any) -> bool:
    return bool(commit.version > 0 and not commit.data_change)


def _by_number(reader: Any, row: Any, recorded: Any, head: int, head_id: Any) -> tuple[int, str | None]:
    newest = max(recorded.values())
    return (newest if newest <= head else -1), row.format_ids[-1] if row.format_ids else None


def _not_reaped(services: Any, table_ids: Any, tell: Any) -> None:
    return None


def _only_told(queue: Any, run: Any) -> None:
    queue.cancel(run.request.run_id)


def _accepted(*arguments: Any) -> None:
    return None


ROLLBACK_HOLES: Final = (
    Hole(
        name="1.4 undo",
        words="a worker that stood still right before its restore restores after the undo",
        seams=(
            ("lakewarden.jobs.rollback.execute.permit:Permit.require", _accepted),
            ("lakewarden.jobs.rollback.execute.table_steps:StepExecutor.resolve", _unfenced),
            ("lakewarden.jobs.worker.heartbeat:Heartbeat.still_ours", _accepted),
            ("lakewarden.jobs.worker.heartbeat:Heartbeat.confirm", _accepted),
        ),
        themes=("interrupted",),
        shows="was undone, and restores",
    ),
    Hole(
        name="3.1",
        words="what a killed worker had restored is told by the journal, not by the mark in the commit",
        seams=(
            ("lakewarden.jobs.rollback.execute.saga:finished", _as_the_journal_has_it),
            ("lakewarden.daemon.usecases.rollbacks.rollback:finished", _as_the_journal_has_it),
            ("lakewarden.jobs.rollback.execute.saga:Saga._ended", _ended),
            ("lakewarden.jobs.rollback.execute.undo:_to_take_back", _by_state),
        ),
        themes=("interrupted",),
        shows="is undone, and head",
    ),
    Hole(
        name="3.2",
        words="whoever waits for the run of a dead worker waits for ever",
        seams=(
            ("lakewarden.daemon.usecases.runs.waiting:reap_lost", _not_reaped),
            ("lakewarden.jobs.rollback.execute.interference:end_run", _only_told),
        ),
        themes=("interrupted",),
        shows="waits for ever",
    ),
    Hole(
        name="3.3",
        words="unknown commits that were kept are lost unlisted",
        seams=(("lakewarden.jobs.rollback.plan.rollback_planner:_losses", _without_unknown),),
        themes=("agreeing",),
        shows="nobody called bad or agreed to lose",
    ),
    Hole(
        name="3.4",
        words="a consent covers what comes later as well",
        seams=(("lakewarden.jobs.rollback.plan.consents:Consents.given_for", _whatever_comes),),
        themes=("interrupted",),
        shows="nobody called bad or agreed to lose",
    ),
    Hole(
        name="3.5",
        words="commits of properties and RESTOREs ask for consent",
        seams=(("lakewarden.jobs.rollback.plan.losses:Losses._is_loss", _every_commit),),
        themes=("agreeing",),
        shows="in which nobody loses a row",
    ),
    Hole(
        name="3.6",
        words="an overwrite of an empty table by no rows is taken for maintenance",
        seams=(("lakewarden.catalog.lineage.versions:_keeps_rows", _by_rows),),
        themes=("emptying",),
    ),
    Hole(
        name="3.7",
        words="what is on record is told by version, not by UUID",
        seams=(("lakewarden.catalog.lineage.unrecorded:_resumed", _by_number),),
        themes=("recording",),
        shows="is not on record",
    ),
    Hole(
        name="4 door",
        words="an absurd policy is accepted",
        seams=(
            ("lakewarden.catalog.policy.effective:check_bounds", _accepted),
            ("lakewarden.catalog.policy.keys:check_bounds", _accepted),
        ),
        themes=("recording",),
        shows="was accepted",
    ),
    Hole(
        name="4 names",
        words="a table may be called like a system table",
        seams=(
            ("lakewarden.catalog.registry.service:refuse_closed", _accepted),
            ("lakewarden.catalog.registry.removal:refuse_closed", _accepted),
        ),
        themes=("recording",),
        shows="called like a system table",
    ),
)
