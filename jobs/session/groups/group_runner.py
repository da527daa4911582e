"""Runs a statement over several tables: all of them are changed, or what was done is taken back.

It is journaled like a rollback, and before its first commit (jobs/rollback/journal/group_rows.py). Where a step fails,
or somebody wrote in between, the session takes back what it has done by the machinery of rollbacks; where the session
itself ends, the daemon does. Each commit carries the group's id, so that the tables' logs say what was done.
"""

import logging
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import (
    CancelledError,
    ConflictError,
    LakewardenError,
    NotFoundError,
    PreconditionError,
    RefusedError,
    UnavailableError,
    UnreadableError,
)
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import LogProblem
from lakewarden.catalog.model.rollbacks import GROUP_PATIENCE, Rollback
from lakewarden.catalog.model.rows import RollbackRow, RollbackState, RollbackStep
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.units import sentence
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.engines.spark.cancellation import beyond_cancelling, is_cancelled, require_wanted
from lakewarden.jobs.rollback.execute.head_line import commits_since, made_on
from lakewarden.jobs.rollback.execute.saga import Saga
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor, mark_found
from lakewarden.jobs.rollback.journal.group_rows import group_of
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.runs.guard import RunGuard, refusal
from lakewarden.jobs.runs.port import Tools
from lakewarden.jobs.runs.standings import StoredStandings
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError, UntoldWriteError, told_of
from lakewarden.jobs.session.formats.table_commits import WriteMark
from lakewarden.jobs.session.groups.named_statement import NamedStatement
from lakewarden.jobs.session.groups.ready_writes import ReadyWrite
from lakewarden.jobs.session.groups.session_liveness import Liveness
from lakewarden.jobs.session.writes import Directory, Written
from lakewarden.jobs.upsert.once_of_several import Turn, about_unfinished

__all__ = ["Groups"]

_AGAIN = "Run the statement again: nothing of it is in the tables."
_PAUSE: Final = 1.0
"""Seconds between two looks at a statement that somebody else is at."""


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Statements over several tables in one Spark application, by one user."""

    spark: SparkSession
    journal: Journal
    tools: Tools
    """Read the tables, and take changes back; on the session that is there."""
    storage: Callable[[str], StorageOptions]
    """Opens a table's folder."""
    directory: Directory
    user: str

    def run(
        self, statement: str, ready: Callable[[], Sequence[ReadyWrite]], operation: str | None = None
    ) -> tuple[Written, ...]:
        """Change all tables that `ready` gives, in order; under an `operation` id once. Raises what went wrong; then
        none is changed, or the error says which one could not be taken back, and how to go on."""
        parts = ready()
        if operation is None:
            return self._run(statement, parts, [WriteMark.of(uuid.uuid4().hex)] * len(parts))
        named = NamedStatement(operation=operation, text=statement)
        if self._waited(named, parts):
            parts = ready()  # what it reads has moved
        looks = named.looks(parts)
        decision = named.decided(parts, looks)
        if decision.turn is Turn.REFUSE:
            raise PreconditionError(decision.because, hint=decision.hint)
        if decision.turn is Turn.DONE:
            return tuple(part.before(operation) for part in parts)
        group_id = uuid.uuid4().hex
        marks = [named.mark(group_id, look) for look in looks]
        done = self._run(statement, parts, marks, heads=[look.head for look in looks])
        return tuple(replace(one, operation=operation) for one in done)

    def _waited(self, named: NamedStatement, parts: Sequence[ReadyWrite]) -> bool:
        """Wait for the end of a statement of the same id, or bring it about where its session is gone; whether there
        was one. Raises `ConflictError` if it takes too long, `PreconditionError` if it waits for a person."""
        until = self.journal.clock.now() + GROUP_PATIENCE
        waited = False
        while (group := named.unfinished(self.journal, parts)) is not None:
            waited = True
            now = self.journal.clock.now()
            decision = about_unfinished(named.operation, group, now=now, until=until)
            if decision.turn is Turn.REFUSE:
                is_busy = group.head.state is not RollbackState.CONFLICT
                raise (ConflictError if is_busy else PreconditionError)(decision.because, hint=decision.hint)
            if decision.turn is Turn.END:
                with suppress(ConflictError), beyond_cancelling(self.spark, f"end-{group.rollback_id}"):
                    self._saga(group.rollback_id).go_on(group.rollback_id)
                    continue
            require_wanted()
            time.sleep(_PAUSE)
        return waited

    def _run(
        self,
        statement: str,
        parts: Sequence[ReadyWrite],
        marks: Sequence[WriteMark],
        heads: Sequence[int] | None = None,
    ) -> tuple[Written, ...]:
        """`heads` are the versions on which this was decided, None without a decision."""
        for part in parts:
            self.directory.require_writable(part.location)
        group_id = marks[0].group_id
        standings = StoredStandings(self.journal.store)
        changes = [self._change(mark, one, standings) for mark, one in zip(marks, parts, strict=True)]
        for one, change, head in zip(parts, changes, heads or (), strict=heads is not None):
            if head != change.from_version:
                raise self._written_just_now(one, change.from_version)
        now = self.journal.clock.now()
        group = group_of(group_id, changes, statement=statement, actor=self.user, at=now)
        self.journal.begin(group, because=f"{self.user} changes {len(parts)} tables")
        reach("group.begun")
        done: list[Written] = []
        with Liveness(self.journal, group) as alive:
            for part, change, mark in zip(parts, changes, marks, strict=True):
                try:
                    done.append(self._made(mark, alive, part, change))
                except BaseException as error:  # also Ctrl-C: whatever ends it here, it is taken back
                    self._give_up(group_id, alive, changes[len(done) :], error)
                    raise  # whatever was done is taken back, and there is nothing to add
                reach("group.made")
            self._finish(group_id, alive)
        return tuple(done)

    def _change(self, mark: WriteMark, part: ReadyWrite, standings: StoredStandings) -> TableStep:
        """What is to be journaled of a write. Raises a `LakewardenError` if it could not be taken back."""
        table_id = self.directory.table_ids([part.location]).get(part.location)
        standing = None if table_id is None else standings.of(table_id)
        if table_id is None or standing is None:
            raise PreconditionError(
                f"{part.name} is not managed: a statement over several tables is kept "
                "in the journal of managed ones.",
                hint=f"`lakewarden tables register {part.name}`, or write one statement for each table.",
            )
        action, now = RollBack(rollback_id=mark.group_id), self.journal.clock.now()
        because = refusal(standing, action, location=part.location, now=now)
        if because is not None:
            raise PreconditionError(
                f"{part.name} {because}: what this statement changes could not be taken back.",
                hint="Wait for the end of that, or write one statement for each table.",
            )
        self.tools.engine(part.format)  # raises where there is none to take it back with
        seen = self.tools.reader(part.format).observe(part.location)
        if isinstance(seen, LogProblem):
            raise UnreadableError(seen.message, hint=f"`lakewarden tables validate {part.name}` says more.")
        if not seen.capabilities.restore:
            raise RefusedError(
                f"{part.name} uses {', '.join(seen.capabilities.unsupported)}: "
                "lakewarden could not take it back.",
                hint="Write one statement for each table.",
            )
        if part.read_at is not None and part.read_at != seen.version:
            raise self._written_just_now(part, seen.version)
        return TableStep(
            table_id=table_id,
            name=standing.governed.row.name,
            location=part.location,
            from_version=seen.version,
            to_version=seen.version,
            kind=RollbackStep.CHANGE,
            format=part.format,
            format_id=seen.format_id,
            head=seen.head,
            apps=mark.apps,
            fence=mark.fence,
        )

    def _made(self, mark: WriteMark, alive: Liveness, part: ReadyWrite, change: TableStep) -> Written:
        """Make one change, on the version that was journaled."""
        alive.require()
        reader = self.tools.reader(part.format)
        if reader.probe(part.location, seen=change.from_version, head=change.head).moved:
            raise self._written_between(part, change)
        reach("group.making")
        try:
            written = part.commit(mark)
        except LostRaceError as error:
            if self.journal.get(mark.group_id).head.state is not RollbackState.INTENT:
                raise _taken_back_by_another() from error
            raise self._written_between(part, change) from error
        if written is None:
            raise _taken_back_by_another()
        version = mark_found(self.tools.readers, change, mark.group_id)
        if version is not None and made_on(reader, change, version).from_version != change.from_version:
            raise self._written_between(part, change)
        alive.made(change, version)
        return written

    def _written_just_now(self, part: ReadyWrite, version: int) -> ConflictError:
        return ConflictError(f"Somebody wrote to {part.name} just now (version {version}).", hint=_AGAIN)

    def _written_between(self, part: ReadyWrite, change: TableStep) -> ConflictError:
        since = commits_since(self.tools.reader(part.format), part.location, after=change.from_version)
        found = next(iter(since or ()), None)
        told = "" if found is None else f" ({told_of(found)})"
        return ConflictError(f"Somebody wrote to {part.name}{told} after this statement began.", hint=_AGAIN)

    def _finish(self, group_id: str, alive: Liveness) -> None:
        """Nothing is left to know of a group that is whole: its commits say the rest."""
        try:
            alive.close("all of its tables are changed")
        except NotFoundError:
            return  # it is out, and the answer to that was lost
        except ConflictError as error:
            state = self.journal.get(group_id).head.state
            if state is RollbackState.INTENT:
                _tell_that_it_stays(group_id)
            elif state is not RollbackState.DONE:
                raise PreconditionError(
                    "The statement was taken back by somebody else when it was done.",
                    hint=f"`lakewarden rollback show {group_id}` says what became of its tables.",
                ) from error
        except UnavailableError:
            _tell_that_it_stays(group_id)

    def _give_up(
        self, group_id: str, alive: Liveness, left: Sequence[TableStep], error: BaseException
    ) -> None:
        """Take back what was done. Raises if not all of it could be, if somebody else has found that all of it was
        made, or if the statement was cancelled; `left` begins with the change that failed."""
        # Where Spark did not answer, or nobody waited for its answer, it may still be at it.
        is_told = isinstance(error, LakewardenError | PySparkException | Py4JJavaError)
        may_come = not is_told or isinstance(error, UntoldWriteError)
        never = {change.table_id for change in left[int(may_come) :]}
        try:
            ended = self._taken_back(group_id, alive, never)
        except LakewardenError as problem:
            raise PreconditionError(
                f"{_sentence(error)} It is not taken back yet: {problem}",
                hint=f"The daemon does that, or `lakewarden rollback resume {group_id}`.",
            ) from error
        if ended.is_unsettled:
            because = ended.head.message or "somebody else is at it."
            raise PreconditionError(
                f"{_sentence(error)} Not all of it is taken back: {because}",
                hint=f"`lakewarden rollback show {group_id}` says more, and how to go on.",
            ) from error
        if ended.head.state is RollbackState.DONE:
            raise PreconditionError(
                f"{_sentence(error)} But it is done: all of its tables are changed.",
                hint="Do not run it again. "
                f"`lakewarden rollback plan --run {group_id}` shows how to undo it.",
            ) from error
        if is_cancelled():
            raise CancelledError(
                "The statement was cancelled: all of its tables are as they were."
            ) from error

    def _taken_back(self, group_id: str, alive: Liveness, never: Collection[str]) -> Rollback:
        try:
            alive.give_up(never, f"statement {group_id} failed")
            with beyond_cancelling(self.spark, f"undo-{group_id}"):
                return self._saga(group_id).go_on(group_id)
        except ConflictError:
            return self.journal.get(group_id)  # somebody else takes it back, or has

    def _saga(self, group_id: str) -> Saga:
        clock = self.journal.clock
        guard = RunGuard(
            action=RollBack(rollback_id=group_id),
            standings=StoredStandings(self.journal.store),
            claim=lambda: None,
            clock=clock,
            clocks=lambda: None,  # nothing goes by its age
        )

        def permit(row: RollbackRow, step: TableStep) -> None:
            guard.ask(step.table_id, step.name, step.location)

        executor = StepExecutor(tools=self.tools, storage=self.storage, permit=permit)
        return Saga(journal=self.journal, executor=executor, undo_for=timedelta(0))


def _taken_back_by_another() -> ConflictError:
    return ConflictError("The statement was taken back by somebody else while it ran.", hint=_AGAIN)


def _tell_that_it_stays(group_id: str) -> None:
    logging.getLogger("lakewarden").warning(
        "All tables are changed, but the journal cannot be written: until the daemon has noticed, "
        "they are held by statement %s.",
        group_id,
    )


def _sentence(error: BaseException) -> str:
    """An error's own first line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return sentence(lines[0])
