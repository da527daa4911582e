"""Rollbacks as people ask for them: plan and store, apply what was planned, resume, undo.
The work is a run of the queue."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

from lakewarden.catalog.errors import ConflictError, LakewardenError, PreconditionError, UsageError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.model.rollbacks import Rollback, next_run_id
from lakewarden.catalog.model.rows import Action, RollbackState, TableRow
from lakewarden.catalog.policy.access import Actor, Permission, require
from lakewarden.catalog.state.port import RunRequest, runtime_of
from lakewarden.catalog.system.port import TABLES
from lakewarden.catalog.units import about_seconds
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.rollbacks.rollback_wait import Wait, goes_on
from lakewarden.daemon.usecases.runs.waiting import raise_for, run_and_wait, run_is_over
from lakewarden.jobs.actions.registry import encode
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.engines.registry import no_engine
from lakewarden.jobs.rollback.details_service import details_of
from lakewarden.jobs.rollback.execute.found_in_logs import finished, taken_back
from lakewarden.jobs.rollback.execute.interference import Clearing
from lakewarden.jobs.rollback.execute.replan import plan_again, refuse_others
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.journal.left_tainted import plan_for_the_left
from lakewarden.jobs.rollback.journal.step_rows import head_row, left_as_it_is, next_rows, superseded
from lakewarden.jobs.rollback.journal.stored_plan import (
    OnMoved,
    StoredPlan,
    decode_plan,
    encode_plan,
    quoted_plan,
    steps_of,
)
from lakewarden.jobs.rollback.plan.cascade import concerned
from lakewarden.jobs.rollback.plan.consents import Consents
from lakewarden.jobs.rollback.plan.request import CommitsOf, RollbackRequest
from lakewarden.jobs.rollback.planning_service import Gathered, Gatherer
from lakewarden.jobs.rollback.report.next_steps import plan_command
from lakewarden.jobs.rollback.report.refusal import refuse_blocked
from lakewarden.jobs.rollback.step_check import verify_step

__all__ = ["RollbackService", "rollbacks_of_services"]

_PLANS_KEPT: Final = timedelta(days=7)
"""A plan that nobody applied is forgotten after this; by then it is stale anyway."""
_UNDER_WAY: Final = (RollbackState.INTENT, RollbackState.UNDOING)
_ENDING: Final = 5.0
"""Seconds that a run may take to end after the journal says how it ended."""
_PATIENCE: Final = 120.0
_POLL: Final = 0.2
_ATTEMPTS: Final = 10


def rollbacks_of_services(services: Services, *, timeout: timedelta | None = None) -> "RollbackService":
    """The use cases on an installation's ports, which wait for a rollback no longer than `timeout` (None:
    to its end)."""
    journal = Journal(store=services.store, clock=services.clock)
    gatherer = Gatherer(
        store=services.store,
        readers=services.readers,
        storage=services.storage,
        clock=services.clock,
        no_spark=services.no_spark,
        no_engine=lambda format_: no_engine(format_, Action.ROLLBACK),
        forget=services.heads.forget,
    )
    return RollbackService(services=services, journal=journal, gatherer=gatherer, timeout=timeout)


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackService:
    """The use cases. Each asks the rule about the tables that it changes, when it knows which;
    `run` (audit.py) asked before."""

    services: Services
    journal: Journal
    gatherer: Gatherer
    timeout: timedelta | None = None

    def plan(self, request: RollbackRequest, *, actor: Actor, on_moved: OnMoved = OnMoved.EXTEND) -> Gathered:
        """Make a plan and keep it, so that `apply` can quote its hash.

        Raises `NotAllowedError` for seeds on somebody else's table, `NotFoundError` for a version that does not exist.
        """
        for row in self.seeds(request):
            require(actor, Permission.ROLLBACK, row)
        found = self.gatherer.gather(request)
        found = replace(found, plan=quoted_plan(found.plan, on_moved))
        for table in found.plan.tables:
            if table.trigger is None:
                require(actor, Permission.ROLLBACK, found.rows.get(table.table_id))
        _refuse_idle(found)
        self.keep(found, actor=actor, on_moved=on_moved)
        return found

    def apply(self, text: str, *, actor: Actor, tell: Callable[[str], None]) -> Rollback:
        """Execute a stored plan whose hash begins with `text`, and wait for it. Raises what `begin` does, what
        stopped it, and `PreconditionError` if it was taken back."""
        run_id = self._next_run(self.journal.find(text))
        done = _went_through(self._run(self.begin(text, actor=actor), run_id, actor, tell))
        self._plan_for_the_left(done, actor, tell)
        return done

    def begin(self, text: str, *, actor: Actor) -> Rollback:
        """Journal that a stored plan is to be executed. From then on it is: by whoever runs it, at last by the daemon.

        Raises `PreconditionError` for a stale plan, and where another rollback holds one of its tables, `ConsentError`
        for one that was not agreed to.
        """
        rollback = self.journal.find(text)
        if rollback.head.state is not RollbackState.PLANNED:
            raise PreconditionError(
                f"Plan {rollback.head.plan_hash} was applied already; it is {rollback.head.state}.",
                hint=f"`lakewarden rollback show {rollback.rollback_id}`; or make a new plan.",
            )
        stored = decode_plan(rollback.head.payload or "")
        found = self._checked(stored)
        refuse_others(found, actor.name, admin=actor.admin)
        payload = encode_plan(replace(stored, admin=actor.admin))
        begun = rollback.with_rows(next_rows(rollback, found.steps()))
        begun = begun.with_head(RollbackState.INTENT, payload=payload, actor=actor.name)
        self.journal.save(
            begun, expects=RollbackState.PLANNED, because=f"{actor.name} applies {rollback.head.plan_hash}"
        )
        reach("rollback.begun")
        return begun

    def resume(self, text: str, consents: Consents, *, actor: Actor, tell: Callable[[str], None]) -> Rollback:
        """Go on with a rollback that was interrupted or stopped. What others wrote meanwhile is planned anew. Raises
        `PreconditionError` if it was taken back instead."""
        rollback = self._changeable(text, actor)
        state = rollback.head.state
        if state is RollbackState.CONFLICT and rollback.head.undo:
            return self._undo(rollback, actor, tell)
        run_id = self._next_run(rollback)
        if state is RollbackState.CONFLICT:
            planned = plan_again(self.gatherer, rollback, consents)
            found, stored = planned.found, planned.stored
            given = found.plan.request.consents.without(stored.plan.request.consents)
            refuse_blocked(found.plan, resuming=rollback.rollback_id, given=given)
            refuse_others(found, actor.name, admin=actor.admin)
            again = superseded(finished(rollback, self.gatherer.readers), consents)
            agreed = stored.plan.request.consents.with_more(found.plan.request.consents)
            request = replace(stored.plan.request, consents=agreed)
            kept = replace(stored, plan=replace(stored.plan, request=request), admin=actor.admin, asked=())
            again = again.with_rows(next_rows(again, found.steps()))
            again = again.with_head(RollbackState.INTENT, message=None, payload=encode_plan(kept))
            rollback = self.journal.save(again, expects=state, because=f"{actor.name} resumes it")
        elif not rollback.is_unsettled:
            raise PreconditionError(
                f"Rollback {rollback.rollback_id} is {state}: there is nothing to resume.",
                hint="`lakewarden rollback list` shows them.",
            )
        back = rollback.head.undo or rollback.is_group
        done = self._run(rollback, run_id, actor, tell)
        if not back:
            self._plan_for_the_left(_went_through(done), actor, tell)
        return done

    def _plan_for_the_left(self, done: Rollback, actor: Actor, tell: Callable[[str], None]) -> None:
        """Make the plan that waits for the owners of the tables that were left as they are."""
        plan = plan_for_the_left(done)
        if plan is None:
            return
        try:
            found = self.gatherer.gather(plan.request)
            self.keep(found, actor=actor)
        except LakewardenError as error:  # the rollback is done all the same
            tell(f"No plan could be made for the tables that were left: {error} {error.hint}".rstrip())
            return
        if found.steps():
            names = ", ".join(sorted(one.name for one in concerned(found.plan)))
            tell(f"Plan {found.plan.hash} waits for the owners of {names}.")

    def undo(self, text: str, *, leave: bool = False, actor: Actor, tell: Callable[[str], None]) -> Rollback:
        """Make the old heads head again. `leave`: end an undo that stopped,
        tables that were written to stay rolled back.

        Raises `PreconditionError` once the undo window is over.
        """
        rollback = self._changeable(text, actor)
        if leave and rollback.head.undo and rollback.head.state is RollbackState.CONFLICT:
            ended = left_as_it_is(taken_back(rollback, self.services.readers))
            return self.journal.save(
                ended, expects=RollbackState.CONFLICT, because=f"{actor.name} leaves what was written to"
            )
        if not rollback.can_be_undone(self.services.clock.now()):
            until = rollback.head.undo_until
            over = until is not None and until <= self.services.clock.now()
            when = f" It could be undone until {until:%Y-%m-%d %H:%M} UTC." if over else ""
            raise PreconditionError(
                f"Rollback {rollback.rollback_id} is {rollback.head.state} and cannot be undone.{when}",
                hint="`lakewarden rollback show` tells what it did; the tables' histories have the rest.",
            )
        return self._undo(rollback, actor, tell)

    def _undo(self, rollback: Rollback, actor: Actor, tell: Callable[[str], None]) -> Rollback:
        for attempt in range(_ATTEMPTS):
            run_id = self._next_run(rollback)
            undoing = rollback.with_head(RollbackState.UNDOING, undo=True, message=None)
            try:
                self.journal.save(undoing, expects=rollback.head.state, because=f"{actor.name} undoes it")
            except ConflictError:  # a worker that is at it has just written how far it is
                rollback = self.journal.get(rollback.rollback_id)
                if attempt + 1 == _ATTEMPTS or not rollback.can_be_undone(self.services.clock.now()):
                    raise
            else:
                break
        return self._run(undoing, run_id, actor, tell)

    def seeds(self, request: RollbackRequest) -> tuple[TableRow, ...]:
        """The tables that a request begins at, as far as it names them: those of a run are found with its commits."""
        named = (seed.table_id for seed in request.seeds if not isinstance(seed, CommitsOf))
        return tuple(self.services.registry.get(table_id) for table_id in named)

    def planned_tables(self, text: str) -> tuple[TableRow, ...]:
        """The tables that a stored plan changes. Raises `NotFoundError` where there is no such plan."""
        plan = decode_plan(self.journal.find(text).head.payload or "").plan
        rows = self.services.store.rows(TABLES)
        found = (rows.get(table.table_id) for table in plan.tables if table.acts)
        return tuple(row for row in found if row is not None)

    def tables(self, text: str) -> tuple[TableRow, ...]:
        """The tables of a rollback that was begun. Raises `NotFoundError` where there is no such rollback."""
        rollback = self.journal.find(text)
        return tuple(self.services.registry.get(row.table_id) for row in rollback.steps or (rollback.head,))

    def _changeable(self, text: str, actor: Actor) -> Rollback:
        for row in self.tables(text):
            require(actor, Permission.ROLLBACK, row)
        return self.journal.find(text)

    def keep(self, found: Gathered, *, actor: Actor, on_moved: OnMoved = OnMoved.EXTEND) -> None:
        """Keep a plan that restores anything, so that it can be quoted; forget old ones."""
        steps = found.steps()
        if not steps:
            return
        now = self.services.clock.now()
        stored = StoredPlan(
            plan=found.plan,
            format_ids=tuple(sorted(found.format_ids.items())),
            formats=tuple(sorted(found.formats.items())),
            on_moved=on_moved,
            details=details_of(found),
        )
        old = [
            one
            for one in self.journal.all()
            if one.head.state is RollbackState.PLANNED and now - one.head.recorded_at > _PLANS_KEPT
        ]
        head = head_row(
            rollback_id=found.plan.hash,
            plan_hash=found.plan.hash,
            first=steps[0],
            payload=encode_plan(stored),
            actor=actor.name,
            at=now,
        )
        self.journal.keep_plan(head, old=old, because=f"{actor.name} planned {found.plan.hash}")

    def _checked(self, stored: StoredPlan) -> Gathered:
        """The plan as it would be made now, if that is still the stored one. The sentence says what differs."""
        options = () if stored.on_moved is OnMoved.EXTEND else (f"--on-moved={stored.on_moved}",)
        storage, again = self.services.storage, f"`{plan_command(stored.plan, *options)}`"
        for step in steps_of(stored.plan, dict(stored.format_ids), dict(stored.formats)):
            row = self.services.registry.get(step.table_id)
            if row.location != step.location:
                raise PreconditionError(
                    f"{step.name} was moved to {row.location} since the plan was made.",
                    hint=f"Make a new plan: {again}.",
                )
            reader = reader_of(self.services.readers, step.format)
            try:
                verify_step(replace(step, name=row.name), reader, storage)
            except ConflictError as error:
                raise ConflictError(str(error), hint=f"{error.hint} {again}") from error
        found = self.gatherer.gather(stored.plan.request)
        found = replace(found, plan=quoted_plan(found.plan, stored.on_moved))
        refuse_blocked(found.plan)
        if found.plan.hash != stored.plan.hash:
            raise PreconditionError(
                f"The plan is stale: made now it would be {found.plan.hash}; nothing was changed.",
                hint=f"Make a new plan, look at the differences, and apply the new plan: {again}.",
            )
        return found

    def _next_run(self, rollback: Rollback) -> str:
        """The id of the run that will go on with it, to be known before the journal says that there is something to do:
        from then on the daemon may queue that very run. Where nothing is to be done yet,
        a run that is ending may end."""
        until = time.monotonic() + (0.0 if rollback.head.state in _UNDER_WAY else _ENDING)
        while True:
            run_id = next_run_id(rollback.rollback_id, partial(run_is_over, self.services))
            if self.services.queue.get(run_id) is None or time.monotonic() >= until:
                return run_id
            time.sleep(_POLL)

    def _run(self, rollback: Rollback, run_id: str, actor: Actor, tell: Callable[[str], None]) -> Rollback:
        request = RunRequest(
            run_id=run_id,
            table_id=rollback.head.table_id,
            name=rollback.head.name or rollback.head.table_id,
            location=rollback.head.location or "",
            action=Action.ROLLBACK,
            payload=encode(RollBack(rollback_id=rollback.rollback_id)),
            because=f"{actor.name} asked for it",
            rank=float("inf"),
            runtime=runtime_of(self.services.registry.get(rollback.head.table_id)),
        )
        wait = Wait(
            rollback_id=rollback.rollback_id,
            journal=self.journal,
            clock=self.services.clock,
            tell=tell,
            timeout=self.timeout,
            queue=self.services.queue,
        )
        try:
            self._make_way(request, wait)
            raise_for(run_and_wait(self.services, request, tell=tell, look=wait.look))
        except KeyboardInterrupt:
            tell(goes_on(rollback.rollback_id))
            raise
        return self.journal.get(rollback.rollback_id)

    def _make_way(self, request: RunRequest, wait: Wait) -> None:
        """End the maintenance run that the table may have: a table has one run at a time."""
        patience = wait.at_most(timedelta(seconds=_PATIENCE))
        clearing = Clearing(
            queue=self.services.queue, clock=self.services.clock, patience=patience, tell=wait.tell
        )
        left = clearing.clear(
            {request.table_id}, ours=lambda one: one.payload == request.payload, look=wait.require_time
        )
        if left is not None:
            wait.require_time()
            raise ConflictError(
                f"The {left.request.action} of {request.name} was asked to end and has not within "
                f"{about_seconds(patience.total_seconds())}.",
                hint=goes_on(wait.rollback_id),
            )


def _refuse_idle(found: Gathered) -> None:
    """Raise `UsageError` for a table whose files were to be removed and that a plan for others leaves alone."""
    planned = {table.table_id for table in found.plan.tables}
    if not planned:
        return
    for table_id in sorted(found.plan.request.undo - planned):
        row = found.rows.get(table_id)
        name = table_id if row is None else row.name
        raise UsageError(
            f"{name} is not in this plan, so none of its files can be removed.",
            hint="Files are removed from tables that the plan takes back.",
        )


def _went_through(rollback: Rollback) -> Rollback:
    """The rollback that somebody asked for. Raises `PreconditionError` if it was taken back: then nothing is done."""
    if rollback.head.state is not RollbackState.COMPENSATED:
        return rollback
    why = rollback.head.message or "somebody undid it meanwhile"
    raise PreconditionError(
        f"Rollback {rollback.rollback_id} was not done: {why}",
        hint=f"Every table is as before; `lakewarden rollback show {rollback.rollback_id}` has the steps. "
        "Plan again from what is there now.",
    )
