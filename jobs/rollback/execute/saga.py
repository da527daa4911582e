"""A rollback as a journaled saga: intent before act, one commit per wave, from the roots to the leaves.

Level-triggered: `go_on` looks at the journal and does what is next, so that the first attempt, an attempt after a crash
and a resumption are the same call. Killed anywhere, the next one completes it (or an undo leaves all as before). Where
somebody else writes in between, it stops: state `conflict`, with a sentence, and nothing of theirs is touched.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, assert_never

from lakewarden.catalog.errors import ConflictError, ConsentError, LakewardenError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackRow, RollbackState, RollbackStep, TableState
from lakewarden.catalog.registry.rollback_quarantine import is_aside, set_aside
from lakewarden.jobs.rollback.execute.found_in_logs import COMMITS, finished, finished_group
from lakewarden.jobs.rollback.execute.permit import Permit
from lakewarden.jobs.rollback.execute.replan import BroughtBackError
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor, told_of
from lakewarden.jobs.rollback.execute.undo import take_back
from lakewarden.jobs.rollback.journal.group_rows import whole
from lakewarden.jobs.rollback.journal.journal import HeldByWaitingError, Journal
from lakewarden.jobs.rollback.journal.step_rows import FOLLOWING, next_rows, step_of, superseded, verified_row
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.journal.stored_plan import with_consents_asked
from lakewarden.jobs.rollback.step_check import verify_step

__all__ = ["Extend", "Saga"]

_ROUNDS: Final = 20
"""So often late commits are taken in before it is left to a person: somebody keeps deriving from what is undone."""
_TO_DO: Final = (RollbackState.PLANNED, RollbackState.INTENT)

Extend = Callable[[Rollback], Sequence[TableStep]]
"""Further steps that the state so far requires. Raises a `LakewardenError` if a person has to agree."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Saga:
    """Executes rollbacks."""

    journal: Journal
    executor: StepExecutor
    undo_for: timedelta
    """How long an undo stays possible."""
    still_ours: Callable[[], None] = lambda: None
    """Raises once the run was cancelled or lost."""
    drain: Callable[[Collection[str]], None] = lambda tables: None
    """Waits until no other run of ours works on these tables."""
    extend: Extend | None = None
    """Looks for late commits and moved heads; None: nothing is added, a moved head stops it."""
    compensates: bool = False
    """A moved head takes everything back instead."""
    withdraws: bool = False
    """Nobody asked for it: where what it followed is taken back, so is all that it did."""
    inherited: frozenset[int] = frozenset()
    """Steps that an earlier attempt may have begun and may still be at, asleep."""

    def go_on(self, rollback_id: str) -> Rollback:
        """Do what is left to do, forwards or back. Returns the rollback in the state it came to: done, compensated or
        conflict. Raises `PreconditionError` if it turns out before the first change that it cannot be executed: then
        it is compensated, and nothing was changed."""
        rollback = self.journal.get(rollback_id)
        if not rollback.is_unsettled:
            return rollback
        self.drain({row.table_id for row in rollback.steps})
        reach("rollback.drained")
        inherited = frozenset(row.step for row in rollback.steps if row.state is RollbackState.INTENT)
        executor = _permitted(self.executor, Permit(self.journal, self.still_ours))
        return replace(self, executor=executor, inherited=inherited)._go_on(rollback)

    def _go_on(self, rollback: Rollback) -> Rollback:
        if rollback.head.undo:
            return self._back(rollback)
        if rollback.is_group:
            return self._ended_group(rollback)
        for _ in range(_ROUNDS):
            rollback = self._forwards(rollback)
            stopped = rollback.head.state is RollbackState.CONFLICT
            if stopped and self.compensates:
                why = f"taken back, as the plan says for moved heads: {rollback.head.message}"
                return self._taken_back(rollback, why, because="a head had moved")
            if stopped and (self.extend is None or _needs_a_person(rollback)):
                return rollback
            try:
                rollback, more = self._extended(rollback)
            except BroughtBackError as error:
                because = "what it followed was taken back"
                return self._taken_back(rollback, f"taken back: {error}", because=because)
            if not more:
                return rollback if rollback.head.state is RollbackState.CONFLICT else self._finish(rollback)
        return self._stop(rollback, "New commits keep appearing that were derived from what is undone.")

    def _ended_group(self, rollback: Rollback) -> Rollback:
        """A statement over several tables whose session is gone: done if the logs show all of its changes, taken back
        if one shows that its own was not made; a person's if neither can be told. Nothing is ever changed in its
        place."""
        rollback, unclear = finished_group(rollback, self.executor.tools.readers)
        if unclear is not None:
            waiting = rollback.with_head(RollbackState.CONFLICT, message=unclear)
            return self._save(waiting, f"statement {rollback.rollback_id} was cut off")
        if rollback.is_whole:
            return self._save(whole(rollback, self.journal.clock.now()), "all of its tables are changed")
        undoing = rollback.with_head(RollbackState.UNDOING, undo=True, message=None)
        return self._back(self._save(undoing, f"statement {rollback.rollback_id} was cut off"))

    def _taken_back(self, rollback: Rollback, why: str, *, because: str) -> Rollback:
        undoing = rollback.with_head(RollbackState.UNDOING, undo=True, message=why)
        return self._back(self.journal.save(undoing, expects=rollback.head.state, because=because))

    def _back(self, rollback: Rollback) -> Rollback:
        return take_back(self.journal, self.executor, rollback, still_ours=self.still_ours)

    def _forwards(self, rollback: Rollback) -> Rollback:
        rollback = self._verified(rollback)
        if rollback.head.state is not RollbackState.INTENT:
            return rollback
        reach("rollback.verified")
        for wave in sorted({row.wave for row in rollback.steps if row.state in _TO_DO}):
            rows = [row for row in rollback.steps if row.wave == wave and row.state in _TO_DO]
            rollback = rollback.with_rows(replace(row, state=RollbackState.INTENT) for row in rows)
            # One commit says that the wave before is done and that this one is about to begin.
            rollback = self._save(rollback, f"wave {wave} of rollback {rollback.rollback_id}")
            reach("rollback.intent")
            rollback, trouble = self._act(rollback, wave)
            reach("rollback.acted")
            if trouble is not None:
                return self._stop(rollback, trouble)
        return rollback

    def _verified(self, rollback: Rollback) -> Rollback:
        leading = (row for row in rollback.steps if row.kind not in FOLLOWING)
        rows = [row for row in leading if row.state is RollbackState.PLANNED]
        untouched = all(row.state is RollbackState.PLANNED for row in rollback.steps)
        found: list[RollbackRow] = []
        for row in rows:
            self.still_ours()
            step = step_of(row)
            reader = self.executor.tools.reader(step.format)
            try:
                found.extend(verified_row(row, verify_step(step, reader, self.executor.storage)))
            except LakewardenError as error:
                if _comes_again(error):
                    raise
                if not untouched:  # what is advised before a rollback begins comes too late
                    return self._stop(rollback, str(error))
                refused = rollback.with_head(RollbackState.COMPENSATED, message=error.in_full)
                self._save(refused, f"rollback {rollback.rollback_id} was refused")
                raise
        return rollback.with_rows(found)

    def _act(self, rollback: Rollback, wave: int) -> tuple[Rollback, str | None]:
        """Do the wave's steps one by one; what stopped it, if anything did."""
        changed: list[RollbackRow] = []
        rows = {row.step: row for row in rollback.steps}
        for row in rollback.steps:  # what belongs to a restore comes after it, by number
            if row.wave != wave or row.state is not RollbackState.INTENT:
                continue
            self.still_ours()
            restore = rows[row.step - 1] if row.kind is RollbackStep.PROPERTIES else row
            try:
                changed.append(self._act_on(row, step_of(restore)))
            except LakewardenError as error:
                if _comes_again(error):
                    raise
                Permit(self.journal, self.still_ours).require(row)
                told = told_of(row, error)
                changed.append(replace(row, state=RollbackState.CONFLICT, message=told))
                return rollback.with_rows(changed), told
        return rollback.with_rows(changed), None

    def _act_on(self, row: RollbackRow, step: TableStep) -> RollbackRow:
        version: int | None = None
        match row.kind:
            case RollbackStep.RESTORE:
                version = self.executor.restore(row, step)
            case RollbackStep.PROPERTIES:
                version = self.executor.keep_properties(row, step)
            case RollbackStep.REMOVE_FILES:
                version = self.executor.remove_files(row, step)
            case RollbackStep.REAPPLY:
                version = self.executor.add_again(row, step)
            case RollbackStep.DROP:
                self._set_aside(row, step, TableState.DROPPED)
            case RollbackStep.QUARANTINE:
                self._set_aside(row, step, TableState.QUARANTINED)
            case RollbackStep.PLAN | RollbackStep.CHANGE:
                raise AssertionError(f"{row.kind} is nothing that a rollback does")
            case _:
                assert_never(row.kind)
        return replace(row, state=RollbackState.DONE, new_version=version, message=None)

    def _set_aside(self, row: RollbackRow, step: TableStep, state: TableState) -> None:
        store, rollback_id = self.journal.store, row.rollback_id
        if is_aside(store, row.table_id, rollback_id=rollback_id):
            return

        def permit() -> None:
            self.executor.permit(row, step)
            self.executor.require_head(step)

        set_aside(
            store,
            self.journal.clock,
            row.table_id,
            state,
            rollback_id=rollback_id,
            actor=row.actor or rollback_id,
            permit=permit,
        )
        reach("rollback.set_aside")

    def _extended(self, rollback: Rollback) -> tuple[Rollback, bool]:
        """The rollback with the additional steps, and whether there are any. A stopped one goes on by this. Raises
        `BroughtBackError` where all is to be taken back."""
        if self.extend is None:
            return rollback, False
        before = rollback.head.state
        rollback = finished(rollback, self.executor.tools.readers)
        try:
            more = self.extend(rollback)
        except LakewardenError as error:
            if _comes_again(error) or (self.withdraws and isinstance(error, BroughtBackError)):
                raise
            return self._left_to_a_person(rollback, error), False
        extended = superseded(rollback)
        extended = extended.with_rows(next_rows(extended, more)).with_head(RollbackState.INTENT, message=None)
        if more or before is RollbackState.CONFLICT:
            because = "what others wrote was taken into the plan"
            try:
                extended = self.journal.save(extended, expects=before, because=because)
            except HeldByWaitingError as error:
                return self._left_to_a_person(rollback, error), False
        new = {step.table_id for step in more} - {row.table_id for row in rollback.steps}
        if new:  # nothing of ours begins on them any more: what is at it has to end first
            self.drain(new)
        again = any(row.state is RollbackState.PLANNED for row in extended.steps)
        return extended, bool(more) or again

    def _left_to_a_person(self, rollback: Rollback, error: LakewardenError) -> Rollback:
        """Stopped, or stopped still, with what keeps it from going on by itself."""
        ways = error.ways if isinstance(error, ConsentError) else ()
        if rollback.head.state is not RollbackState.CONFLICT:
            return self._stop(rollback, error.in_full, ways)
        said = rollback.head.message or ""
        told = said if said.endswith(error.in_full) else f"{said} {error.in_full}".strip()
        asking = with_consents_asked(rollback, ways).with_head(RollbackState.CONFLICT, message=told)
        because = f"rollback {rollback.rollback_id} waits for a person"
        return self.journal.save(asking, expects=RollbackState.CONFLICT, because=because)

    def _stop(self, rollback: Rollback, because: str, ways: tuple[tuple[str, ...], ...] = ()) -> Rollback:
        """What was begun and not done goes back to being planned; a person decides. The logs say what was
        done, and what an earlier attempt may have begun is made impossible first."""
        rollback = self._ended(finished(rollback, self.executor.tools.readers))
        planned = [
            replace(row, state=RollbackState.PLANNED)
            for row in rollback.steps
            if row.state is RollbackState.INTENT
        ]
        stopped = with_consents_asked(rollback, ways).with_rows(planned)
        stopped = stopped.with_head(RollbackState.CONFLICT, message=because)
        return self._save(stopped, f"rollback {rollback.rollback_id} stopped")

    def _ended(self, rollback: Rollback) -> Rollback:
        """The rollback with the steps of earlier attempts done or out of reach, whoever of these is still asleep. Not
        those of a table whose log cannot be read: who sleeps there finds in the journal that they are not to be done.
        """
        ended = []
        for row in rollback.of_kind(*COMMITS):
            if row.step in self.inherited and row.state in (RollbackState.INTENT, RollbackState.CONFLICT):
                begun = replace(row, state=RollbackState.INTENT)
                try:
                    version = self.executor.resolve(begun, step_of(row))
                except LakewardenError as error:
                    if error.retry:
                        raise
                    continue
                if version is not None:
                    ended.append(replace(row, state=RollbackState.DONE, new_version=version, message=None))
        return rollback.with_rows(ended)

    def _finish(self, rollback: Rollback) -> Rollback:
        until = self.journal.clock.now() + self.undo_for
        done = rollback.with_head(RollbackState.DONE, message=_left_alone(rollback), undo_until=until)
        done = self._save(done, f"rollback {rollback.rollback_id} is done")
        reach("rollback.finished")
        return done

    def _save(self, rollback: Rollback, because: str) -> Rollback:
        return self.journal.save(rollback, expects=RollbackState.INTENT, because=because)


def _permitted(executor: StepExecutor, permit: Permit) -> StepExecutor:
    """The same executor, which asks for the permit of the journal first, then for what else it was told to ask."""

    def permitted(row: RollbackRow, step: TableStep) -> None:
        permit.require(row)
        executor.permit(row, step)

    def claimed(row: RollbackRow) -> None:
        permit.require(row)
        executor.claim(row)

    return replace(executor, permit=permitted, claim=claimed)


def _needs_a_person(rollback: Rollback) -> bool:
    """Whether the rollback stopped at a commit that could not be added again: planning anew would not help."""
    return any(row.state is RollbackState.CONFLICT for row in rollback.of_kind(RollbackStep.REAPPLY))


def _left_alone(rollback: Rollback) -> str | None:
    """The tables whose restore was given up because others wrote to them and left nothing bad there; None if none."""
    restores = rollback.of_kind(RollbackStep.RESTORE)
    done = {row.table_id for row in restores if row.state is RollbackState.DONE}
    left = {row.name or row.table_id for row in restores if row.table_id not in done}
    return f"{', '.join(sorted(left))}: left as others wrote it meanwhile" if left else None


def _comes_again(error: LakewardenError) -> bool:
    """Whether the same may succeed later without anybody's doing: then the next attempt goes on by the marks."""
    return error.retry and not isinstance(error, ConflictError)
