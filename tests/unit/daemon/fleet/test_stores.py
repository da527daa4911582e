"""How much a sweep asks of a store that answers, throttles, is away, or keeps a few tables out of reach."""

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from lakewarden.daemon.fleet.stores import IN_A_ROW, Stores
from support.fakes.clock import ManualClock

LAKE = "s3://lake"
TABLES = [f"t{number}" for number in range(100)]
SWEEP = timedelta(seconds=30)
LONGEST = timedelta(minutes=5)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def stores(clock: ManualClock) -> Stores:
    return Stores(clock=clock, longest_pause=LONGEST, threads=8)


def swept(
    stores: Stores, answers: Callable[[str], bool], tables: Sequence[str] = TABLES
) -> tuple[list[str], int]:
    """The tables that one sweep asked for, in order, and how many of them were asked for at once at the most."""
    stores.begin({LAKE: tables})
    waiting, asked, widest = stores.in_order(LAKE, tables), list[str](), 0
    while waiting and (width := stores.width(LAKE)):
        at_once, waiting = waiting[:width], waiting[width:]
        widest = max(widest, len(at_once))
        asked += at_once
        for one in at_once:
            stores.heard(LAKE, one, answered=answers(one))
    return asked, widest


def all_answer(_: str) -> bool:
    return True


def none_answers(_: str) -> bool:
    return False


def test_a_store_that_answers_is_asked_for_everything_soon_by_all_threads(stores: Stores) -> None:
    asked, widest = swept(stores, all_answer)
    assert (sorted(asked), widest) == (sorted(TABLES), 8)
    assert not stores.is_away(LAKE)


def test_a_store_that_is_away_is_asked_a_few_times_and_one_at_a_time(stores: Stores) -> None:
    asked, widest = swept(stores, none_answers)
    assert (len(asked), widest) == (IN_A_ROW, 1)
    assert stores.is_away(LAKE)


def test_then_one_table_is_asked_with_pauses_that_double_up_to_the_longest(
    stores: Stores, clock: ManualClock
) -> None:
    swept(stores, none_answers)
    asked_after = list[int]()
    for number in range(1, 80):
        clock.advance(SWEEP)
        asked, _ = swept(stores, none_answers)
        assert len(asked) <= 1
        if asked:
            asked_after.append(number)
    assert asked_after == [1, 2, 4, 8, 16, 26, 36, 46, 56, 66, 76], (
        "in sweeps of 30 s: 30, 60, 120, 240, 300 s"
    )


def test_when_it_is_back_everything_is_asked_for_in_the_sweep_that_notices(
    stores: Stores, clock: ManualClock
) -> None:
    in_vain, _ = swept(stores, none_answers)
    clock.advance(SWEEP)
    asked, _ = swept(stores, all_answer)
    assert sorted(asked) == sorted(TABLES) and asked[-IN_A_ROW:] == in_vain, "who was not asked comes first"
    assert not stores.is_away(LAKE)
    clock.advance(SWEEP)
    swept(stores, none_answers)
    clock.advance(SWEEP)
    assert len(swept(stores, none_answers)[0]) == 1, "what was before lengthens no pause"


def test_a_store_that_dies_amid_a_sweep_is_away_after_the_next(stores: Stores) -> None:
    stores.begin({LAKE: TABLES})
    first_half = set(stores.in_order(LAKE, TABLES)[:50])
    asked, _ = swept(stores, first_half.__contains__)
    assert 50 < len(asked) <= 50 + 8 + IN_A_ROW and not stores.is_away(LAKE)
    assert len(swept(stores, none_answers)[0]) == IN_A_ROW and stores.is_away(LAKE)


def test_a_few_tables_out_of_reach_keep_nobody_from_the_rest(stores: Stores) -> None:
    out_of_reach = set(TABLES[:20])
    looked = set[str]()
    for _ in range(4):
        looked |= set(swept(stores, lambda one: one not in out_of_reach)[0])
    assert looked >= set(TABLES) - out_of_reach, (
        "ten errors end a sweep; who had no turn goes first in the next"
    )
    for _ in range(3):
        asked, _ = swept(stores, lambda one: one not in out_of_reach)
        assert set(asked) >= set(TABLES) - out_of_reach and not stores.is_away(LAKE)
    assert len(out_of_reach & set(asked)) <= IN_A_ROW + 8, "now known, asked last, and not all of them"


def test_though_all_that_are_asked_first_are_among_them(stores: Stores) -> None:
    stores.begin({LAKE: TABLES})
    out_of_reach = set(stores.in_order(LAKE, TABLES)[:IN_A_ROW])
    assert len(swept(stores, lambda one: one not in out_of_reach)[0]) == IN_A_ROW and stores.is_away(LAKE)
    for _ in range(2):
        asked, _ = swept(stores, lambda one: one not in out_of_reach)
        assert set(asked) == set(TABLES) and not stores.is_away(LAKE)


def test_each_of_them_has_its_turn_and_is_looked_at_once_it_answers(stores: Stores) -> None:
    out_of_reach, tried = set(TABLES[:20]), set[str]()
    for _ in range(12):
        asked, _ = swept(stores, lambda one: one not in out_of_reach)
        tried |= out_of_reach & set(asked)
    assert tried == out_of_reach
    assert set(swept(stores, all_answer)[0]) == set(TABLES)


def test_a_store_that_throttles_is_asked_for_less_at_once_and_left_alone_after_some_errors(
    stores: Stores,
) -> None:
    asked, widest = swept(stores, lambda one: int(one[1:]) % 3 != 0)
    assert widest < 8 and len(asked) < 40 and not stores.is_away(LAKE)
    looked = set(asked)
    for _ in range(5):
        looked |= set(swept(stores, lambda one: int(one[1:]) % 3 != 0)[0])
    assert looked == set(TABLES), "who had no turn goes first the next time"


def test_a_clock_that_is_set_back_makes_no_pause_longer(stores: Stores, clock: ManualClock) -> None:
    swept(stores, none_answers)
    swept(stores, none_answers)
    clock.advance(-timedelta(days=1))
    assert len(swept(stores, all_answer)[0]) == len(TABLES)


def test_stores_know_nothing_of_each_other(stores: Stores) -> None:
    other = "s3://other"
    stores.begin({LAKE: TABLES, other: ["x"]})
    for one in TABLES[:IN_A_ROW]:
        stores.heard(LAKE, one, answered=False)
    assert (stores.width(LAKE), stores.width(other)) == (0, 1)
    assert stores.is_away(LAKE) and not stores.is_away(other) and not stores.is_away("s3://unheard-of")
