"""A host of workers: `lakewarden worker`, which keeps worker processes for a daemon elsewhere, and leads nothing.

The queue is all that the two share. A host does for its own workers what an embedding daemon does for its own:
starts them when runs wait, restarts them with back-off, drains them, and kills one that has lost its run.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from lakewarden.catalog.errors import (
    ConflictError,
    ExitCode,
    NotFoundError,
    OutdatedError,
    PreconditionError,
    UnavailableError,
    UnreadableError,
)
from lakewarden.catalog.state.port import Queue, RunState
from lakewarden.daemon.process.last_resort import watching
from lakewarden.daemon.process.stop_signals import asking
from lakewarden.daemon.telemetry.liveness import ProcessRole, Vitals
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.daemon.telemetry.probes import Pages
from lakewarden.daemon.workers.pool import WorkerPool

__all__ = ["HostParts", "WorkerHost"]

_POLL: Final = timedelta(seconds=1)
"""How often a host looks at queue and workers; the longest a new run waits for a worker to start."""
_SLACK: Final = timedelta(seconds=5)
"""What a stopping host gets beyond the time for its workers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostParts:
    """What a host drives."""

    queue: Queue
    pool: WorkerPool
    count: int
    """So many workers at the most."""
    formats: frozenset[str]
    """The formats that the workers can work on."""
    drain: timedelta
    vitals: Vitals
    metrics: Metrics
    pages: Pages
    require_current: Callable[[], None] = lambda: None
    """Raises `OutdatedError` or `PreconditionError` while the system tables are not of this version."""


@dataclass(slots=True)
class WorkerHost:
    """One host. `run` returns when it was told to stop and its workers have ended."""

    parts: HostParts
    stopping: threading.Event = field(default_factory=threading.Event)
    _silent: bool = False

    def run(self) -> ExitCode:
        """Keep workers until SIGTERM or SIGINT; they get `drain` for the runs in hand, then they are killed.
        Returns FAILED if queue or system tables are a newer lakewarden's. Raises `UnavailableError` if the port
        is taken."""
        parts = self.parts
        with self._signals(), self._serving():
            try:
                while not self.stopping.wait(_POLL.total_seconds()):
                    parts.vitals.beat()
                    self._look()
            except OutdatedError as error:
                get_log("workers").error("ending", because=str(error), hint=error.hint)
                return ExitCode.FAILED
            return ExitCode.OK

    def _look(self) -> None:
        """One look at the queue. What does not answer is waited for: workers that live ask it themselves."""
        parts = self.parts
        try:
            runs = parts.pool.look(parts.queue)
        except OutdatedError:
            raise
        except (UnavailableError, ConflictError) as error:
            self._silence(str(error))
            return
        ours = [run for run in runs if run.request.runtime in parts.formats]
        waiting = sum(run.state is RunState.QUEUED for run in ours)
        wanted = min(parts.count, parts.pool.held + waiting) if waiting else 0
        unfit = self._unfit() if wanted > parts.pool.alive else None
        self._silence(unfit)
        parts.pool.tend(wanted if unfit is None else 0)
        parts.metrics.unfinished.set(len(runs))
        parts.metrics.workers.set(parts.pool.alive)

    def _unfit(self) -> str | None:
        """Why no worker may be started now; None if nothing is known against it. Raises `OutdatedError`."""
        try:
            self.parts.require_current()
        except PreconditionError as error:
            return error.in_full
        except (NotFoundError, UnavailableError, UnreadableError):
            return None  # workers that need them will say so
        return None

    def _silence(self, problem: str | None) -> None:
        """Note whether there is something in the way, and say so when that changes."""
        self.parts.vitals.cycle(problem)
        if problem is not None and not self._silent:
            get_log("workers").error("waiting", because=problem)
        self._silent = problem is not None

    @contextmanager
    def _serving(self) -> Iterator[None]:
        parts = self.parts
        parts.pages.start()
        parts.vitals.become(ProcessRole.WORKING)
        get_log("workers").info("serving", port=parts.pages.port)
        try:
            yield
        finally:
            parts.vitals.become(ProcessRole.STOPPING)
            parts.pool.drain(parts.drain)
            parts.pages.stop()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT stop the host; a second one ends it at once."""
        ask, after = self.stopping.set, self.parts.drain + _SLACK
        with asking(ask), watching(asked=ask, give_up=self.parts.pool.kill, after=after):
            yield
