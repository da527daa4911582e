"""Runs whose worker is gone: the table's own log says whether they happened, not anybody's memory."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.state.port import Queue, Result, Run, RunLine, RunLog, RunRequest
from lakewarden.catalog.units import count_of
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.jobs.actions.registry import verdict_of
from lakewarden.jobs.actions.spec import GiveUp, Recovered, Retry

__all__ = ["Reaper"]

Asked = Callable[[str, Callable[[], tuple[Commit, ...]]], tuple[Commit, ...]]

_DOUBLINGS: Final = 10
"""How often the pause before another attempt doubles: without an end it would outgrow every date."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reaper:
    """Settles expired runs: done if the log carries their id, queued again for some attempts, else abandoned. How the
    run ended is said among its lines."""

    queue: Queue
    run_log: RunLog
    registry: Registry
    clock: Clock
    attempts: int
    """So many at the most."""
    pause: timedelta
    silence: Callable[[Run], bool] = lambda run: False
    """Ends the worker that has a run, where it is one of ours: what has lost its run must not wake and go on."""
    asked: Asked = lambda location, ask: ask()
    """Asks about a location; raises `UnavailableError` where nobody answers for too long."""

    def lost(self) -> tuple[Run, ...]:
        """Runs whose lease ran out."""
        return self.queue.expired()

    def finish(self, run: Run) -> bool:
        """Finish one. False if somebody else was faster. Raises `UnavailableError` if the log cannot be asked now,
        `RefusedError` if its format is not installed here."""
        request = run.request
        self.silence(run)
        match verdict_of(run, partial(self._commits, run)):
            case Recovered(version=version):
                message = f"Its worker was lost after it had committed version {version}."
                result = Result(outcome=Outcome.SUCCEEDED, message=message, committed_version=version)
                return self._close(request, result)
            case GiveUp(because=because):
                return self._close(request, Result(outcome=Outcome.ABANDONED, message=because, retry=True))
            case Retry():
                return self._again(request)

    def _again(self, request: RunRequest) -> bool:
        get_log("reaper").warning(
            "run lost",
            run_id=request.run_id,
            action=request.action,
            table=request.name,
            attempt=request.attempt,
        )
        if request.attempt < self.attempts:
            not_before = self.clock.now() + self.pause * 2 ** min(request.attempt - 1, _DOUBLINGS)
            again = self.queue.requeue(request.run_id, attempt=request.attempt + 1, not_before=not_before)
            if again:
                self._say(request, "warning", f"run lost: attempt {request.attempt + 1} follows")
            return again
        message = f"Its worker was lost in {count_of(request.attempt, 'attempt')}."
        return self._close(request, Result(outcome=Outcome.ABANDONED, message=message))

    def _close(self, request: RunRequest, result: Result) -> bool:
        closed = self.queue.close(request.run_id, result)
        if closed:
            level = "info" if result.outcome is Outcome.SUCCEEDED else "warning"
            self._say(request, level, f"run finished outcome={result.outcome} message={result.message}")
        return closed

    def _say(self, request: RunRequest, level: str, message: str) -> None:
        """A database that does not answer costs the line, never the run."""
        line = RunLine(at=self.clock.now(), level=level, message=message)
        with suppress(UnavailableError):
            self.run_log.write(request.run_id, [line])

    def _commits(self, run: Run) -> Iterable[Commit]:
        """Commits after the version the run was decided on; none where there is no table (yet, or any more). Only the
        run's own format is asked: a folder may hold tables of several. Raises `RefusedError` without that format."""
        location, after = run.request.location, run.request.requires_version
        reader = reader_of(self.registry.readers, run.request.runtime)

        def in_log() -> tuple[Commit, ...]:
            is_there = reader.is_table(location)
            return tuple(reader.commits(location, after=-1 if after is None else after)) if is_there else ()

        return self.asked(location, in_log)
