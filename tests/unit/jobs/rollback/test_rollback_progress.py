"""Whoever waits for a rollback is told which step of how many it is at, on which table, and since when;
and may stop waiting."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ExitCode, UnfinishedError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackRow, RollbackState, RollbackStep
from lakewarden.daemon.usecases.rollbacks.rollback_wait import Wait
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.rollback.journal.progress import standing_of
from lakewarden.jobs.rollback.report.next_steps import steps_from
from support.builders.rollbacks import Lake
from support.builders.runs import request_of
from support.fakes.state import FakeQueue

NOW = datetime(2026, 11, 21, 3, 12, 7, tzinfo=UTC)
HEAD = RollbackRow(
    rollback_id="r1",
    plan_hash="r1",
    step=0,
    table_id="a",
    from_version=3,
    to_version=1,
    state=RollbackState.INTENT,
    recorded_at=NOW,
    kind=RollbackStep.PLAN,
)


def step(number: int, name: str, state: RollbackState, *, wave: int = 0) -> RollbackRow:
    return replace(
        HEAD,
        step=number,
        table_id=name,
        name=f"db.{name}",
        state=state,
        kind=RollbackStep.RESTORE,
        wave=wave,
        recorded_at=NOW + timedelta(seconds=number),
    )


def rollback(*states: RollbackState, undo: bool = False) -> Rollback:
    """Tables a, b, c in waves of their own."""
    state = RollbackState.UNDOING if undo else RollbackState.INTENT
    rows = (step(2 * n + 1, "abc"[n], one, wave=n) for n, one in enumerate(states))
    return Rollback(head=replace(HEAD, state=state, undo=undo), steps=tuple(rows))


DONE, INTENT, PLANNED = RollbackState.DONE, RollbackState.INTENT, RollbackState.PLANNED
UNDOING, BACK = RollbackState.UNDOING, RollbackState.COMPENSATED


@pytest.mark.parametrize(
    ("states", "undo", "text"),
    [
        ((PLANNED, PLANNED), False, "0 of 2 steps done; a worker starts, or verifies the tables"),
        ((DONE, INTENT, PLANNED), False, "1 of 3 steps done; wave 2 of 3: restoring db.b to version 1"),
        ((DONE, DONE), False, "2 of 2 steps done; everything is in place"),
        ((DONE, BACK, INTENT), False, "1 of 2 steps done; wave 2 of 2: restoring db.c to version 1"),
        ((DONE, UNDOING, BACK), True, "1 of 3 steps taken back; wave 2 of 3: taking db.b back to version 3"),
    ],
    ids=["before the first", "in the middle", "at the end", "with one given up", "on the way back"],
)
def test_a_rollback_says_how_far_it_is(states: tuple[RollbackState, ...], undo: bool, text: str) -> None:
    assert standing_of(rollback(*states, undo=undo)).text == text


def test_it_is_told_since_when_and_a_wave_of_many_tables_stays_short() -> None:
    many = Rollback(head=HEAD, steps=tuple(step(number, f"t{number}", INTENT) for number in range(1, 401, 2)))
    standing = standing_of(many)
    assert standing.since == NOW + timedelta(seconds=1)
    assert standing.text == (
        "0 of 200 steps done; wave 1 of 1: restoring db.t1 to version 1, restoring db.t3 to version 1, "
        "restoring db.t5 to version 1 and 197 more steps"
    )


@dataclass
class Watch:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def waiting(folder: Path, watch: Watch, said: list[str], timeout: timedelta | None = None) -> Wait:
    """Somebody waits for a rollback whose first step is being done."""
    lake = Lake(folder)
    lake.journal.put([HEAD, step(1, "a", INTENT)], because="test")
    return Wait(
        rollback_id="r1",
        journal=lake.journal,
        clock=lake.clock,
        tell=said.append,
        timeout=timeout,
        monotonic=watch,
    )


def test_the_same_is_said_again_only_after_a_while(tmp_path: Path) -> None:
    watch, said = Watch(), list[str]()
    wait = waiting(tmp_path, watch, said)
    for second in range(40):
        watch.seconds = float(second)
        wait.look()
    assert len(said) == 2
    assert said[0].startswith(
        "Rollback r1: 0 of 1 step done; wave 1 of 1: restoring db.a to version 1, since "
    )


def test_what_the_rollback_itself_waits_for_is_named(tmp_path: Path) -> None:
    watch, said = Watch(), list[str]()
    wait = waiting(tmp_path, watch, said)
    wait.journal.put([step(1, "a", PLANNED)], because="test")
    wait.queue = queue = FakeQueue(wait.clock)
    queue.enqueue(
        [request_of("file:///lake/a", LogCare(requires=Head(3), retention_seconds=1), table_id="a")]
    )
    assert queue.claim("w-1", timedelta(hours=1)) is not None
    wait.look()
    assert "0 of 1 step done; waits for the log_care of db.t to end (w-1 has it), since " in said[0]


def test_the_waiting_ends_in_time_and_says_how_the_rollback_goes_on(tmp_path: Path) -> None:
    watch, said = Watch(), list[str]()
    wait = waiting(tmp_path, watch, said, timeout=timedelta(minutes=30))
    wait.look()
    watch.seconds = 1800.0
    with pytest.raises(
        UnfinishedError, match="Rollback r1 is not finished after 30 minutes: 0 of 1 step done"
    ) as stop:
        wait.look()
    assert stop.value.exit_code is ExitCode.PARTLY
    for command in ("rollback show r1", "rollback resume r1", "rollback undo r1"):
        assert f"`lakewarden {command}`" in stop.value.hint


@pytest.mark.parametrize(
    ("state", "undo", "commands"),
    [
        (INTENT, False, ["resume r1", "undo r1"]),
        (RollbackState.CONFLICT, False, ["resume r1", "undo r1"]),
        (UNDOING, True, ["resume r1"]),
        (RollbackState.CONFLICT, True, ["resume r1", "undo r1 --leave"]),
        (DONE, False, []),
    ],
    ids=["under way", "stopped", "being taken back", "stopped on the way back", "done"],
)
def test_one_that_is_not_over_says_how_it_goes_on(
    state: RollbackState, undo: bool, commands: list[str]
) -> None:
    found = steps_from(Rollback(head=replace(HEAD, state=state, undo=undo)))
    assert [one.command for one in found] == [f"lakewarden rollback {one}" for one in commands]
