"""A session that is at a group says so in the journal, and hears when somebody has taken the group from it."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.model.rows import RollbackStep
from lakewarden.jobs.rollback.journal.group_rows import given_up, group_of
from lakewarden.jobs.session.groups.session_liveness import Liveness
from support.builders.rollbacks import Lake

PATIENCE = 30.0


def begun(lake: Lake) -> Rollback:
    for name in ("a", "b"):
        lake.append(name, 1)
    changes = [lake.step(name, 1, kind=RollbackStep.CHANGE) for name in ("a", "b")]
    group = group_of("g1", changes, statement="DELETE a, b FROM a, b", actor="ana", at=lake.clock.now())
    lake.journal.put([group.head, *group.steps], because="test")
    return group


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_lost(alive: Liveness) -> bool:
    try:
        alive.require()
    except ConflictError:
        return True
    return False


def test_it_says_again_and_again_that_it_lives_and_what_it_has_made(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    group = begun(lake)
    with Liveness(lake.journal, group, every=0.01) as alive:
        until(lambda: lake.journal.get("g1").head.recorded_at > group.head.recorded_at)
        alive.made(lake.step("a", 1), 1)
        until(lambda: lake.journal.get("g1").steps[0].state is State.DONE)
        alive.close("it is whole")
    assert lake.journal.all() == ()


def test_a_write_of_its_own_whose_answer_was_lost_is_no_conflict(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    group = begun(lake)
    lake.journal.save(group, expects=State.INTENT, because="ours, and nobody heard of it")
    with Liveness(lake.journal, group) as alive:
        alive.require()
        alive.close("it is whole")
    assert lake.journal.all() == ()


def test_it_hears_that_somebody_has_given_it_up_and_moves_nothing_any_more(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    group = begun(lake)
    back = given_up(group, never_made=())
    lake.journal.save(back, expects=State.INTENT, because="somebody else")
    with Liveness(lake.journal, group, every=0.01) as alive:
        until(lambda: is_lost(alive))
        with pytest.raises(ConflictError):
            alive.close("it is whole")
        with pytest.raises(ConflictError):
            alive.give_up((), "it failed")
    assert lake.journal.get("g1").head.state is State.UNDOING


def test_after_its_last_move_it_says_nothing_more(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with Liveness(lake.journal, begun(lake), every=0.01) as alive:
        alive.give_up({"id-b"}, "it failed")
        stored = lake.journal.get("g1")
        time.sleep(0.05)
        assert lake.journal.get("g1") == stored
    assert {row.name: row.state for row in stored.steps} == {"db.a": State.INTENT, "db.b": State.PLANNED}
