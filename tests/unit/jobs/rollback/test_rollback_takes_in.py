"""A rollback that takes a further table in: nobody works on it any more, and no other rollback holds it."""

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.model.rollbacks import rollback_locks, rollbacks_of
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.system.port import ROLLBACKS
from lakewarden.jobs.rollback.journal.step_rows import next_rows
from lakewarden.jobs.rollback.journal.steps import TableStep
from support.builders.rollbacks import Lake

pytestmark = pytest.mark.heavy


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    for name in ("source", "derived"):
        for number in (1, 2, 3):
            lake.append(name, number)
    return lake


def late(lake: Lake) -> Iterator[list[TableStep]]:
    """`derived` is found tainted when all is done, and nothing more after that."""
    yield [lake.step("derived", 0)]
    yield []


def test_its_runs_end_before_the_table_is_looked_at_and_no_new_one_begins(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    drained: list[tuple[list[str], bool]] = []
    rounds = late(lake)

    def drain(tables: Collection[str]) -> None:
        held = rollback_locks(lake.journal.all())
        drained.append((sorted(tables), held.keys() >= set(tables)))
        if "id-derived" in tables:
            lake.append("derived", 9)  # as the last commit of a run that is asked to end

    ended = lake.go_on(drain=drain, extend=lambda _: next(rounds, []))
    assert drained == [(["id-source"], True), (["id-derived"], True)]
    assert ended.head.state is State.DONE and lake.rows("derived") == [1, 2, 3, 9], "its head had moved"


def test_a_table_that_another_rollback_holds_is_waited_for(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    lake.begin(lake.step("derived", 1), rollback_id="r2")
    rounds = late(lake)
    with pytest.raises(ConflictError, match="db.derived is held by rollback r2, which is not finished"):
        lake.go_on(extend=lambda _: next(rounds))
    assert (lake.states()["*"], lake.rows("derived")) == ([State.INTENT], [1, 2, 3]), "tried again later"
    assert lake.go_on("r2").head.state is State.DONE
    rounds = late(lake)
    assert lake.go_on(extend=lambda _: next(rounds)).head.state is State.DONE
    assert lake.contents("source", "derived") == {"source": [1, 2], "derived": [1]}


def test_it_is_left_to_a_person_where_the_other_one_waits_for_one(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    waiting = lake.begin(lake.step("derived", 1), rollback_id="r2").with_head(State.CONFLICT)
    lake.journal.save(waiting, expects=State.INTENT, because="test")
    rounds = late(lake)
    stopped = lake.go_on(extend=lambda _: next(rounds))
    assert stopped.head.state is State.CONFLICT
    assert "db.derived is held by rollback r2" in (stopped.head.message or "")
    assert lake.rows("derived") == [1, 2, 3]


def test_who_resumes_a_rollback_takes_no_table_in_that_another_one_holds(lake: Lake) -> None:
    begun = lake.begin(lake.step("source", 1))
    lake.begin(lake.step("derived", 1), rollback_id="r2")
    stopped = lake.journal.save(begun.with_head(State.CONFLICT), expects=State.INTENT, because="test")
    more = stopped.with_rows(next_rows(stopped, [lake.step("derived", 0)])).with_head(State.INTENT)
    with pytest.raises(ConflictError, match="db.derived is held by rollback r2"):
        lake.journal.save(more, expects=State.CONFLICT, because="test")
    assert lake.journal.get("r1") == stopped


def test_an_undo_of_what_is_done_waits_for_the_rollback_that_is_at_the_table(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    done = lake.go_on()
    lake.begin(lake.step("source", 0), rollback_id="r2")
    undoing = done.with_head(State.UNDOING, undo=True)
    with pytest.raises(ConflictError, match="db.source is held by rollback r2"):
        lake.journal.save(undoing, expects=State.DONE, because="test")
    assert lake.go_on("r2").head.state is State.DONE
    assert lake.undo("r2").head.state is State.COMPENSATED
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2, 3]


@pytest.mark.parametrize("other", ["r0", "r2"])
def test_a_table_is_held_by_the_rollback_that_works_not_by_one_that_waits_for_it(
    lake: Lake, other: str
) -> None:
    for name in ("r1", other):
        lake.begin(lake.step("source", 1 if name == "r1" else 0), rollback_id=name)
        assert lake.go_on(name).head.state is State.DONE
    stopped = lake.undo()
    assert stopped.head.state is State.CONFLICT and f"rollback undo {other}" in (stopped.head.message or "")
    lake.begin_undo(other)
    lock = rollback_locks(rollbacks_of(lake.store.rows(ROLLBACKS).all()))["id-source"]
    assert (lock.rollback_id, lock.waits, lock.undo) == (other, False, True)
    assert lake.go_on(other).head.state is State.COMPENSATED
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2, 3]
