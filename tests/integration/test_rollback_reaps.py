"""Without a daemon nobody settles what a dead worker had claimed: whoever waits for it does."""

from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ExitCode
from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.state.port import RunRequest
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.rollbacks.rollback import RollbackService, rollbacks_of_services
from lakewarden.jobs.actions.registry import encode
from lakewarden.jobs.actions.rollback import RollBack
from support.builders.callers import actor
from support.builders.derived import ids, write
from support.processes.commands import Cli
from support.processes.daemon_process import FakeWorkerServices
from support.processes.sparkless import sparkless

SHORT = timedelta(milliseconds=300)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return sparkless(tmp_path / "home", monkeypatch, capfdbinary)


def begun(folder: Path, call: Cli) -> tuple[RollbackService, str]:
    """A table with a bad load, and a rollback of it that was begun and that nobody is at."""
    place = folder / "lake" / "source"
    assert call("init").code == 0
    write(place, 1)
    assert call("tables", "register", str(place), "--name", "db.source").code == 0
    write(place, 99)
    plan = call("rollback", "plan", "db.source", "--to-version", "0", "-o", "json").json["hash"]
    services = FakeWorkerServices(load_settings(home=folder / "home"))
    rollbacks = rollbacks_of_services(services)
    rollbacks.begin(plan, actor=actor("ana", admin=True))
    return rollbacks, plan


def claimed(rollbacks: RollbackService, request: RunRequest, *, lease: timedelta = SHORT) -> None:
    """A worker that takes the run and is never heard of again."""
    queue = rollbacks.services.queue
    queue.enqueue([request])
    run = queue.claim("worker-dead", lease)
    assert run is not None and queue.start(run.request.run_id, "worker-dead", lease)


def test_a_resume_without_a_daemon_takes_over_the_run_of_a_dead_worker(tmp_path: Path, call: Cli) -> None:
    rollbacks, plan = begun(tmp_path, call)
    head = rollbacks.journal.get(plan).head
    claimed(
        rollbacks,
        RunRequest(
            run_id=f"{plan}-1",
            table_id=head.table_id,
            name="db.source",
            location=head.location or "",
            action=Action.ROLLBACK,
            payload=encode(RollBack(rollback_id=plan)),
            because="test",
            rank=float("inf"),
        ),
    )
    said = call("rollback", "resume", plan, "-o", "json")
    assert said.code == 0 and said.json["state"] == "done", said
    assert ids(tmp_path / "lake" / "source") == [1]
    assert "worker-dead is gone" in said.err


def test_a_wait_for_maintenance_says_what_for_and_ends_in_time(tmp_path: Path, call: Cli) -> None:
    rollbacks, plan = begun(tmp_path, call)
    head = rollbacks.journal.get(plan).head
    request = RunRequest(
        run_id="old",
        table_id=head.table_id,
        name="db.source",
        location=head.location or "",
        action=Action.STATISTICS,
        payload="{}",
        because="test",
        rank=1.0,
    )
    claimed(rollbacks, request, lease=timedelta(minutes=10))
    said = call("rollback", "resume", plan, "--timeout", "2 s")
    assert said.code == ExitCode.PARTLY, said
    assert "Waiting for the statistics of db.source to end (worker-dead has had it since " in said.err
    assert f"Rollback {plan} is not finished after 2 seconds" in said.err
    assert f"`lakewarden rollback resume {plan}`" in said.err
    assert ids(tmp_path / "lake" / "source") == [1, 99]


def test_maintenance_of_a_dead_worker_keeps_no_rollback_waiting(tmp_path: Path, call: Cli) -> None:
    rollbacks, plan = begun(tmp_path, call)
    head = rollbacks.journal.get(plan).head
    claimed(
        rollbacks,
        RunRequest(
            run_id="old",
            table_id=head.table_id,
            name="db.source",
            location=head.location or "",
            action=Action.STATISTICS,
            payload="{}",
            because="test",
            rank=1.0,
        ),
    )
    assert call("rollback", "resume", plan).code == 0
    assert ids(tmp_path / "lake" / "source") == [1]
    old = rollbacks.services.queue.get("old")
    assert old is None or (old.result is not None and old.result.outcome is Outcome.CANCELLED)
