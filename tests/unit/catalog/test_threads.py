"""The same work by several threads: its order, its errors, and that it begins alone."""

import threading
import time
from collections.abc import Callable

import pytest

from lakewarden.catalog.threads import in_threads

THINGS = range(200)


def waits(seconds: float, seen: set[str]) -> Callable[[int], int]:
    def do(number: int) -> int:
        seen.add(threading.current_thread().name)
        if seconds:
            time.sleep(seconds)
        return number * 2

    return do


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("seconds", [0, 0.003])
def test_everything_is_done_once_and_in_order(threads: int, seconds: float) -> None:
    seen: set[str] = set()
    done = list(in_threads(waits(seconds, seen), THINGS, threads=threads))
    assert done == [number * 2 for number in THINGS]
    assert len(seen) <= threads + 1


def test_who_waits_is_helped() -> None:
    seen: set[str] = set()
    began = time.monotonic()
    list(in_threads(waits(0.01, seen), THINGS, threads=8))
    assert len(seen) > 2
    assert time.monotonic() - began < 200 * 0.01


def test_one_thread_is_the_callers_own() -> None:
    seen: set[str] = set()
    list(in_threads(waits(0.003, seen), THINGS, threads=1))
    assert seen == {threading.current_thread().name}


def test_an_error_ends_it_and_leaves_the_rest_undone() -> None:
    begun: list[int] = []

    def do(number: int) -> int:
        begun.append(number)
        time.sleep(0.003)
        if number == 40:
            raise RuntimeError("the 41st")
        return number

    with pytest.raises(RuntimeError, match="the 41st"):
        list(in_threads(do, range(2_000), threads=4))
    assert len(begun) < 1_000
