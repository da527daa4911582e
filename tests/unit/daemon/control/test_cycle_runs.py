"""Runs beside the cycle on fakes: queued once, recorded once, and settled when their worker is lost."""

from dataclasses import replace
from datetime import timedelta

from lakewarden.catalog.model.pending_conversion import Conversion
from lakewarden.catalog.model.rows import (
    Action,
    Outcome,
    TableState,
)
from lakewarden.catalog.state.port import Result
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.telemetry.webhook import EventKind
from support.builders.commits import counted
from support.builders.daemons import LEASE, World

DONE = Result(outcome=Outcome.SUCCEEDED, message="done", committed_version=1)
OLD = timedelta(days=9)


def test_due_work_is_queued_once_recorded_once_and_not_planned_again(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    assert world.sweep().queued == 1
    assert world.sweep().queued == 0
    run = world.work(DONE)
    assert run is not None and run.request.action is Action.VACUUM
    world.write(row, tombstones=0, oldest_tombstone_at=None)
    report = world.sweep()
    assert [one.run_id for one in report.recorded] == [run.request.run_id]
    assert (report.queued, world.queue.finished(9)) == (0, ())
    (recorded,) = world.runs()
    assert (recorded.outcome, recorded.committed_version) == (Outcome.SUCCEEDED, 1)
    assert recorded.payload == run.request.payload
    assert world.sweep().idle


def test_a_restarted_daemon_remembers_what_runs_came_to(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.sweep()
    world.work(Result(outcome=Outcome.SKIPPED, message="all protected"))
    world.sweep()
    world.restart()
    assert world.sweep().queued == 0


def test_a_run_that_finishes_while_the_cycle_looks_is_not_planned_twice(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.sweep()
    listen = world.cycle.parts.hints.listen

    def finish_meanwhile() -> object:
        world.work(DONE)
        return listen()

    world.cycle.parts.hints.listen = finish_meanwhile  # type: ignore[method-assign,assignment]  # between record and plan
    assert world.sweep().queued == 0
    assert len(world.runs()) == 0
    world.cycle.parts.hints.listen = listen  # type: ignore[method-assign]  # as it was
    assert world.sweep().queued == 0
    assert len(world.runs()) == 1


def test_a_lost_run_is_settled_by_the_tables_log(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.sweep()
    run = world.queue.claim("w", LEASE)
    assert run is not None and world.queue.start(run.request.run_id, "w", LEASE)
    commit = counted(
        version=2, committed_at=world.clock.now(), operation="VACUUM END", run_id=run.request.run_id
    )
    world.reader.history[row.location or ""] = [commit]
    world.clock.advance(LEASE)
    assert world.sweep().reaped == 1
    (recorded,) = world.runs()
    assert (recorded.outcome, recorded.committed_version) == (Outcome.SUCCEEDED, 2)
    [line] = world.run_log.read(run.request.run_id)
    assert (line.level, "outcome=succeeded" in line.message) == ("info", True)
    assert "Its worker was lost after it had committed version 2." in line.message


def test_a_run_lost_without_a_commit_is_tried_again_and_at_last_abandoned(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.sweep()
    for attempt in (1, 2, 3):
        run = world.queue.claim("w", LEASE)
        assert run is not None and run.request.attempt == attempt
        world.clock.advance(LEASE)
        assert world.sweep().reaped == 1
        world.clock.advance(timedelta(minutes=2))
    (recorded,) = world.runs()
    assert (recorded.outcome, recorded.attempt) == (Outcome.ABANDONED, 3)
    lines = [one.message for one in world.run_log.read(recorded.run_id)]
    assert lines[:2] == ["run lost: attempt 2 follows", "run lost: attempt 3 follows"]
    assert lines[2:] == ["run finished outcome=abandoned message=Its worker was lost in 3 attempts."]
    assert [one.kind for one in world.told.events] == [EventKind.RUN_FAILED]


def test_a_vacuum_beyond_its_breaker_asks_for_consent(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.sweep()
    asks = Result(
        outcome=Outcome.FAILED,
        error_class="ConsentError",
        message="It would delete 90%.",
        hint="Add --consent.",
    )
    world.work(asks)
    world.sweep()
    (event,) = world.told.events
    assert (event.kind, event.owner, event.hint) == (EventKind.CONSENT_NEEDED, "ana", "Add --consent.")
    assert world.sweep().queued == 0


def test_statistics_are_dated_when_their_run_is_recorded(world: World) -> None:
    row = world.add("db.a", files_without_statistics=3)
    world.sweep()
    run = world.work(DONE)
    assert run is not None and run.request.action is Action.STATISTICS
    world.write(row, files_without_statistics=0)
    world.sweep()
    assert world.health("db.a").last_statistics_at is not None
    assert world.sweep().idle


def test_nothing_is_planned_while_workers_may_still_report(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    report = world.sweep(may_plan=False)
    assert (report.queued, report.idle) == (0, False)
    assert world.sweep().queued == 1


def test_a_conversion_just_asked_for_is_waited_for(world: World) -> None:
    world.settle()
    wanted = Conversion(location="file:///lake/db.raw", name="db.raw")
    asked = replace(
        world.add("db.raw"),
        state=TableState.CONVERTING,
        properties=wanted.as_properties(),
        registered_at=world.clock.now() + timedelta(seconds=25),
    )
    world.store.edit(TABLES, lambda _: [asked], because="test")
    report = world.sweep()
    assert (report.queued, report.idle) == (0, False)
    assert world.sweep().queued == 1
