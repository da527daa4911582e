"""Operations: statements and metadata calls on their way from asked for to fetched.

They run in two pools: what is quick never waits for what takes long.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.daemon.gateway.results import Result
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["Lane", "Operation", "Pools", "Progress", "State"]

_LOG_LINES: Final = 1_000
"""Kept for a client that asks for them; the oldest go first."""


_NOT_BEGUN: Final = "It had not begun."
_TOO_LATE: Final = "It had ended before it could be stopped: what it changed stays."


class State(StrEnum):
    """What became of an operation."""

    PENDING = "pending"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"

    @property
    def over(self) -> bool:
        """Whether it stays as it is."""
        return self not in (State.PENDING, State.RUNNING)


class Lane(StrEnum):
    """How long an operation may take: a look at what is known, or as long as Spark and workers need."""

    QUICK = "quick"
    LONG = "long"


class Progress(Protocol):
    """How far one stage of the work is, in tasks."""

    @property
    def name(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def tasks(self) -> int: ...

    @property
    def done(self) -> int: ...

    @property
    def running(self) -> int: ...

    @property
    def failed(self) -> int: ...


@dataclass(slots=True)
class Operation:
    """One operation. Its first end counts: a result that comes after a cancel is dropped, and `outcome` says then what
    became of the work. Thread-safe."""

    id: str
    text: str
    lane: Lane
    work: Callable[["Operation"], Result]
    deadline: float | None = None
    stop: Callable[[], None] = lambda: None
    stages: Callable[[], Sequence[Progress]] = lambda: ()
    state: State = State.PENDING
    error: LakewardenError | None = None
    result: Result | None = None
    outcome: str | None = None
    began: float = field(default_factory=time.monotonic)
    _done: threading.Event = field(default_factory=threading.Event)
    _left: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LOG_LINES))
    _closed: bool = False

    def tell(self, line: str) -> None:
        """A line for who asks what it does."""
        self._lines.append(line)

    def lines(self, most: int | None = None) -> list[str]:
        """The lines that were not read yet."""
        read: list[str] = []
        while self._lines and (most is None or len(read) < most):
            read.append(self._lines.popleft())
        return read

    def run(self) -> None:
        """Do the work, unless it has ended before."""
        with self._lock:
            if self.state.over:
                return
            self.state = State.RUNNING
        try:
            if not self._end(State.FINISHED, result=self.work(self)):
                self.outcome = _TOO_LATE
        except LakewardenError as error:
            if not self._end(State.FAILED, error=error):
                self.outcome = error.in_full
        except BaseException as error:
            get_log("gateway").exception("operation", id=self.id)
            broken = UnavailableError(
                f"The gateway failed ({type(error).__name__}).", hint="Its log says more."
            )
            self._end(State.FAILED, error=broken)
            raise
        finally:
            self._left.set()

    def cancel(self, state: State = State.CANCELLED) -> None:
        """End it now for its client; what runs is told to stop."""
        if self._end(state):
            self.stop()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is over. Returns whether it is."""
        return self._done.wait(seconds)

    def wait_until_left(self, seconds: float) -> bool:
        """Wait until nobody is at it any more, which after a cancel may take a while. Returns whether that is so."""
        return self._left.wait(seconds)

    def close(self) -> None:
        """Nobody wants it any more."""
        self.cancel()
        with self._lock:
            self._closed = True
            result, self.result = self.result, None
        if result is not None:
            result.close()

    def _end(
        self, state: State, *, result: Result | None = None, error: LakewardenError | None = None
    ) -> bool:
        with self._lock:
            first = not self.state.over
            if self.state is State.PENDING:
                self.outcome = _NOT_BEGUN
                self._left.set()
            if first:
                self.state, self.error = state, error
            if first and not self._closed:
                self.result, result = result, None
        if result is not None:
            result.close()
        self._done.set()
        return first


class Pools:
    """So many operations at once, and so many that wait."""

    def __init__(self, *, long: int, quick: int, waiting: int) -> None:
        self._pools = {
            Lane.LONG: ThreadPoolExecutor(long, thread_name_prefix="long"),
            Lane.QUICK: ThreadPoolExecutor(quick, thread_name_prefix="quick"),
        }
        self._places = {
            Lane.LONG: threading.BoundedSemaphore(long + waiting),
            Lane.QUICK: threading.BoundedSemaphore(quick + waiting),
        }

    def submit(self, operation: Operation) -> None:
        """Queue it. Raises `UnavailableError` if too many wait already."""
        places = self._places[operation.lane]
        if not places.acquire(blocking=False):
            raise UnavailableError(
                "The gateway has too many statements waiting.", hint="Try again in a moment."
            )
        future = self._pools[operation.lane].submit(operation.run)
        future.add_done_callback(lambda _: places.release())

    def close(self) -> None:
        """Take nothing new, and wait for nothing."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
