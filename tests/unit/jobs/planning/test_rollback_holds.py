"""What the journal keeps away from tables, and what it keeps on disk,
while a rollback is under way or can be undone."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rollbacks import (
    Rollback,
    RollbackLock,
    needed_versions,
    rollback_locks,
    tainted_versions,
)
from lakewarden.catalog.model.rows import Action, RollbackRow, Source
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.model.rows import RollbackStep as Kind
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.actions.answers import Due, NotDue, WhyNot
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.actions.world import World
from lakewarden.jobs.planning.planner import judge
from lakewarden.jobs.rollback.execute.run import JournaledRollbacks
from lakewarden.jobs.rollback.journal.step_rows import head_row, next_rows
from lakewarden.jobs.runs.protection import protect
from support.builders.maintenance import DAY, commit
from support.builders.maintenance import NOW as THEN
from support.builders.rollbacks import Lake
from support.builders.runs import Bench, request_of
from support.builders.worlds import NOW, view


def rollback(state: State, *, step: State = State.DONE, undo_until: timedelta | None = None) -> Rollback:
    """A rollback of `a` from 9 to 4 and of `b` from 7 to 6."""
    head = RollbackRow(
        rollback_id="r1",
        plan_hash="h",
        step=0,
        table_id="a",
        from_version=9,
        to_version=4,
        state=state,
        recorded_at=NOW,
        kind=Kind.PLAN,
        undo_until=None if undo_until is None else NOW + undo_until,
    )
    first = replace(head, step=1, kind=Kind.RESTORE, state=step)
    second = replace(first, step=3, table_id="b", from_version=7, to_version=6)
    return Rollback(head=head, steps=(first, second))


@pytest.mark.parametrize("state", [State.INTENT, State.UNDOING, State.CONFLICT])
def test_every_table_of_an_unsettled_rollback_is_held(state: State) -> None:
    held = rollback_locks([rollback(state)])
    assert {key: hold.leads for key, hold in held.items()} == {"a": True, "b": False}
    assert all(hold.waits == (state is State.CONFLICT) for hold in held.values())


@pytest.mark.parametrize("state", [State.PLANNED, State.DONE, State.COMPENSATED])
def test_a_plan_and_a_finished_rollback_hold_nothing(state: State) -> None:
    assert rollback_locks([rollback(state)]) == {}


def test_under_way_the_targets_are_kept_and_afterwards_the_old_heads_for_the_undo() -> None:
    assert needed_versions([rollback(State.INTENT)], NOW) == {"a": 4, "b": 6}
    done = rollback(State.DONE, undo_until=DAY)
    assert needed_versions([done], NOW) == {"a": 9, "b": 7}
    assert needed_versions([done], NOW + DAY) == {}
    assert needed_versions([rollback(State.COMPENSATED)], NOW) == {}


def test_what_was_taken_back_stays_known_as_tainted_until_it_is_undone() -> None:
    found = tainted_versions([rollback(State.DONE)])
    assert {key: [(one.first, one.last, one.by) for one in ranges] for key, ranges in found.items()} == {
        "a": [(5, 9, "rollback r1")],
        "b": [(7, 7, "rollback r1")],
    }
    assert tainted_versions([rollback(State.COMPENSATED, step=State.COMPENSATED)]) == {}


def test_a_held_table_is_left_alone_by_every_other_action() -> None:
    held = replace(
        view(small_files=5_000), rollback=RollbackLock(rollback_id="r1", leads=True, waits=False, undo=False)
    )
    for action in (Action.COMPACT, Action.VACUUM, Action.LOG_CARE, Action.PROPERTIES, Action.STATISTICS):
        answer = judge(held, action, World(tables=(held,)), NOW)
        assert isinstance(answer, NotDue) and answer.why is WhyNot.ROLLBACK, action


def test_a_begun_rollback_goes_on_by_itself_on_its_leading_table_only() -> None:
    def ask(hold: RollbackLock, **row: object) -> object:
        one = replace(view(row_changes=row), rollback=hold)
        return judge(one, Action.ROLLBACK, World(tables=(one,)), NOW)

    leading = RollbackLock(rollback_id="r1", leads=True, waits=False, undo=False)
    due = ask(leading)
    assert isinstance(due, Due) and due.action == RollBack(rollback_id="r1")
    assert isinstance(ask(leading, source=Source.REGISTER), Due), "also where a table is only observed"
    assert isinstance(ask(replace(leading, leads=False)), NotDue)
    stopped = ask(replace(leading, waits=True))
    assert isinstance(stopped, NotDue) and stopped.why is WhyNot.CONSENT
    paused = ask(leading, paused="incident")
    assert isinstance(paused, NotDue) and paused.why is WhyNot.PAUSED


def test_a_plan_does_not_begin_while_another_rollback_holds_one_of_its_tables(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(3):
        lake.append("source", number)
    step, now = lake.step("source", 0), lake.clock.now()
    lake.begin(lake.step("source", 1))
    head = head_row(rollback_id="r2", plan_hash="h2", first=step, payload="{}", actor="ana", at=now)
    lake.journal.put([head], because="test")
    stored = lake.journal.get("r2")
    begun = stored.with_rows(next_rows(stored, [step])).with_head(State.INTENT)
    with pytest.raises(ConflictError, match="db.source is held by rollback r1, which is not finished"):
        lake.journal.save(begun, expects=State.PLANNED, because="test")
    assert lake.journal.get("r2") == stored


def test_protection_reaches_back_to_what_a_rollback_needs() -> None:
    commits = [commit(version, age) for version, age in enumerate([40, 30, 20, 10])]
    assert protect(commits, head=3, now=THEN, promise=7 * DAY).oldest_version == 3
    assert protect(commits, head=3, now=THEN, promise=7 * DAY, needed=1).oldest_version == 1


def test_a_run_that_comes_late_to_a_held_table_changes_nothing(tmp_path: Path) -> None:
    lake, bench = Lake(tmp_path), Bench()
    for number in range(6):
        lake.append("source", number)
    lake.begin(lake.step("source", 1))
    journal = JournaledRollbacks(
        journal=lake.journal,
        tools=bench.tools,
        storage=lambda _: StorageOptions(),
        undo_for=DAY,
        queue=bench.queue,
    )
    action = Compact(requires=Head(5), target_bytes=1_000_000, min_small_files=2, quiet_seconds=0)
    bench.queue.enqueue([request_of(lake.location("source"), action, table_id="id-source")])
    finished = bench.runner(rollbacks=journal).run_next()
    assert finished is not None and finished.result.error_class == ConflictError.__name__
    assert (lake.head("source"), finished.result.message) == (
        5,
        "db.t is held by rollback r1; nothing was changed.",
    )


def test_a_rollback_runs_from_the_queue_and_ends_other_runs_first(tmp_path: Path) -> None:
    lake, bench = Lake(tmp_path), Bench()
    for number in range(3):
        lake.append("source", number)
        lake.append("derived", number)
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    journal = JournaledRollbacks(
        journal=lake.journal,
        tools=bench.tools,
        storage=lambda _: StorageOptions(),
        undo_for=DAY,
        queue=bench.queue,
    )
    late = Compact(requires=Head(2), target_bytes=1_000_000, min_small_files=2, quiet_seconds=0)
    bench.queue.enqueue(
        [
            request_of(lake.location("derived"), late, run_id="late", table_id="id-derived"),
            request_of(lake.location("source"), RollBack(rollback_id="r1"), table_id="id-source", rank=9.0),
        ]
    )
    finished = bench.runner(rollbacks=journal).run_next()
    assert finished is not None and finished.result.message == "2 tables rolled back"
    assert lake.contents("source", "derived") == {"source": [0, 1], "derived": [0]}
    assert bench.queue.unfinished() == ()


def test_a_plan_that_somebody_has_begun_is_not_forgotten(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(3):
        lake.append("source", number)
    begun = lake.begin(lake.step("source", 1))
    planned = replace(begun, head=replace(begun.head, state=State.PLANNED))
    lake.journal.forget_plans([planned], because="a reader that was slow")
    assert lake.journal.get("r1").steps == begun.steps
    lake.journal.put([planned.head], because="test")
    lake.journal.forget_plans([planned], because="stale")
    assert lake.journal.all() == ()


def test_keeping_a_plan_forgets_old_ones_and_nothing_that_was_begun_meanwhile(
    tmp_path: Path,
) -> None:
    lake = Lake(tmp_path)
    lake.append("source", 0)
    lake.append("source", 1)
    begun = lake.begin(lake.step("source", 0))
    planned = begun.with_head(State.PLANNED)
    other = replace(planned.head, rollback_id="r2", plan_hash="hash-r2")
    lake.journal.put([other], because="test")
    head = replace(planned.head, rollback_id="r3", plan_hash="hash-r3")
    lake.journal.keep_plan(head, old=[planned, Rollback(head=other)], because="a reader that was slow")
    assert [(one.rollback_id, one.head.state) for one in lake.journal.all()] == [
        ("r1", State.INTENT),
        ("r3", State.PLANNED),
    ]
    lake.journal.keep_plan(planned.head, old=(), because="the same once more")
    assert lake.journal.get("r1") == begun
    lake.journal.save(begun.with_head(State.COMPENSATED), expects=State.INTENT, because="undone")
    lake.journal.keep_plan(planned.head, old=(), because="the same once more")
    again = lake.journal.get("r1")
    assert (again.head.state, again.steps) == (State.PLANNED, ())
