"""A host of workers: what it starts, what it waits for, whom it kills, how it stops."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from lakewarden.catalog.errors import ExitCode, OutdatedError, PreconditionError, UnavailableError
from lakewarden.catalog.state.port import Run
from lakewarden.daemon.telemetry.liveness import ProcessRole, Vitals
from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.daemon.telemetry.probes import Pages
from lakewarden.daemon.workers.host import HostParts, WorkerHost
from lakewarden.daemon.workers.pool import WorkerPool, pool_name
from support.builders.states import LONG, request
from support.fakes.clock import ManualClock
from support.fakes.state import FakeQueue

SLEEP = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); time.sleep(60)"


def sleeper(name: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=True)


class Troubled(FakeQueue):
    """A queue that does not answer while `trouble` says why."""

    trouble: Exception | None = None

    def unfinished(self) -> tuple[Run, ...]:
        if self.trouble is not None:
            raise self.trouble
        return super().unfinished()


@dataclass
class Stage:
    """A host on a queue in memory."""

    queue: Troubled
    clock: ManualClock
    pool: WorkerPool
    vitals: Vitals
    host: WorkerHost

    def play(self, act: Callable[[], None]) -> ExitCode:
        """Run the host in this thread, whose signals it takes, while `act` happens in another; then stop it."""

        def acting() -> None:
            try:
                act()
            finally:
                self.host.stopping.set()

        with ThreadPoolExecutor(1) as other:
            acted = other.submit(acting)
            code = self.host.run()
            acted.result()
        return code


def until(check: Callable[[], bool]) -> None:
    for _ in range(400):
        if check():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it did not come to that")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr("lakewarden.daemon.workers.host._POLL", timedelta(milliseconds=20))
    clock = ManualClock()
    queue, metrics = Troubled(clock), Metrics()
    vitals = Vitals(patience=timedelta(minutes=1), kind="worker")
    pool = WorkerPool(sleeper, count=2, prefix="w")
    pages = Pages(port=0, vitals=vitals, metrics=metrics)
    host = WorkerHost(
        HostParts(
            queue=queue, pool=pool, count=2, formats=frozenset({"delta"}), drain=timedelta(seconds=10),
            vitals=vitals, metrics=metrics, pages=pages,
        )
    )  # fmt: skip
    return Stage(queue, clock, pool, vitals, host)


@pytest.mark.heavy
def test_workers_are_started_for_what_waits_and_drained_at_the_end(stage: Stage) -> None:
    def act() -> None:
        until(lambda: stage.vitals.ready().ok)
        assert stage.pool.alive == 0, "nothing waits"
        stage.queue.enqueue([replace(request("foreign"), runtime="odd")])
        threading.Event().wait(0.2)
        assert stage.pool.alive == 0, "no worker here has that engine"
        stage.queue.enqueue([request("a")])
        until(lambda: stage.pool.alive == 1)
        stage.queue.enqueue([request("b"), request("c")])
        until(lambda: stage.pool.alive == 2)

    assert stage.play(act) is ExitCode.OK
    assert stage.pool.alive == 0
    assert stage.vitals.ready().message == "This worker is stopping."


def test_sigterm_stops_it(stage: Stage) -> None:
    def act() -> None:
        until(lambda: stage.vitals.ready().ok)
        signal.raise_signal(signal.SIGTERM)
        until(stage.host.stopping.is_set)

    assert stage.play(act) is ExitCode.OK


def test_a_queue_that_does_not_answer_is_waited_for_and_said(stage: Stage) -> None:
    def act() -> None:
        stage.queue.trouble = UnavailableError("The database does not answer.")
        until(lambda: stage.vitals.ready().message == "The database does not answer.")
        assert stage.vitals.live().ok, "a restart would not help"
        stage.queue.trouble = None
        until(lambda: stage.vitals.ready().ok)

    assert stage.play(act) is ExitCode.OK


def test_a_queue_of_a_newer_version_ends_it(stage: Stage) -> None:
    stage.queue.trouble = OutdatedError("The operational database has schema version 99.")
    code = stage.play(lambda: until(lambda: stage.vitals.role is ProcessRole.STOPPING))
    assert code is ExitCode.FAILED


def test_system_tables_of_a_newer_version_end_it_before_a_worker_is_started(stage: Stage) -> None:
    def outdated() -> None:
        raise OutdatedError("lakewarden.tables has schema version 99.")

    stage.host.parts = replace(stage.host.parts, require_current=outdated)
    stage.queue.enqueue([request("a")])
    code = stage.play(lambda: until(lambda: stage.vitals.role is ProcessRole.STOPPING))
    assert code is ExitCode.FAILED and stage.pool.alive == 0
    assert [run.worker for run in stage.queue.unfinished()] == [None]


def test_system_tables_that_wait_for_an_upgrade_are_waited_for(stage: Stage) -> None:
    waiting = True

    def older() -> None:
        if waiting:
            raise PreconditionError("lakewarden.tables waits for the upgrade to 99.")

    stage.host.parts = replace(stage.host.parts, require_current=older)

    def act() -> None:
        nonlocal waiting
        stage.queue.enqueue([request("a")])
        until(lambda: "waits for the upgrade" in stage.vitals.ready().message)
        assert stage.pool.alive == 0
        waiting = False
        until(lambda: stage.pool.alive == 1)
        until(lambda: stage.vitals.ready().ok)

    assert stage.play(act) is ExitCode.OK


@pytest.mark.heavy
def test_a_worker_that_lost_its_run_is_killed_and_another_is_not(stage: Stage) -> None:
    stage.clock.moment = datetime.now(UTC) + timedelta(hours=1)

    def act() -> None:
        stage.queue.enqueue([request("a"), request("b")])
        until(lambda: stage.pool.alive == 2)
        for name, lease in (("w-0", timedelta(seconds=1)), ("w-1", LONG)):
            run = stage.queue.claim(name, lease)
            assert run is not None and stage.queue.start(run.request.run_id, name, lease)
        threading.Event().wait(0.2)
        assert stage.pool.alive == 2
        stage.clock.advance(timedelta(seconds=2))
        until(lambda: stage.pool.alive == 1)
        threading.Event().wait(0.2)
        assert stage.pool.alive == 1, "the other one's lease goes on"

    assert stage.play(act) is ExitCode.OK


def test_no_two_processes_name_their_workers_alike() -> None:
    assert pool_name() != pool_name(), "process ids are the same in every container"
