"""Is the process alive, and is it of use? Facts that the main loop reports, judged when a probe asks."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

__all__ = ["ProbeAnswer", "ProcessRole", "Vitals"]


class ProcessRole(StrEnum):
    """What this process is doing: starting, waiting for the lease, leading, keeping workers, or on its way out."""

    STARTING = "starting"
    FOLLOWING = "following"
    LEADING = "leading"
    WORKING = "working"
    STOPPING = "stopping"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeAnswer:
    """What a probe is told: yes or no, and a sentence."""

    ok: bool
    message: str


class Vitals:
    """Facts reported by the loop, questions answered to probes. Thread-safe.

    Live: the main loop came round within `patience`. Ready: live, knows whether it leads, and (if it does) its last
    cycle went through. `kind` is what the process calls itself in its answers.
    """

    def __init__(
        self, *, patience: timedelta, kind: str = "daemon", monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience, self._kind, self._monotonic = patience.total_seconds(), kind, monotonic
        self._lock = threading.Lock()
        self._beat = monotonic()
        self._role = ProcessRole.STARTING
        self._trouble: str | None = None

    def beat(self) -> None:
        """The main loop came round."""
        with self._lock:
            self._beat = self._monotonic()

    def become(self, role: ProcessRole) -> None:
        """What the process is doing now."""
        with self._lock:
            self._role = role

    def cycle(self, trouble: str | None) -> None:
        """A cycle (of a host of workers: a look at the queue) went through (None), or what stopped it."""
        with self._lock:
            self._trouble = trouble

    @property
    def role(self) -> ProcessRole:
        """What the process is doing."""
        with self._lock:
            return self._role

    def live(self) -> ProbeAnswer:
        """Restart the process if this says no."""
        with self._lock:
            silent = self._monotonic() - self._beat
        if silent > self._patience:
            return ProbeAnswer(ok=False, message=f"The main loop has been silent for {silent:.0f} seconds.")
        return ProbeAnswer(ok=True, message="The main loop goes round.")

    def ready(self) -> ProbeAnswer:
        """Whether the daemon does its work: leading without trouble, following, or keeping workers."""
        alive = self.live()
        if not alive.ok:
            return alive
        with self._lock:
            role, trouble = self._role, self._trouble
        if role in (ProcessRole.STARTING, ProcessRole.STOPPING):
            return ProbeAnswer(ok=False, message=f"This {self._kind} is {role}.")
        if trouble is not None:
            return ProbeAnswer(ok=False, message=trouble)
        return ProbeAnswer(ok=True, message=f"This {self._kind} is {role}.")
