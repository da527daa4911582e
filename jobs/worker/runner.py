"""One run from claim to finish: recovered or executed, classified, recorded in the queue."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, assert_never

from lakewarden.catalog.boot_clock import seconds_since_boot
from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import (
    ConflictError,
    LakewardenError,
    OutdatedError,
    PreconditionError,
    UnavailableError,
    UnreadableError,
)
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.logs import Log, get_log
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.registry.other_installations import Others
from lakewarden.catalog.state.port import Queue, Result, Run, RunRequest
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.registry import SPECS, decode, required_head, verdict_of
from lakewarden.jobs.actions.spec import GiveUp, Recovered, Retry
from lakewarden.jobs.runs.guard import RunGuard, Standings
from lakewarden.jobs.runs.host_clock import HostClock
from lakewarden.jobs.runs.port import JobContext, Ledger, Report, Rollbacks, Target, Tools
from lakewarden.jobs.worker.dispatch import execute
from lakewarden.jobs.worker.heartbeat import Heartbeat

__all__ = ["Finished", "Runner"]

_PAUSE: Final = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """A run that this worker brought to an end."""

    run: Run
    result: Result
    recorded: bool
    """False if the run was no longer ours by then."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Runner:
    """Claims and executes runs for one worker, one at a time."""

    worker: str
    queue: Queue
    tools: Tools
    """They work on tables of each format."""
    metastore: Metastore | None
    clock: Clock
    storage: Callable[[str], StorageOptions]
    """Gives a location's options."""
    lease: timedelta
    """How long a run stays ours without a report."""
    heartbeat: timedelta
    """How often we report."""
    longest_run: timedelta
    """When a run counts as stuck."""
    clocks: HostClock
    """Compares this host's clock with the control database's."""
    rollbacks: Rollbacks | None = None
    """The journal of rollbacks."""
    standings: Standings | None = None
    """What the system tables say of a table."""
    ledger: Ledger | None = None
    """What stood in its properties before us; None: there are none."""
    installation: Callable[[], str | None] = lambda: None
    """Whose runs these are."""
    require_current: Callable[[], None] = lambda: None
    """Raises while the system tables are not of this version: then nothing is begun."""
    kept: Callable[[Run], AbstractContextManager[object]] = nullcontext
    """What is said while it is open is kept with the run."""
    monotonic: Callable[[], float] = seconds_since_boot
    _reported: deque[Finished] = field(default_factory=deque, init=False)
    """What was reported and is, for all we know, on no record yet; what the queue has had longest comes first."""

    def run_next(self) -> Finished | None:
        """Take the best due run and finish it; None if there is none. Raises `UnavailableError` while the queue does
        not answer, `OutdatedError` once a newer lakewarden has taken over, `PreconditionError` while an upgrade is
        waited for: what was claimed is given back; a run that was begun by then is finished by its lease and its
        table's log."""
        self._report_again()
        run = self.queue.claim(self.worker, self.lease, runtimes=self.tools.runtimes)
        if run is None:
            return None
        reach("run.claimed")
        try:
            self.require_current()
        except (OutdatedError, PreconditionError):
            self.queue.give_back(run.request.run_id, self.worker)
            raise
        if not self.queue.start(run.request.run_id, self.worker, self.lease):
            return None
        reach("run.started")
        with self.kept(run):
            return self._run(run)

    def _report_again(self) -> None:
        """Report once more what was lost with its database before a leader could record it. What the queue still has
        waits for its leader, and so does what it was told later; what it neither has nor takes is on record."""
        while self._reported:
            first = self._reported[0]
            if self.queue.get(first.run.request.run_id) is not None:
                return
            if self.queue.finish(first.run, self.worker, first.result):
                get_log("worker").warning("run reported again", run_id=first.run.request.run_id)
                self._reported.append(first)
            self._reported.popleft()

    def _run(self, run: Run) -> Finished:
        run = replace(run, started_at=self.clock.now())
        log = get_log("worker").bind(
            run_id=run.request.run_id, action=run.request.action, table=run.request.name
        )
        log.info(
            "run started",
            worker=self.worker,
            attempt=run.request.attempt,
            version=run.request.requires_version,
            because=run.request.because,
        )
        began = self.monotonic()
        with self._pulse(run) as pulse:
            result = self._result_of(run, pulse, log)
            seconds = self.monotonic() - began
            result = replace(result, actual_seconds=seconds)
            recorded = self._finish(run, result)
        reach("run.finished")
        log.info(
            "run finished",
            outcome=result.outcome,
            seconds=round(seconds, 3),
            version=result.committed_version,
            message=result.message,
            recorded=recorded,
        )
        finished = Finished(run=replace(run, finished_at=self.clock.now()), result=result, recorded=recorded)
        if recorded:
            self._reported.append(finished)
        return finished

    def _pulse(self, run: Run) -> Heartbeat:
        return Heartbeat(
            self.queue,
            run,
            self.worker,
            lease=self.lease,
            interval=self.heartbeat,
            longest=self.longest_run,
            on_lost=self.tools.interrupt,
            monotonic=self.monotonic,
        )

    def _result_of(self, run: Run, pulse: Heartbeat, log: Log) -> Result:
        try:
            recovered = self._recovered(run)
            return _succeeded(self._execute(run, pulse)) if recovered is None else recovered
        except OutdatedError:
            log.warning(
                "run left to a newer lakewarden"
            )  # it is not this run's fault: its successor goes on with it
            raise
        except LakewardenError as error:
            if pulse.lost and self._was_cancelled(run):
                return Result(outcome=Outcome.CANCELLED, message="It was cancelled while it ran.")
            if not isinstance(error, ConflictError):
                log.warning("run failed", exc_info=True)
            return _failed(error)
        except Exception:
            # A fault of ours in one action must not take the worker and its warm session with it.
            log.exception("run failed for an unforeseen reason")
            return Result(
                outcome=Outcome.FAILED,
                message="It failed for a reason that lakewarden did not foresee.",
                error_class="ExecutionError",
                hint=f"The log of worker {self.worker} has the whole story.",
            )

    def _recovered(self, run: Run) -> Result | None:
        """What an earlier attempt came to; None if the run has to be executed."""
        request = run.request
        if request.attempt <= 1:
            return None
        after = -1 if request.requires_version is None else request.requires_version
        reader = self.tools.reader(request.runtime)

        def commits() -> Iterable[Commit]:
            is_there = reader.is_table(request.location)
            return reader.commits(request.location, after=after) if is_there else ()

        match verdict_of(run, commits):
            case Recovered(version=version):
                return Result(
                    outcome=Outcome.SUCCEEDED,
                    message=f"an earlier attempt had committed version {version}",
                    committed_version=version,
                )
            case GiveUp(because=because):
                return Result(outcome=Outcome.ABANDONED, message=because)
            case Retry():
                return None
            case other:
                assert_never(other)

    def _execute(self, run: Run, pulse: Heartbeat) -> Report:
        request = run.request
        action = _decoded(request)
        decided = None if SPECS[request.action].on_any_head else required_head(action)
        reader = self.tools.reader(request.runtime)
        if (
            decided is not None
            and reader.probe(request.location, seen=decided.version, head=decided.token).moved
        ):
            raise ConflictError(
                f"{request.name} moved past version {decided}, on which this was decided; "
                "nothing was changed."
            )
        self._refuse_held(request)
        reach("run.checked")
        clock = self._clock_of(request)
        ctx = JobContext(
            target=Target(
                table_id=request.table_id,
                name=request.name,
                location=request.location,
                format=request.runtime,
            ),
            run_id=request.run_id,
            reader=reader,
            clock=clock,
            engine=self.tools.engine(request.runtime),
            metastore=self.metastore,
            still_ours=pulse.still_ours,
            storage=self.storage(request.location),
            rollbacks=self.rollbacks,
            guard=RunGuard(
                action=action,
                standings=self.standings,
                claim=pulse.confirm,
                clock=clock,
                clocks=self.clocks.require_agreeing,
                ordered=request.is_ordered,
            ),
            ledger=self.ledger,
            installation=self.installation,
            entries=self.tools.entries,
            readers=self.tools.readers,
            others=Others(
                metastore=self.metastore,
                storage=self.storage,
                installation=self.installation,
                clock=self.clock,
            ),
        )
        if SPECS[request.action].amid_rollbacks:
            pulse.confirm()  # its table stands for many: each is asked about before its own commit
        else:
            ctx.require_allowed()
        reach("run.executing")
        report = execute(ctx, action)
        reach("run.executed")
        return report

    def _clock_of(self, request: RunRequest) -> Clock:
        """What tells how old something is."""
        return self.clocks.earlier() if SPECS[request.action].by_age else self.clock

    def _refuse_held(self, request: RunRequest) -> None:
        if self.rollbacks is None or SPECS[request.action].amid_rollbacks:
            return
        holder = self.rollbacks.locked_by(request.table_id)
        if holder is not None:
            raise ConflictError(f"{request.name} is held by rollback {holder}; nothing was changed.")

    def _finish(self, run: Run, result: Result) -> bool:
        """Tell the queue, for as long as the lease may last if it does not answer: after that the log tells."""
        until = self.monotonic() + self.lease.total_seconds()
        while True:
            try:
                return self.queue.finish(run, self.worker, result)
            except (UnavailableError, ConflictError):
                if self.monotonic() >= until:
                    raise
                time.sleep(_PAUSE.total_seconds())

    def _was_cancelled(self, run: Run) -> bool:
        try:
            known = self.queue.get(run.request.run_id)
        except UnavailableError:
            return False
        return known is not None and known.cancel_requested


def _decoded(request: RunRequest) -> AnyAction:
    try:
        return decode(request.payload)
    except UnreadableError as error:
        raise PreconditionError(
            f"The {request.action} of {request.name} was queued by another version of lakewarden.",
            hint="Nothing has to be done: it is planned anew.",
        ) from error


def _succeeded(report: Report) -> Result:
    return Result(
        outcome=Outcome.SKIPPED if report.skipped else Outcome.SUCCEEDED,
        message=report.message,
        committed_version=report.committed_version,
        actual_files=report.files,
        actual_bytes=report.bytes,
        details=report.details,
    )


def _failed(error: LakewardenError) -> Result:
    return Result(
        outcome=Outcome.FAILED,
        message=str(error),
        hint=error.hint or None,
        error_class=type(error).__name__,
        retry=error.retry,
    )
