"""`lakewarden jobs logs`: a run's own lines, as text and for programs, and followed until the run has ended."""

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.state.port import Result, Run, RunLine
from lakewarden.catalog.state.queue import DatabaseQueue
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.workers.lost_runs import Reaper
from support.builders.states import request
from support.processes.commands import Cli, caller

LEASE = timedelta(minutes=5)
AT = datetime(2026, 11, 23, 12, 0, 1, 500_000, tzinfo=UTC)
RUN_ID = "3f2a" + "0" * 28


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    call = caller(tmp_path, monkeypatch, capfdbinary)
    assert call("init").code == 0
    return call


@pytest.fixture
def services(cli: Cli, tmp_path: Path) -> Services:
    """With a run that a worker has in hand."""
    made = Services(load_settings(home=tmp_path, environment={}))
    made.queue.enqueue([request(run_id=RUN_ID)])
    return made


def claimed(services: Services) -> Run:
    run = services.queue.claim("worker-1", LEASE)
    assert run is not None and services.queue.start(RUN_ID, "worker-1", LEASE)
    return run


def say(services: Services, *messages: str) -> None:
    lines = [RunLine(at=AT, level="info", message=message) for message in messages]
    services.run_log.write(RUN_ID, lines)


def test_the_beginning_of_an_id_shows_the_lines_that_are_kept(cli: Cli, services: Services) -> None:
    say(services, "run started attempt=1", "odd \x1b[31m thing")
    said = cli("jobs", "logs", "3f2a")
    assert said.code == 0
    assert said.out.splitlines() == [
        "2026-11-23 12:00:01 info     run started attempt=1",
        "2026-11-23 12:00:01 info     odd \\x1b[31m thing",
    ]
    assert cli("jobs", "logs", "3f2a", "-o", "json").json[0]["message"] == "run started attempt=1"
    assert cli("jobs", "logs", "nope").code == 1


def test_where_the_whole_log_is_is_said(cli: Cli, services: Services) -> None:
    claimed(services)
    say(services, "run started")
    assert "is where worker-1 ran" in cli("jobs", "logs", "3f2a").err
    log = services.settings.home / "logs" / "worker-1.log"
    log.parent.mkdir()
    log.touch()
    assert f"All that its worker and Spark said: {log}." in cli("jobs", "logs", "3f2a").err


def test_a_run_of_which_nothing_is_kept_says_so(cli: Cli, services: Services) -> None:
    said = cli("jobs", "logs", "3f2a")
    assert (said.code, said.out) == (0, "")
    assert "No line of it is kept" in said.err


@pytest.mark.heavy
def test_following_ends_with_the_run_and_misses_no_late_line(cli: Cli, services: Services) -> None:
    run = claimed(services)
    say(services, "run started")

    def work() -> None:
        for number in range(3):
            time.sleep(0.1)
            say(services, f"step {number}")
        services.queue.finish(run, "worker-1", Result(outcome=Outcome.SUCCEEDED))
        time.sleep(0.5)
        say(services, "run finished")

    worker = threading.Thread(target=work)
    worker.start()
    said = cli("jobs", "logs", "3f2a", "-f")
    worker.join()
    words = [line.split("info     ")[1] for line in said.out.splitlines()]
    assert words == ["run started", "step 0", "step 1", "step 2", "run finished"]


@pytest.mark.heavy
def test_following_a_run_that_the_database_lost_ends_with_a_sentence(
    cli: Cli, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed(services)
    say(services, "run started")
    looked = DatabaseQueue.get
    looks: list[str] = []

    def lost(queue: DatabaseQueue, run_id: str) -> Run | None:
        looks.append(run_id)
        return looked(queue, run_id) if len(looks) == 1 else None

    monkeypatch.setattr(DatabaseQueue, "get", lost)
    said = cli("jobs", "logs", "3f2a", "-f")
    assert (said.code, "run started" in said.out) == (1, True)
    assert "The queue lost" in said.err and "tables history" in said.err


def test_a_run_that_is_settled_without_its_worker_says_how_it_ended(cli: Cli, services: Services) -> None:
    services.queue.enqueue([request(run_id=RUN_ID)])
    run = services.queue.claim("worker-1", timedelta(seconds=-1))  # lost already
    assert run is not None
    reaper = Reaper(
        queue=services.queue,
        run_log=services.run_log,
        registry=services.registry,
        clock=services.clock,
        attempts=1,
        pause=timedelta(0),
    )
    assert [reaper.finish(one) for one in reaper.lost()] == [True]
    last = cli("jobs", "logs", "3f2a").out.splitlines()[-1]
    assert last.endswith("warning  run finished outcome=abandoned message=Its worker was lost in 1 attempt.")


def test_following_is_for_people(cli: Cli, services: Services) -> None:
    said = cli("jobs", "logs", "3f2a", "-f", "-o", "json")
    assert (said.code, "Leave -o out" in said.err) == (2, True)
