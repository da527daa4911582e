"""Cancelled work of one Spark, and whether it goes on for too long."""

import threading
import time
from collections.abc import Callable

__all__ = ["CancelledWork"]


class CancelledWork:
    """The operations of one Spark application, from `begin` to `end`. Neither Spark's parser nor its analysis nor an
    expression looks whether anybody still wants it. Thread-safe; `outlasts` is asked by one thread."""

    def __init__(self, patience: float, *, now: Callable[[], float] = time.monotonic) -> None:
        """`patience` in seconds."""
        self._patience, self._now = patience, now
        self._lock = threading.Lock()
        self._calls: dict[str, float | None] = {}
        """The operations that wait for an answer of Spark's, and when each was cancelled."""
        self._last: float | None = None
        """When something was last cancelled; None once nothing of it can be left."""
        self._left_since: float | None = None
        """Since when each look has found tasks that compute for nobody."""

    def begin(self, operation: str) -> None:
        """An operation calls into Spark."""
        with self._lock:
            self._calls[operation] = None

    def end(self, operation: str) -> None:
        """The call has its answer. Tasks of it may go on."""
        with self._lock:
            self._calls.pop(operation, None)

    def cancel(self, operation: str) -> None:
        """Nobody wants it any more."""
        with self._lock:
            self._last = self._now()
            if operation in self._calls:
                self._calls[operation] = self._last

    def outlasts(self, left_tasks: Callable[[], int | None]) -> bool:
        """Whether a call, or at each look some task, has gone on for longer than the patience. `left_tasks` tells how
        many tasks compute for nobody, None if Spark does not say."""
        with self._lock:
            now, last = self._now(), self._last
            since = [one for one in self._calls.values() if one is not None]
        if last is None:
            return False
        if since and now - min(since) > self._patience:
            return True
        left = left_tasks()
        if left:
            self._left_since = self._left_since or now
            return now - self._left_since > self._patience
        if left == 0:
            self._left_since = None
            with self._lock:
                if not since and self._last == last and now - last > self._patience:
                    self._last = None
        return False
