"""A table whose log cannot be read any more holds up nobody but itself: the rollback stops, goes on without it, and is
undone. On real Delta tables."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.jobs.rollback.execute.found_in_logs import finished, taken_back
from lakewarden.jobs.rollback.journal.step_rows import left_as_it_is, superseded
from support.builders.rollbacks import Lake

pytestmark = pytest.mark.heavy


class KilledError(Exception):
    """The worker was killed here."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A rollback of `source`, and of `derived` after it, has just begun."""
    lake = Lake(tmp_path)
    for name in ("source", "derived"):
        for number in (1, 2, 3):
            lake.append(name, number)
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    return lake


def damaged(lake: Lake, name: str) -> None:
    """Somebody's commit comes, and its file is damaged."""
    head = lake.append(name, 4)
    (lake.path(name) / "_delta_log" / f"{head:020}.json").write_text("{")


def at_look(number: int, act: Callable[[], object]) -> Callable[[], None]:
    """What is asked before each step and again before its commit, after two verifications."""
    calls = iter(range(100))

    def still_ours() -> None:
        if next(calls) == number:
            act()

    return still_ours


def stopped(lake: Lake) -> Rollback:
    """Stopped at `derived`, with `source` back."""
    return lake.go_on(still_ours=at_look(3, lambda: damaged(lake, "derived")))


def test_it_stops_and_says_which_log_it_is(lake: Lake) -> None:
    ended = stopped(lake)
    assert (ended.head.state, lake.rows("source")) == (State.CONFLICT, [1, 2])
    assert (ended.head.message or "").startswith("db.derived: Line 1 of _delta_log/")
    assert lake.states() == {"*": [State.CONFLICT], "source": [State.DONE], "derived": [State.CONFLICT]}


def test_what_an_attempt_that_was_killed_may_have_begun_there_does_not_keep_it_from_stopping(
    lake: Lake,
) -> None:
    def killed() -> None:
        raise KilledError

    with pytest.raises(KilledError):
        lake.go_on(still_ours=at_look(4, killed))
    assert lake.states()["derived"] == [State.INTENT]
    damaged(lake, "derived")
    assert lake.go_on().head.state is State.CONFLICT
    assert lake.states()["source"] == [State.DONE]


def test_it_goes_on_without_the_table_and_its_undo_says_that_the_table_stays(lake: Lake) -> None:
    without = superseded(finished(stopped(lake), [lake.reader])).with_head(State.INTENT, message=None)
    lake.journal.save(without, expects=State.CONFLICT, because="test")
    done = lake.go_on(extend=lambda _: [])
    assert (done.head.state, done.head.message) == (
        State.DONE,
        "db.derived: left as others wrote it meanwhile",
    )
    undone = lake.undo()
    assert (undone.head.state, lake.rows("source")) == (State.CONFLICT, [1, 2, 3])
    assert "db.derived" in (undone.head.message or "")
    left = left_as_it_is(taken_back(undone, [lake.reader]))
    assert (left.head.state, left.head.message) == (State.COMPENSATED, "db.derived: left rolled back")


def test_of_two_restores_of_the_table_none_keeps_the_undo_from_the_others(lake: Lake) -> None:
    rounds = iter([lambda: [lake.step("derived", 0)], list])
    done = lake.go_on(
        still_ours=at_look(3, lambda: lake.append("derived", 4)),
        extend=lambda _: next(rounds)(),
    )
    assert done.head.state is State.DONE
    assert lake.states()["derived"] == [State.COMPENSATED, State.DONE]
    damaged(lake, "derived")
    undone = lake.undo()
    assert (undone.head.state, lake.rows("source")) == (State.CONFLICT, [1, 2, 3])
    assert lake.states()["source"] == [State.COMPENSATED]
