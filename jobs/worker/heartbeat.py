"""The pulse of a run: a thread that keeps its lease alive, and the word whether the run is still ours."""

import threading
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Self

from lakewarden.catalog.boot_clock import seconds_since_boot
from lakewarden.catalog.errors import ConflictError, OutdatedError, UnavailableError
from lakewarden.catalog.logs import get_log
from lakewarden.catalog.state.port import Queue, Run

__all__ = ["Heartbeat"]


class Heartbeat:
    """Reports every `interval` while the block runs. The run is lost once the queue says so, once no report got
    through for a whole `lease` (somebody else may have it by then), or once it took longer than `longest`.

    `on_lost` is called once, from the thread, while the block still runs: it makes what hangs give up.
    """

    def __init__(
        self,
        queue: Queue,
        run: Run,
        worker: str,
        *,
        lease: timedelta,
        interval: timedelta,
        longest: timedelta,
        on_lost: Callable[[], None],
        monotonic: Callable[[], float] = seconds_since_boot,
    ) -> None:
        self._queue, self._run, self._worker = queue, run, worker
        self._lease, self._interval, self._monotonic = lease, interval, monotonic
        self._longest, self._on_lost = longest, on_lost
        self._began_at = self._heard_at = monotonic()
        self._ended = threading.Event()
        self._refused = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def lost(self) -> bool:
        """Whether the run is no longer ours."""
        now = self._monotonic()
        return (
            self._refused.is_set()
            or now - self._heard_at > self._lease.total_seconds()
            or now - self._began_at > self._longest.total_seconds()
        )

    def still_ours(self) -> None:
        """Raise `ConflictError` once the run is lost; called between the steps of an action."""
        if self.lost:
            raise ConflictError(
                f"The run {self._run.request.run_id} was cancelled, took too long, or its lease was lost."
            )

    def confirm(self) -> None:
        """Ask the queue itself, which also makes the lease last. Raises `ConflictError` once the run is lost,
        `UnavailableError` if the queue does not answer."""
        self.still_ours()
        asked_at = self._monotonic()
        if self._queue.heartbeat(self._run, self._worker, self._lease):
            self._heard_at = asked_at
        else:
            self._refused.set()
        self.still_ours()

    def _beat(self) -> None:
        while not self._ended.wait(self._interval.total_seconds()):
            if not self.lost:
                self._report()
            if self.lost:
                self._on_lost()
                return

    def _report(self) -> None:
        asked_at = self._monotonic()
        try:
            if self._queue.heartbeat(self._run, self._worker, self._lease):
                self._heard_at = asked_at
            else:
                self._refused.set()
        except (UnavailableError, ConflictError) as error:
            get_log("worker").warning("heartbeat failed", because=str(error))
        except (
            OutdatedError
        ) as error:  # the queue is a newer lakewarden's: its lease cannot be renewed any more
            get_log("worker").warning("run lost", because=str(error))
            self._refused.set()
