"""A rollback as a run of the queue: the saga with a run's lease, heartbeat and recovery."""

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import PreconditionError, UnavailableError
from lakewarden.catalog.logs import get_log
from lakewarden.catalog.model.rollbacks import Rollback, needed_versions, rollback_locks
from lakewarden.catalog.model.rows import DELTA, RollbackRow, RollbackState, RollbackStep
from lakewarden.catalog.policy.access import DAEMON_NAME
from lakewarden.catalog.state.port import Hint, HintKind, HintSink, Queue
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.catalog.units import about_seconds, count_of
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.rollback.execute.interference import Clearing
from lakewarden.jobs.rollback.execute.replan import Extender
from lakewarden.jobs.rollback.execute.saga import Extend, Saga
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.journal.stored_plan import OnMoved, decode_plan
from lakewarden.jobs.rollback.planning_service import Gatherer
from lakewarden.jobs.rollback.step_check import require_same_head
from lakewarden.jobs.runs.log_stores import why_not
from lakewarden.jobs.runs.port import JobContext, Report, Tools
from lakewarden.jobs.runs.worker_config import WorkerConfig

__all__ = ["JournaledRollbacks", "open_rollbacks", "roll_back"]

_REWINDS: Final = (RollbackStep.RESTORE, RollbackStep.REMOVE_FILES)
_PATIENCE: Final = timedelta(minutes=2)
"""The time for our own run on one of the tables to notice its cancellation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JournaledRollbacks:
    """`Rollbacks` on the system tables, by the tools of each table's format."""

    journal: Journal
    tools: Tools
    storage: Callable[[str], StorageOptions]
    undo_for: timedelta
    queue: Queue | None = None
    """The other runs that must end first; None: there are none."""
    extend: Extend | None = None
    hints: HintSink | None = None
    """Takes the tables to look at when it has ended; None: the sweep finds them by itself."""
    patience: timedelta = _PATIENCE
    monotonic: Callable[[], float] = time.monotonic

    def needed_version(self, table_id: str) -> int | None:
        return needed_versions(self.journal.all(), self.journal.clock.now()).get(table_id)

    def locked_by(self, table_id: str) -> str | None:
        held = rollback_locks(self.journal.all()).get(table_id)
        return None if held is None else held.rollback_id

    def go_on(self, rollback_id: str, ctx: JobContext) -> Rollback:
        def drain(tables: Collection[str]) -> None:
            self._drain(tables, ctx)

        def permit(row: RollbackRow, step: TableStep) -> None:
            if ctx.guard is not None:
                ctx.guard.ask(step.table_id, step.name, step.location)
            if row.state is RollbackState.INTENT and row.kind in _REWINDS:
                require_same_head(step, self.tools.reader(step.format))

        def claim(_: RollbackRow) -> None:
            if ctx.guard is not None:
                ctx.guard.confirm()

        rollback = self.journal.get(rollback_id)
        head = rollback.head
        if not head.undo and all(row.state is RollbackState.PLANNED for row in rollback.steps):
            ctx.require_allowed()  # nothing is begun: where that is forbidden now, it waits as it is
        ended = Saga(
            journal=self.journal,
            executor=StepExecutor(tools=self.tools, storage=self.storage, permit=permit, claim=claim),
            undo_for=self.undo_for,
            still_ours=ctx.still_ours,
            drain=drain,
            extend=self.extend,
            compensates=not head.undo and _compensates(head),
            withdraws=head.actor == DAEMON_NAME,
        ).go_on(rollback_id)
        self._hint(ended)
        return ended

    def _hint(self, ended: Rollback) -> None:
        """Have the tables looked at soon: what the metastore says of them, and their statistics, is old now."""
        if self.hints is None or ended.is_unsettled:
            return
        now = self.journal.clock.now()
        places = sorted({row.location for row in ended.steps if row.location is not None})
        self.hints.put(
            Hint(
                hint_id=f"{ended.rollback_id}-{ended.head.state}-{number}",
                subject=place,
                kind=HintKind.REQUESTED,
                at=now,
            )
            for number, place in enumerate(places)
        )

    def _drain(self, tables: Collection[str], ctx: JobContext) -> None:
        """Ask the other runs on these tables to end, and wait until they have. No new ones begin: the planner and the
        workers read the journal."""
        if self.queue is None:
            return
        log = get_log("worker").bind(run_id=ctx.run_id, table=ctx.target.name)
        clearing = Clearing(
            queue=self.queue,
            clock=ctx.clock,
            patience=self.patience,
            tell=lambda text: log.info("rollback waits", message=text),
            monotonic=self.monotonic,
        )
        left = clearing.clear(tables, ours=lambda one: one.run_id == ctx.run_id, look=ctx.still_ours)
        if left is not None:
            raise UnavailableError(
                f"The {left.request.action} of {left.request.name} was asked to end and has not within "
                f"{about_seconds(self.patience.total_seconds())}.",
                hint="The rollback waits for it and is tried again.",
            )


def open_rollbacks(
    config: WorkerConfig, tools: Tools, queue: Queue, hints: HintSink | None = None
) -> JournaledRollbacks | None:
    """The journal as a worker sees it; None where it was not told of system tables."""
    location = config.system_location
    if location is None:
        return None
    clock = SystemClock()
    store = DeltaSystemStore(location, config.storage.at(location), actor=config.name)
    storage = config.storage.at
    gatherer = Gatherer(
        store=store,
        readers=tools.readers,
        storage=storage,
        clock=clock,
        no_spark=lambda location: why_not(location, dict(config.spark.conf)),
        no_engine=lambda format_: (
            None
            if (format_ or DELTA) in tools.runtimes
            else f"this worker has no engine for the table format {format_}"
        ),
    )
    return JournaledRollbacks(
        journal=Journal(store=store, clock=clock),
        tools=tools,
        storage=storage,
        extend=Extender(gatherer=gatherer),
        undo_for=config.undo_for,
        queue=queue,
        hints=hints,
    )


def _compensates(head: RollbackRow) -> bool:
    return decode_plan(head.payload or "").on_moved is OnMoved.COMPENSATE


def roll_back(ctx: JobContext, action: RollBack) -> Report:
    """Go on with a rollback until it is done, taken back, or stopped by what others wrote (`PreconditionError`)."""
    if ctx.rollbacks is None:
        raise UnavailableError("This worker was not told where the journal of rollbacks is.")
    ended = ctx.rollbacks.go_on(action.rollback_id, ctx)
    if ended.head.state is RollbackState.CONFLICT:
        raise PreconditionError(
            ended.head.message or "Somebody else wrote to one of its tables.",
            hint=f"`lakewarden rollback show {ended.rollback_id}`; "
            "then `rollback resume` or `rollback undo`.",
        )
    tables = count_of(ended.tables, "table")
    undone = ended.head.state is RollbackState.COMPENSATED
    own = next((row.new_version for row in ended.steps if row.table_id == ctx.target.table_id), None)
    return Report(
        message=f"{tables} {'as before' if undone else 'rolled back'}",
        committed_version=own,
        details=json.dumps({"rollback_id": ended.rollback_id, "state": ended.head.state.value}),
    )
