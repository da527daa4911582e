"""The pulse of a run: a thread that keeps its lease alive, and the word whether the run is still ours."""

import threading
from collections.abc import Callable
from datetime import timedelta

from lakewarden.catalog.boot_clock import seconds_since_boot
from lakewarden.catalog.errors import ConflictError, OutdatedError, UnavailableError
from lakewarden.catalog.logs import get_log
from lakewarden.catalog.state.port import Queue, Run
from lakewarden.catalog.threads import Repeating

__all__ = ["Heartbeat"]


class Heartbeat(Repeating):
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
        super().__init__("heartbeat", interval.total_seconds())
        self._queue, self._claimed, self._worker = queue, run, worker
        self._lease, self._monotonic = lease, monotonic
        self._longest, self._on_lost = longest, on_lost
        self._began_at = self._heard_at = monotonic()
        self._refused = threading.Event()

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
                f"The run {self._claimed.request.run_id} was cancelled, took too long, or its lease was lost."
            )

    def confirm(self) -> None:
        """Ask the queue itself, which also makes the lease last. Raises `ConflictError` once the run is lost,
        `UnavailableError` if the queue does not answer."""
        self.still_ours()
        asked_at = self._monotonic()
        if self._queue.heartbeat(self._claimed, self._worker, self._lease):
            self._heard_at = asked_at
        else:
            self._refused.set()
        self.still_ours()

    def beat(self) -> bool:
        """Report, and tell when the run is lost."""
        if not self.lost:
            self._report()
        if self.lost:
            self._on_lost()
            return False
        return True

    def _report(self) -> None:
        asked_at = self._monotonic()
        try:
            if self._queue.heartbeat(self._claimed, self._worker, self._lease):
                self._heard_at = asked_at
            else:
                self._refused.set()
        except (UnavailableError, ConflictError) as error:
            get_log("worker").warning("heartbeat failed", because=str(error))
        except OutdatedError as error:  # a newer lakewarden has the queue: no lease is renewed any more
            get_log("worker").warning("run lost", because=str(error))
            self._refused.set()
