"""The same work on many things by several threads where it waits for storages; elsewhere threads only cost."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Final, TypeVar

__all__ = ["in_threads"]

T = TypeVar("T")
U = TypeVar("U")
_PART: Final = 32
"""So many things are done between two looks at the clock, and handed to a thread at once."""
_WAITS_SECONDS: Final = 0.001
"""Who needs longer than this for each thing, and works less than half of it, waits for a network or a slow disk."""


def in_threads(do: Callable[[T], U], things: Sequence[T], *, threads: int) -> Iterator[U]:
    """What `do` makes of each of the things, in their order, by at most so many threads at a time.

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
