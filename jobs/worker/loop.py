"""The loop of a worker: run after run, until there is a reason to end."""

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from lakewarden.catalog.errors import ConflictError, UnavailableError
from lakewarden.catalog.logs import get_log
from lakewarden.jobs.worker.runner import Runner

__all__ = ["WorkLoop"]

_LOOK_AT_PARENT: Final = 1.0


class WorkLoop:
    """Runs one run after the other until it is drained, idle, orphaned, broken or outdated."""

    def __init__(
        self,
        runner: Runner,
        *,
        idle: timedelta,
        poll: timedelta,
        parent: int | None = None,
        is_broken: Callable[[], bool] = lambda: False,
        is_outdated: Callable[[], bool] = lambda: False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runner, self._idle, self._poll = runner, idle, poll
        self._parent, self._is_broken, self._is_outdated = parent, is_broken, is_outdated
        self._monotonic = monotonic
        self._draining = threading.Event()
        self._log = get_log("worker").bind(worker=runner.worker)

    def drain(self) -> None:
        """End after the run in hand."""
        self._draining.set()

    def work(self) -> int:
        """Work until there is a reason to end. Returns the exit code."""
        if self._parent is not None:
            threading.Thread(target=self._watch_parent, name="parent", daemon=True).start()
        busy_at = self._monotonic()
        while not self._draining.is_set():
            if self._is_outdated():
                self._log.info("worker ends", because="a key was rotated that its executors were told")
                return 0
            if self._next():
                busy_at = self._monotonic()
                if self._is_broken():
                    self._log.warning("worker ends", because="its Spark session broke")
                    return 1
            elif self._monotonic() - busy_at >= self._idle.total_seconds():
                self._log.info("worker ends", because="there is no work")
                return 0
            else:
                self._draining.wait(self._poll.total_seconds())
        self._log.info("worker ends", because="it was drained")
        return 0

    def _next(self) -> bool:
        try:
            return self._runner.run_next() is not None
        except (UnavailableError, ConflictError) as error:
            self._log.warning("queue does not answer", because=str(error))
            return False

    def _watch_parent(self) -> None:
        """An orphan is adopted by another process: then its daemon is gone."""
        while os.getppid() == self._parent:
            time.sleep(_LOOK_AT_PARENT)
        self._log.warning("daemon is gone")
        self.drain()
