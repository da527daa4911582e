"""What `status` says that somebody has to look at, and nothing where all is well."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import pytest

from lakewarden.catalog.model.rows import (
    Action,
    Outcome,
    RollbackRow,
    RollbackState,
    RollbackStep,
    RunRow,
)
from lakewarden.catalog.registry.governance import set_pause
from lakewarden.catalog.system.port import ROLLBACKS, RUNS, TABLES
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.telemetry.failed_cycles import Troubles
from lakewarden.daemon.usecases.doctor.diagnosis import CheckResult
from lakewarden.daemon.usecases.doctor.examinations import examine, examine_only
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.status import status_of
from support.builders.callers import actor
from support.processes.commands import caller

ROOT = actor("root", admin=True)


@pytest.fixture
def services(tmp_path: Path) -> Services:
    made = Services(load_settings(home=tmp_path, environment={}))
    initialise(made, made.user)
    made.leases.acquire(made.settings.lease_name, "leader", timedelta(minutes=5))
    return made


def test_a_daemon_that_leads_and_gets_through_needs_nobody(services: Services) -> None:
    assert status_of(services).attention == ()


def test_a_pause_of_everything_wants_somebody_and_says_why(services: Services) -> None:
    set_pause(services.registry, "*", "we move house", actor=ROOT)
    assert status_of(services).attention == ("Everything is paused: we move house.",)
    set_pause(services.registry, "*", None, actor=ROOT)
    assert status_of(services).attention == ()


def test_what_the_last_cycle_left_out_wants_somebody_and_is_no_failed_cycle(services: Services) -> None:
    troubles = Troubles(services.settings.home)
    troubles.failed("db.t: The bucket refuses. And 4 more.", services.clock.now(), wholly=False)
    status = status_of(services)
    assert (status.failed_cycles, status.failing_because) == (0, None)
    assert status.attention == (
        "The last cycle had to leave something out. db.t: The bucket refuses. And 4 more.",
    )
    diagnosis = next(one for one in examine(services) if one.check == "cycles")
    assert diagnosis.verdict is CheckResult.WARN and "db.t: The bucket refuses." in diagnosis.message
    troubles.passed()
    assert status_of(services).attention == ()


def test_failed_cycles_are_counted_apart_from_those_that_left_something_out(services: Services) -> None:
    troubles, now = Troubles(services.settings.home), services.clock.now()
    for _ in range(3):
        troubles.failed("db.t: The bucket refuses.", now, wholly=False)
    for _ in range(2):
        troubles.failed("The system tables are away.", now)
    status = status_of(services)
    assert (status.failed_cycles, status.left_out) == (2, None)
    assert status.attention == ("2 cycles failed in a row: The system tables are away.",)


def test_cycles_that_fail_are_told_where_the_database_does_not_answer(
    services: Services, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    home = services.settings.home
    cli = caller(home, monkeypatch, capfdbinary)
    for file in home.glob("state.db*"):
        file.unlink()
    (home / "state.db").mkdir()
    silent = cli("status", "-o", "json")
    assert (silent.code, silent.out) == (1, ""), "nothing is noted, and nobody can tell"
    Troubles(home).failed("The operational database does not answer.", services.clock.now())
    for more in ((), ("--check",)):
        said = cli("status", "-o", "json", *more)
        assert said.code == 1 and "database" in said.err, said
        assert said.json["failed_cycles"] == 1
        assert said.json["failing_because"] == "The operational database does not answer."


def test_a_home_that_takes_no_bytes_is_found_and_nothing_is_said_of_its_cycles(services: Services) -> None:
    def told() -> dict[str, tuple[CheckResult, str]]:
        return {one.check: (one.verdict, one.message) for one in examine_only(services, ("home", "cycles"))}

    assert [verdict for verdict, _ in told().values()] == [CheckResult.OK, CheckResult.OK]
    assert "are free there." in told()["home"][1]
    before, limits = sorted(services.settings.home.iterdir()), getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (0, limits[1]))  # files can be made and stay empty, as on a full disk
    try:
        found = told()
    finally:
        setrlimit(RLIMIT_FSIZE, limits)
    assert found["home"][0] is CheckResult.FAIL and "cannot be written" in found["home"][1]
    assert found["cycles"][0] is CheckResult.NOT_CHECKED and "could not note" in found["cycles"][1]
    assert sorted(services.settings.home.iterdir()) == before


def ended(
    services: Services, error: str | None, *, hours_ago: int = 1, action: Action = Action.VACUUM
) -> RunRow:
    """A run of lakewarden.tables, on record."""
    (row,) = services.store.rows(TABLES).find(row=0)
    at = services.clock.now() - timedelta(hours=hours_ago)
    run = RunRow(
        run_id=f"{action}{hours_ago}{error}",
        table_id=row.table_id,
        name=row.name,
        action=action,
        because="due",
        outcome=Outcome.SUCCEEDED if error is None else Outcome.FAILED,
        error_class=error,
        queued_at=at,
        finished_at=at,
    )
    services.store.edit(RUNS, lambda _: [run], because="test")
    return run


def test_work_that_failed_wants_somebody_until_it_is_done_or_a_day_old(services: Services) -> None:
    ended(services, "UnavailableError", hours_ago=30)
    assert status_of(services).attention == ()
    ended(services, "UnavailableError", hours_ago=3)
    ended(services, "EngineError", hours_ago=2)
    ended(services, "EngineError", action=Action.COMPACT)
    assert status_of(services).attention == (
        "Failed within a day, and not done since: 2 runs; `lakewarden jobs list --outcome failed`.",
    )
    ended(services, None)
    assert status_of(services).runs_failed == 1


def test_what_somebody_elses_commit_ended_wants_nobody(services: Services) -> None:
    ended(services, "ConflictError")
    ended(services, "RevokedError", action=Action.COMPACT)
    assert status_of(services).attention == ()


def test_work_that_waits_for_consent_wants_somebody_until_its_table_is_changed(services: Services) -> None:
    (row,) = services.store.rows(TABLES).find(row=0)
    earlier = replace(row, updated_at=services.clock.now() - timedelta(days=2))
    services.store.edit(TABLES, lambda _: [earlier], because="test")
    ended(services, "ConsentError")
    status = status_of(services)
    assert (status.runs_failed, status.runs_waiting) == (0, 1)
    assert status.attention[0].startswith("Waiting for somebody's consent: 1 run;")
    services.store.edit(TABLES, lambda _: [replace(row, updated_at=services.clock.now())], because="test")
    assert status_of(services).runs_waiting == 0


def test_a_rollback_that_stopped_wants_somebody_and_says_which(services: Services) -> None:
    def head(state: RollbackState) -> RollbackRow:
        return RollbackRow(
            rollback_id="r1",
            plan_hash="h",
            step=0,
            table_id="",
            from_version=0,
            to_version=0,
            kind=RollbackStep.PLAN,
            state=state,
            recorded_at=services.clock.now(),
        )

    services.store.edit(ROLLBACKS, lambda _: [head(RollbackState.CONFLICT)], because="test")
    assert status_of(services).attention == (
        "A rollback stopped at a conflict: `lakewarden rollback show r1` says how to go on.",
    )
    services.store.edit(ROLLBACKS, lambda _: [head(RollbackState.DONE)], because="test")
    assert status_of(services).attention == ()


def test_a_damaged_table_of_runs_leaves_the_rest_to_be_told(services: Services) -> None:
    log = Path(services.store.location(RUNS).removeprefix("file://")) / "_delta_log"
    for entry in log.iterdir():
        entry.write_text("no log")
    status = status_of(Services(services.settings))
    assert status.tables == 7
    (said,) = status.attention
    assert said.startswith("The log of lakewarden.runs cannot be read.") and "system verify" in said
