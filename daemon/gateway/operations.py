"""Operations: statements and metadata calls on their way from asked for to fetched.

They run in two pools: what is quick never waits for what takes long.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.daemon.gateway.results import ResultReader
from lakewarden.daemon.gateway.sharing.shares import Share, next_of, part_of, share_of
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["GatewayOperation", "Lane", "Pools", "StageProgress", "State"]

_LOG_LINES: Final = 1_000
"""Kept for a client that asks for them; the oldest go first."""


_SHOWN: Final = 1_000
"""So many characters of a statement that is over are kept."""
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
        """Whether the state is final."""
        return self not in (State.PENDING, State.RUNNING)


class Lane(StrEnum):
    """How long an operation may take: a look at what is known, a query over system tables, or as long as Spark and
    workers need."""

    QUICK = "quick"
    SYSTEM = "system"
    LONG = "long"


class StageProgress(Protocol):
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
class GatewayOperation:
    """One operation. Its first end counts: a result that comes after a cancel is dropped. Thread-safe."""

    id: str
    text: str
    lane: Lane
    work: Callable[["GatewayOperation"], ResultReader]
    deadline: float | None = None
    stop: Callable[[], None] = lambda: None
    stages: Callable[[], Sequence[StageProgress]] = lambda: ()
    state: State = State.PENDING
    error: LakewardenError | None = None
    result: ResultReader | None = None
    outcome: str | None = None
    """The outcome of the work."""
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
            self.work, self.text = _done, self.text[:_SHOWN]  # a client may leave it open, and it can be long
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
        self, state: State, *, result: ResultReader | None = None, error: LakewardenError | None = None
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


def _done(operation: GatewayOperation) -> ResultReader:
    raise AssertionError(operation.id)  # it runs once


class Pools:
    """So many operations at once in each lane, and so many that wait; one user has at most a share of both, in per
    cent. Who has the fewest is the next."""

    def __init__(self, places: Mapping[Lane, int], *, waiting: int, share: int) -> None:
        self._lanes = {
            lane: _Queue(
                ThreadPoolExecutor(most, thread_name_prefix=lane),
                share_of(most, share),
                waiting=waiting,
                each=part_of(waiting, share),
            )
            for lane, most in places.items()
        }

    def submit(self, operation: GatewayOperation, user: str) -> None:
        """Queue it. Raises `UnavailableError` if too many wait already, of all or of this user."""
        self._lanes[operation.lane].add(operation, user)

    def close(self) -> None:
        """Take nothing new, and wait for nothing."""
        for lane in self._lanes.values():
            lane.close()


class _Queue:
    """What waits for one lane."""

    def __init__(self, threads: ThreadPoolExecutor, share: Share, *, waiting: int, each: int) -> None:
        self._threads, self._share, self._most, self._each = threads, share, waiting, each
        self._waiting: list[tuple[str, GatewayOperation]] = []
        self._running = Counter[str]()
        self._lock = threading.Lock()

    def add(self, operation: GatewayOperation, user: str) -> None:
        with self._lock:
            self._waiting.append((user, operation))
            self._begin()
            if len(self._waiting) > self._most:
                self._refuse("The gateway has too many statements waiting.")
            if sum(waits == user for waits, _ in self._waiting) > self._each:
                self._refuse(f"{user} has too many statements waiting.")

    def close(self) -> None:
        with self._lock:
            self._waiting.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _refuse(self, sentence: str) -> None:
        self._waiting.pop()
        raise UnavailableError(sentence, hint="Try again in a moment.")

    def _begin(self) -> None:
        """Begin all that may."""
        while (
            number := next_of([user for user, _ in self._waiting], self._running, self._share)
        ) is not None:
            user, operation = self._waiting.pop(number)
            self._running[user] += 1
            self._threads.submit(self._run, user, operation)

    def _run(self, user: str, operation: GatewayOperation) -> None:
        try:
            operation.run()
        finally:
            with self._lock:
                self._running[user] -= 1
                self._running = +self._running
                with suppress(RuntimeError):  # closed meanwhile
                    self._begin()
