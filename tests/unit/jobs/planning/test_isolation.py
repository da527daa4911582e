"""One table that cannot be looked at, judged, planned or written stops no other: it is quarantined with the reason."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import RefusedError, UnavailableError, UnreadableError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import (
    Action,
    Column,
    Finding,
    HealthRow,
    Outcome,
    PolicySettings,
    TableState,
)
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.state.port import Hint, HintKind, Result, RunRequest
from lakewarden.catalog.system.port import RUNS, TABLES
from lakewarden.daemon.telemetry.failed_cycles import Troubles
from lakewarden.jobs.actions.answers import WhyNot
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.actions.world import World as Planned
from lakewarden.jobs.planning.planner import Waiting, due_for, plan
from support.builders.daemons import World
from support.builders.tables import FakeInspector
from support.builders.worlds import NOW, view
from support.fakes.clock import ManualClock

OLD = timedelta(days=9)
GARBAGE = {"tombstones": 5, "tombstone_bytes": 500}


@pytest.fixture
def world() -> World:
    return World()


class Odd(FakeInspector):
    """Validation with a bug that one table brings out."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__()
        self.name, self.error = name, error

    def changed(
        self, governed: Governed, seen: Observation | LogProblem, before: HealthRow | None, now: Any
    ) -> tuple[Finding, ...]:
        if governed.row.name == self.name:
            raise self.error
        return super().changed(governed, seen, before, now)


def _due(world: World, name: str, **changes: Any) -> None:
    row = world.add(name, **changes)
    world.write(row, oldest_tombstone_at=world.clock.now() - OLD, **GARBAGE)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(OverflowError("days=999999999999; must have magnitude <= 999999999"), id="overflow"),
        pytest.param(RecursionError("maximum recursion depth exceeded"), id="recursion"),
        pytest.param(UnreadableError("Commit 3 is garbage."), id="unreadable"),
        pytest.param(ValueError("\ud800 " * 300), id="words that cannot be stored"),
    ],
)
def test_a_table_whose_judging_fails_is_quarantined_and_the_others_are_worked_on(
    world: World, error: Exception
) -> None:
    world.inspector = Odd("db.odd", error)
    world.restart()
    world.add("db.odd")
    _due(world, "db.fine")
    report = world.sweep()
    assert (report.trouble, report.skipped, report.queued) == (None, 1, 1)
    assert world.row("db.odd").state is TableState.QUARANTINED
    assert "cannot be judged" in (world.row("db.odd").state_reason or "")
    assert world.row("db.fine").state is TableState.ACTIVE


def test_it_is_released_by_the_first_look_that_gets_through_and_an_idle_sweep_writes_nothing(
    world: World,
) -> None:
    world.inspector = Odd("db.odd", ZeroDivisionError("a bug"))
    world.restart()
    world.add("db.odd")
    world.sweep()
    before = len(world.store.commits)
    world.sweep()
    assert world.store.commits[before:] == [], "the same finding is not written again"
    world.inspector = FakeInspector()
    world.restart()
    world.sweep()
    assert world.row("db.odd").state is TableState.ACTIVE


def test_storage_that_is_away_is_no_reason_to_quarantine(world: World) -> None:
    world.inspector = Odd("db.odd", UnavailableError("The storage does not answer."))
    world.restart()
    world.add("db.odd")
    assert world.sweep().skipped == 1
    assert world.row("db.odd").state is TableState.ACTIVE


@pytest.mark.parametrize(
    "absurd",
    [
        pytest.param({"version": 2**70}, id="version"),
        pytest.param({"bytes": 2**70}, id="bytes"),
        pytest.param({"schema": (Column(id=1, path="\ud800", type="long"),)}, id="column name"),
    ],
)
def test_what_cannot_be_stored_of_one_table_keeps_nothing_of_another_from_being_stored(
    world: World, absurd: dict[str, Any]
) -> None:
    odd, fine = world.add("db.odd"), world.add("db.fine")
    world.sweep()
    world.write(odd)
    seen = world.reader.tables[odd.location or ""]
    assert isinstance(seen, Observation)
    world.reader.tables[odd.location or ""] = replace(seen, **absurd)
    world.write(fine, files=12)
    report = world.sweep()
    assert report.trouble is None
    assert world.health("db.fine").files == 12
    assert world.row("db.odd").state is TableState.QUARANTINED


BAD_HOURS = PolicySettings(quiet_hours="from dusk till dawn")


def test_a_plan_passes_over_a_table_that_cannot_be_judged_and_says_why() -> None:
    due: dict[str, Any] = {"oldest_tombstone_at": NOW - OLD, **GARBAGE}
    seen = Planned(tables=(view("db.odd", policy=BAD_HOURS, **due), view("db.fine", **due)))
    made = plan(seen, NOW)
    assert [run.name for run in made.runs] == ["db.fine"]
    said = made.of("id-db.odd")
    assert len(said) == len(Action)
    assert all(isinstance(one, Waiting) and one.answer.why is WhyNot.NOT_JUDGED for one in said)
    assert all(
        "cannot be judged (ValueError" in one.answer.because for one in said if isinstance(one, Waiting)
    )


def test_what_one_action_is_due_for_is_told_without_a_budget_and_whatever_else_is_more_urgent() -> None:
    due: dict[str, Any] = {"oldest_tombstone_at": NOW - OLD, **GARBAGE}
    tables = (
        view("db.odd", policy=BAD_HOURS, **due),
        view("db.compacted", **due, small_files=90),
        view("db.none"),
        view("db.more", **{**due, "tombstone_bytes": 2**40}),
    )
    budget = Budget(runs_per_cycle=0)
    seen = Planned(tables=tables, budget=budget)
    assert plan(seen, NOW).runs == ()
    found = due_for(seen, Action.VACUUM, NOW)
    assert [run.name for run in found] == ["db.more", "db.compacted"]


def test_the_cycle_plans_for_the_others(world: World) -> None:
    _due(world, "db.odd", policy=BAD_HOURS)
    _due(world, "db.fine")
    report = world.sweep()
    assert (report.trouble, report.queued) == (None, 1)


def _finished(world: World, run_id: str, table_id: str, result: Result, **changes: Any) -> None:
    request = RunRequest(
        run_id=run_id, table_id=table_id, name="db.a", location="file:///lake/db.a", action=Action.VACUUM,
        payload="{}", because="a test", **changes,
    )  # fmt: skip
    world.queue.enqueue([request])
    assert world.work(result) is not None


def test_a_run_that_cannot_be_stored_is_recorded_bare_and_the_next_is_recorded_whole(world: World) -> None:
    row = world.add("db.a")
    world.sweep()
    _finished(world, "odd", row.table_id, Result(outcome=Outcome.SUCCEEDED, message="x", actual_bytes=2**70))
    _finished(world, "fine", row.table_id, Result(outcome=Outcome.SUCCEEDED, message="whole"))
    assert world.sweep().trouble is None
    said = {run.run_id: run.message for run in world.runs()}
    assert said["fine"] == "whole" and "could not be stored" in (said["odd"] or "")
    assert world.queue.finished(10) == ()


def test_a_run_whose_consequences_cannot_be_drawn_does_not_stop_every_cycle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = world.add("db.a")
    changed = replace(row, state=TableState.CONVERTING)
    world.store.edit(TABLES, lambda _: [changed], because="test")
    del world.reader.tables[row.location or ""]
    request = RunRequest(
        run_id="r", table_id=row.table_id, name="db.a", location=row.location or "", action=Action.CONVERT,
        payload="{}", because="a test",
    )  # fmt: skip
    world.queue.enqueue([request])
    assert world.work(Result(outcome=Outcome.SUCCEEDED, message="converted")) is not None
    monkeypatch.setattr(Registry, "reader_at", _refuse)
    assert world.sweep().trouble is None
    assert [run.run_id for run in world.runs()] == ["r"]
    assert world.store.rows(RUNS).get("r") is not None and world.queue.finished(10) == ()


def _refuse(registry: Registry, location: str, name: str | None = None) -> None:
    raise RefusedError("There is nothing there.")


@pytest.mark.parametrize("subject", ["http://[x/t", "a\0b/c", "", "\ud800://x"])
def test_a_hint_that_names_no_place_is_passed_over(world: World, subject: str) -> None:
    _due(world, "db.fine")
    world.inbox.put([Hint(hint_id="1", subject=subject, kind=HintKind.REQUESTED, at=world.clock.now())])
    report = world.sweep()
    assert (report.trouble, report.queued) == (None, 1)


def test_failing_cycles_are_counted_until_one_goes_through(tmp_path: Path) -> None:
    clock, troubles = ManualClock(), Troubles(tmp_path)
    assert troubles.read() is None
    began = clock.now()
    for number in range(3):
        troubles.failed(f"It broke, {number}.", clock.now())
        clock.advance(timedelta(minutes=1))
    found = Troubles(tmp_path).read()
    assert found is not None
    assert (found.count, found.since, found.because) == (3, began, "It broke, 2.")
    troubles.passed()
    assert Troubles(tmp_path).read() is None


def test_a_note_of_failing_cycles_that_makes_no_sense_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "failing-cycles.json").write_text("[]")
    assert Troubles(tmp_path).read() is None
