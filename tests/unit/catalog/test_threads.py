"""The same work by several threads: its order, its errors, and that it begins alone."""

import threading
import time
from collections.abc import Callable

import pytest

from lakewarden.catalog.threads import in_threads, in_time, in_turns

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


@pytest.mark.heavy
def test_who_waits_is_helped() -> None:
    seen: set[str] = set()
    began = time.monotonic()
    list(in_threads(waits(0.01, seen), THINGS, threads=8))
    assert len(seen) > 2
    assert time.monotonic() - began < 200 * 0.01


@pytest.mark.heavy
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


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_lanes_are_done_side_by_side_and_none_is_forgotten(threads: int) -> None:
    lanes = [range(50), range(50, 55), range(55, 55)]
    done, left = in_turns(waits(0.001, set()), lanes, width=lambda _: 3, threads=threads)
    assert (sorted(done), left) == ([number * 2 for number in range(55)], [])


def test_no_lane_is_wider_than_it_may_be_and_a_narrow_one_holds_up_nobody() -> None:
    busy, widest, lock = [0, 0], [0, 0], threading.Lock()

    def do(number: int) -> int:
        lane = 0 if number < 10 else 1
        with lock:
            busy[lane] += 1
            widest[lane] = max(widest[lane], busy[lane])
        time.sleep(0.02)
        with lock:
            busy[lane] -= 1
        return number

    done, left = in_turns(do, [range(10), range(10, 50)], width=[1, 4].__getitem__, threads=8)
    assert sorted(done) == list(range(50)) and left == []
    assert widest[0] == 1 and widest[1] <= 4


def test_a_lane_that_may_have_no_more_is_left_as_it_is() -> None:
    bears = [2, 100]

    def do(number: int) -> int:
        bears[0] -= number < 10
        return number

    done, left = in_turns(do, [range(10), range(10, 20)], width=bears.__getitem__, threads=1)
    assert sorted(done) == [0, 1, *range(10, 20)] and left == list(range(2, 10))


def test_an_error_in_a_lane_ends_all_of_them() -> None:
    begun: list[int] = []

    def do(number: int) -> int:
        begun.append(number)
        time.sleep(0.003)
        if number == 40:
            raise RuntimeError("the 41st")
        return number

    with pytest.raises(RuntimeError, match="the 41st"):
        in_turns(do, [range(2_000)], width=lambda _: 4, threads=4)
    assert len(begun) < 1_000


def in_time_of(
    do: Callable[[int], int], limit: float = 30.0, things: int = 100
) -> tuple[list[int], list[int]]:
    done, late = in_time(do, range(things), threads=3, limit=limit, tick=lambda: None)
    return done, [one.thing for one in late]


def test_what_is_done_in_time_is_done_in_order_by_one_thread() -> None:
    seen: set[str] = set()
    assert in_time_of(waits(0, seen)) == ([number * 2 for number in range(100)], [])
    assert len(seen) == 1


@pytest.mark.heavy
def test_what_hangs_is_given_up_and_holds_up_nothing_else() -> None:
    released = threading.Event()

    def do(number: int) -> int:
        if number in (3, 5):
            assert released.wait(60)
        return number

    began = time.monotonic()
    done, late = in_time(do, range(100), threads=2, limit=0.5, tick=lambda: None)
    assert time.monotonic() - began < 20
    assert sorted(done) == [number for number in range(100) if number not in (3, 5)]
    assert sorted(one.thing for one in late) == [3, 5] and {one.result for one in late} == {None}
    released.set()
    until = time.monotonic() + 20
    while any(one.result is None for one in late) and time.monotonic() < until:
        time.sleep(0.01)
    assert sorted(number for one in late for number in one.result or ()) == [3, 5]


def test_an_error_in_time_is_raised_and_so_is_one_of_who_watches() -> None:
    def do(number: int) -> int:
        if number == 40:
            raise RuntimeError("the 41st")
        return number

    with pytest.raises(RuntimeError, match="the 41st"):
        in_time_of(do)

    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        in_time(lambda number: time.sleep(0.001), range(10_000), threads=1, limit=30, tick=stop)
