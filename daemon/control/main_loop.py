"""The daemon's main loop: follow or lead, sweep when the clock says so, keep workers as long as there is work.

States: starting -> following <-> leading -> stopping. Only a leader plans, writes and runs workers. Whatever does not
answer is waited for; a newer leader or a newer schema of the system tables makes this daemon step down.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import (
    ExitCode,
    FencedError,
    LakewardenError,
    OutdatedError,
    PreconditionError,
    UnavailableError,
)
from lakewarden.catalog.state.port import Queue, RunState
from lakewarden.catalog.system.port import Fence
from lakewarden.daemon.control.cycle import Cycle
from lakewarden.daemon.control.cycle_report import CycleReport
from lakewarden.daemon.control.leadership import Leadership
from lakewarden.daemon.control.ticker import Ticker
from lakewarden.daemon.process.last_resort import watching
from lakewarden.daemon.process.stop_signals import asking
from lakewarden.daemon.telemetry.failed_cycles import Troubles
from lakewarden.daemon.telemetry.liveness import ProcessRole, Vitals
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.daemon.telemetry.openlineage_sender import EventTail
from lakewarden.daemon.telemetry.probes import Pages
from lakewarden.daemon.telemetry.webhook import Webhook
from lakewarden.daemon.workers.pool import WorkerPool

__all__ = ["DISCOVER", "PATIENCE", "SWEEP", "Service", "ServiceParts", "Until"]

SWEEP: Final = "sweep"
DISCOVER: Final = "discover"
PATIENCE: Final = timedelta(minutes=5)
"""A main loop that is silent for so long hangs: no single table takes longer to look at."""
_POLL: Final = timedelta(seconds=1)
"""How often the loop looks at queue and workers between sweeps; the longest a new run waits for a worker to start."""
_HASTE: Final = timedelta(seconds=0.3)
"""Pause between two cycles while somebody waits for the fleet to be done (`--until-idle`)."""
_SLACK: Final = timedelta(seconds=5)
"""What a stopping daemon gets beyond the time for its workers: a step that has not ended by then is given up."""
_ATTEMPTS: Final = 20
"""Cycles in a row that may go wrong before `--until-idle` gives up."""


class Until(StrEnum):
    """How long a daemon runs: for ever, for one cycle, until nothing is left to do."""

    STOPPED = "stopped"
    ONCE = "once"
    IDLE = "idle"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceParts:
    """What the main loop drives."""

    queue: Queue
    cycle: Cycle
    leadership: Leadership
    ticker: Ticker
    pool: WorkerPool
    workers: int
    drain: timedelta
    vitals: Vitals
    metrics: Metrics
    troubles: Troubles
    clock: Clock
    pages: Pages | None = None
    """None where they are not wanted."""
    webhook: Webhook | None = None
    """Likewise."""
    tails: tuple[EventTail, ...] = ()
    """One per sink."""


@dataclass(slots=True)
class Service:
    """One daemon. `run` returns when it is over, `stop` (also from a signal) asks for that."""

    parts: ServiceParts
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set by `stop`; the cycle looks at it between two tables."""
    _asked_at: float | None = None
    _troubles: int = 0
    _failed_runs: int = 0
    _discover: bool = True
    _hasty: bool = False
    _proven: bool = False

    def run(self, until: Until = Until.STOPPED) -> ExitCode:
        """Run. Returns OK, PARTLY if a run failed (`idle`), PRECONDITION if another daemon leads (`once`, `idle`),
        FAILED if it had to give up. Raises `UnavailableError` if the port of the pages is taken."""
        with self._signals(), self._running():
            match until:
                case Until.STOPPED:
                    return self._for_ever()
                case Until.ONCE:
                    return self._once()
                case Until.IDLE:
                    return self._until_idle()

    def stop(self) -> None:
        """End after the present step; workers finish their runs, within `drain` of now."""
        self._ask()
        self.parts.ticker.poke(SWEEP)

    def _ask(self) -> None:
        """From any thread, and from a signal's handler: nothing here waits."""
        if self._asked_at is None:
            self._asked_at = time.monotonic()
        self.stopping.set()

    def _for_ever(self) -> ExitCode:
        log, rebuilds = get_log("daemon"), 0
        while not self.stopping.is_set():
            self.parts.vitals.beat()
            due = self.parts.ticker.wait(_POLL)
            if self.parts.ticker.rebuilds > rebuilds:
                rebuilds = self.parts.ticker.rebuilds
                self.parts.metrics.clock_rebuilds.inc()
                log.warning("the scheduler had stopped and was replaced")
            if self.stopping.is_set():
                break
            self._discover |= DISCOVER in due
            try:
                if SWEEP in due or self.parts.leadership.fence is None:
                    self._sweep(quietly=SWEEP not in due)
                self._tend()
            except OutdatedError as error:
                log.error("stepping down", because=str(error), hint=error.hint)
                return ExitCode.FAILED
        return ExitCode.OK

    def _once(self) -> ExitCode:
        report = self._sweep(quietly=False)
        while report is not None and report.searching and not self.stopping.is_set():
            report = self._sweep(quietly=False)
        if report is None and self._troubles == 0:
            return ExitCode.PRECONDITION
        return ExitCode.OK if report is not None and report.trouble is None else ExitCode.FAILED

    def _until_idle(self) -> ExitCode:
        self._hasty = True
        while not self.stopping.is_set():
            self.parts.vitals.beat()
            report = self._sweep(quietly=False)
            if report is None and self._troubles == 0:
                return ExitCode.PRECONDITION
            if self._troubles > _ATTEMPTS:
                return ExitCode.FAILED
            if report is not None and report.idle:
                break
            self._tend()
            self.stopping.wait(_HASTE.total_seconds())
        return ExitCode.PARTLY if self._failed_runs else ExitCode.OK

    def _sweep(self, *, quietly: bool) -> CycleReport | None:
        """Take or keep the lead and run one cycle; None if another daemon leads or something does not answer.

        `quietly`: it is not time for a sweep, only try to take over from a leader that is gone.
        """
        try:
            fence = self.parts.leadership.step()
        except FencedError as error:
            self._fenced(error)
            return None
        except LakewardenError as error:
            said = error.in_full if isinstance(error, PreconditionError) else str(error)
            self._trouble(said, quietly=quietly)
            return None
        if fence is None:
            self._follow(quietly=quietly)
            return None
        self._become(ProcessRole.LEADING)
        return self._cycle(fence)

    def _cycle(self, fence: Fence) -> CycleReport | None:
        parts, discover, self._discover = self.parts, self._discover, False
        try:
            report = parts.cycle.run(fence, may_plan=parts.leadership.may_plan, discover=discover)
        except FencedError as error:
            self._fenced(error)
            return None
        if report.stopped:
            get_log("cycle").info(report.sentence())
            return None
        parts.vitals.cycle(report.trouble)
        self._note(report.trouble, left_out=report.left_out)
        for tail in parts.tails:
            tail.look()
        self._troubles = 0 if report.trouble is None else self._troubles + 1
        self._failed_runs += report.failed_runs
        if report.searching:
            parts.ticker.poke(SWEEP)
        log = get_log("cycle")
        # Somebody who waits for the fleet to be done need not read three times a second that it is not.
        calm = log.debug if self._hasty and not (report.eventful or report.idle) else log.info
        (calm if report.trouble is None else log.error)(report.sentence())
        return report

    def _fenced(self, error: FencedError) -> None:
        """A newer leader has committed: write nothing more, let workers finish."""
        if isinstance(error, OutdatedError):
            raise error
        get_log("daemon").warning("stepping down", because=str(error))
        self.parts.leadership.fenced()
        self._follow(quietly=True)

    def _follow(self, *, quietly: bool) -> None:
        self._become(ProcessRole.FOLLOWING)
        self.parts.vitals.cycle(None)
        self._note(None)  # what failed before is the leader's to say now
        self.parts.pool.ask_to_end()
        if not quietly:
            get_log("daemon").info("following: another daemon leads")

    def _note(self, trouble: str | None, *, left_out: str | None = None) -> None:
        """Where `status` and `doctor` find it. Nothing is written while cycles go through."""
        said = left_out if trouble is None else trouble
        if said is not None:
            self.parts.troubles.failed(said, self.parts.clock.now(), wholly=trouble is not None)
        elif not self._proven:
            self.parts.troubles.passed()
        self._proven = said is None

    def _trouble(self, problem: str, *, quietly: bool) -> None:
        self._troubles += 1
        self._note(problem)
        self.parts.vitals.cycle(problem)
        if not quietly:
            get_log("daemon").error("waiting", because=problem)

    def _tend(self) -> None:
        """Keep as many workers as there are runs for, while leading."""
        parts = self.parts
        if parts.leadership.fence is None:
            parts.pool.tend(0)
        else:
            try:
                runs = parts.pool.look(parts.queue)
            except UnavailableError:  # the next sweep will say so
                return
            waiting = sum(run.state is RunState.QUEUED for run in runs)
            parts.pool.tend(min(parts.workers, len(runs)) if waiting else 0)
            parts.metrics.unfinished.set(len(runs))
        parts.metrics.workers.set(parts.pool.alive)

    def _become(self, role: ProcessRole) -> None:
        self.parts.vitals.become(role)
        self.parts.metrics.leader.set(role is ProcessRole.LEADING)

    @contextmanager
    def _running(self) -> Iterator[None]:
        parts = self.parts
        if parts.pages is not None:
            parts.pages.start()
            get_log("daemon").info("serving", port=parts.pages.port)
        if parts.webhook is not None:
            parts.webhook.start()
        for tail in parts.tails:
            tail.start()
        parts.ticker.start()
        parts.leadership.start()
        try:
            yield
        finally:
            self._become(ProcessRole.STOPPING)
            parts.ticker.stop()
            # The lease goes first: another daemon may lead while our workers finish; their runs stay theirs.
            parts.leadership.stop()
            parts.pool.drain(self._left())
            if parts.webhook is not None:
                parts.webhook.stop()
            for tail in parts.tails:
                tail.stop()
            if parts.pages is not None:
                parts.pages.stop()

    def _left(self) -> timedelta:
        """What is left of the time in which a stopping daemon ends."""
        gone = 0.0 if self._asked_at is None else time.monotonic() - self._asked_at
        return max(self.parts.drain - timedelta(seconds=gone), timedelta(0))

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT stop the daemon in an orderly way, within `drain`; a second one ends it at once."""
        if threading.current_thread() is not threading.main_thread():
            yield  # embedded: whoever runs us stops us
            return
        give_up, after = self.parts.pool.kill, self.parts.drain + _SLACK
        with asking(self._ask), watching(asked=self._ask, give_up=give_up, after=after):
            yield
