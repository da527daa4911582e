"""The same work on many things by several threads where it waits for storages; elsewhere threads only cost."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Condition, Event, Thread
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

__all__ = ["Late", "Repeating", "in_threads", "in_time", "in_turns"]

T = TypeVar("T")
U = TypeVar("U")
_PART: Final = 32
"""So many things are done between two looks at the clock, and handed to a thread at once."""
_WAITS_SECONDS: Final = 0.001
"""Work that takes longer than this for each thing, and computes less than half of the time, waits for a network or a
slow disk."""
_STALLED_SECONDS: Final = 1.0
"""Who has not come to an end of anything for so long gets help: the next may lie elsewhere."""
_TICK_SECONDS: Final = 0.2


class Repeating:
    """A context manager: while the block runs, a thread calls `beat` every so many seconds, until `beat` says no."""

    def __init__(self, name: str, seconds: float) -> None:
        self.ended = Event()
        self._seconds = seconds
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def beat(self) -> bool:
        """What is done each time; whether it goes on."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self.ended.wait(self._seconds) and self.beat():
            pass


def in_threads(do: Callable[[T], U], things: Sequence[T], *, threads: int) -> Iterator[U]:
    """The results of `do` for each of the things, in their order, by at most so many threads at a time.

    Begins alone, and shares the rest once it has waited more than it worked. What one of them raises is raised when
    those under way are done; the others are not begun.
    """
    parts = [things[begin : begin + _PART] for begin in range(0, len(things), _PART)]
    for place, part in enumerate(parts):
        began, worked = time.monotonic(), -time.thread_time()
        yield from map(do, part)
        took = time.monotonic() - began
        if threads > 1 and took > _WAITS_SECONDS * len(part) and took > 2 * (worked + time.thread_time()):
            yield from _shared(do, parts[place + 1 :], threads)
            return


def in_turns(
    do: Callable[[T], U], lanes: Sequence[Sequence[T]], *, width: Callable[[int], int], threads: int
) -> tuple[list[U], list[T]]:
    """The results of `do` for the things in several lanes, by at most so many threads, and the things left undone.

    `width` says how many of a lane (by its number) may be under way now, and is asked again whenever one is done: a
    lane that gets 0 while none of it is under way stays as it is. A narrow lane holds no thread that another one has
    work for. What one of them raises is raised when those under way are done; the others are not begun.
    """
    turns = _Turns(do, lanes, width)
    helpers = min(threads, sum(map(len, lanes)))
    if helpers == 1:
        turns.work()
    elif helpers:
        with ThreadPoolExecutor(helpers, thread_name_prefix="looks") as pool:
            for one in [pool.submit(turns.work) for _ in range(helpers)]:
                one.result()
    return turns.result()


def in_time(
    do: Callable[[T], U],
    things: Sequence[T],
    *,
    threads: int,
    limit: float,
    tick: Callable[[], None],
) -> tuple[list[U], list["Late[T, U]"]]:
    """The results of `do` for each of the things, without those that take longer than `limit` (seconds): these stay
    under way in threads of their own, which nobody waits for.

    Begins with one thread; others help where it waits for a slow disk, or has come to no end for a while. `tick` is
    called while it goes on, and may raise. What `do` raises is raised.
    """
    return _InTime(do, things, threads=threads, limit=limit, tick=tick).done()


class Late(Generic[T, U]):
    """A thing that somebody is at, and since when (monotonic). It may go on for ever."""

    def __init__(self, thing: T) -> None:
        self.thing, self.since = thing, time.monotonic()
        self.is_given_up = False
        self.result: list[U] | None = None
        """The result that came after the call was given up, empty for an error; None while it goes on."""


class _InTime(Generic[T, U]):
    """Things on their way through some threads, watched by the one that began."""

    def __init__(
        self,
        do: Callable[[T], U],
        things: Sequence[T],
        *,
        threads: int,
        limit: float,
        tick: Callable[[], None],
    ) -> None:
        self._do, self._waiting = do, deque(things)
        self._threads, self._limit, self._tick = threads, limit, tick
        self._done = list[U]()
        self._under_way = set[Late[T, U]]()
        self._late = list[Late[T, U]]()
        self._working = 0
        self._ended_at = time.monotonic()
        self._wants_help = False
        self._error: BaseException | None = None
        self._changed = Condition()

    def done(self) -> tuple[list[U], list[Late[T, U]]]:
        try:
            while self._waiting or self._under_way:
                with self._changed:
                    self._help()
                    self._changed.wait(_TICK_SECONDS)
                    if self._error is not None:
                        raise self._error
                    self._give_up()
                self._tick()
        finally:
            with self._changed:
                self._waiting.clear()
        if self._error is not None:
            raise self._error
        return self._done, self._late

    def _help(self) -> None:
        stalled = time.monotonic() - self._ended_at > _STALLED_SECONDS
        most = self._threads if self._wants_help else min(self._working + stalled, self._threads)
        for _ in range(min(max(most, 1) - self._working, len(self._waiting))):
            self._working += 1
            self._ended_at = time.monotonic()
            Thread(target=self._work, name="looks", daemon=True).start()

    def _give_up(self) -> None:
        for one in [one for one in self._under_way if time.monotonic() - one.since > self._limit]:
            one.is_given_up = True
            self._under_way.discard(one)
            self._working -= 1
            self._late.append(one)

    def _work(self) -> None:
        began, worked, number = time.monotonic(), -time.thread_time(), 0
        while True:
            with self._changed:
                if not self._waiting or self._error is not None:
                    self._working -= 1
                    self._changed.notify_all()
                    return
                one = Late[T, U](self._waiting.popleft())
                self._under_way.add(one)
            result, error = list[U](), None
            try:
                result.append(self._do(one.thing))
            except BaseException as raised:  # noqa: BLE001  # it is raised by who waits
                error = raised
            with self._changed:
                if one.is_given_up:
                    one.result = result
                    return
                self._under_way.discard(one)
                self._done += result
                self._error = self._error or error
                self._ended_at = time.monotonic()
            number += 1
            if number == _PART:
                took = time.monotonic() - began
                waits = took > _WAITS_SECONDS * _PART and took > 2 * (worked + time.thread_time())
                if waits and not self._wants_help:
                    with self._changed:
                        self._wants_help = True
                        self._changed.notify_all()


def _shared(do: Callable[[T], U], parts: Sequence[Sequence[T]], threads: int) -> Iterator[U]:
    ended = Event()

    def done(part: Sequence[T]) -> list[U]:
        return [do(one) for one in part if not ended.is_set()]

    with ThreadPoolExecutor(threads, thread_name_prefix="looks") as pool:
        asked = [pool.submit(done, part) for part in parts]
        try:
            for one in asked:
                yield from one.result()
        finally:
            ended.set()
            pool.shutdown(cancel_futures=True)


class _Turns(Generic[T, U]):
    """Who of several lanes is next, and what was done."""

    def __init__(
        self, do: Callable[[T], U], lanes: Sequence[Sequence[T]], width: Callable[[int], int]
    ) -> None:
        self._do, self._width = do, width
        self._waiting = [deque(lane) for lane in lanes]
        self._busy = [0] * len(lanes)
        self._done = list[U]()
        self._ended = False
        self._changed = Condition()

    def work(self) -> None:
        """Take one thing after the other until nothing can be taken any more."""
        try:
            while (lane := self._next()) is not None:
                number, thing = lane
                done = self._do(thing)
                with self._changed:
                    self._done.append(done)
                    self._busy[number] -= 1
                    self._changed.notify_all()
        except BaseException:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
            raise

    def result(self) -> tuple[list[U], list[T]]:
        return self._done, [thing for lane in self._waiting for thing in lane]

    def _next(self) -> tuple[int, T] | None:
        with self._changed:
            while not self._ended:
                waiting = [number for number, lane in enumerate(self._waiting) if lane]
                free = [number for number in waiting if self._busy[number] < self._width(number)]
                if free:
                    number = min(free, key=self._busy.__getitem__)
                    self._busy[number] += 1
                    return number, self._waiting[number].popleft()
                if not any(self._busy[number] for number in waiting):
                    break
                self._changed.wait()
        return None
