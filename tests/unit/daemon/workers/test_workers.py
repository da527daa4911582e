"""The worker pool with real processes."""

import errno
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.state.port import Run
from lakewarden.daemon.workers import pool as pool_module
from lakewarden.daemon.workers.pool import Launch, WorkerPool, worker_launcher
from support.builders.states import LONG, request
from support.fakes.clock import ManualClock
from support.fakes.state import FakeQueue

SLEEP = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); "
    "print('up', flush=True); time.sleep(60)"
)
DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('up', flush=True); time.sleep(60)"
)
IDLE = "raise SystemExit(0)"
FAIL = "raise SystemExit(1)"


def launcher(code: str) -> tuple[Launch, list[str]]:
    names: list[str] = []

    def launch(name: str) -> "subprocess.Popen[bytes]":
        names.append(name)
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
        )
        if "print" in code:
            assert process.stdout is not None and process.stdout.readline() == b"up\n"
        return process

    return launch, names


def eventually(check: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not check() and time.monotonic() < end:
        time.sleep(0.02)
    return check()


def test_as_many_as_wanted_run_and_all_end_when_asked() -> None:
    launch, names = launcher(SLEEP)
    pool = WorkerPool(launch, count=3, prefix="w")
    pool.tend(1)
    pool.tend(2)
    pool.tend(2)
    assert (pool.alive, names) == (2, ["w-0", "w-1"])
    assert pool.drain(timedelta(seconds=10))
    assert pool.alive == 0


def test_one_that_does_not_end_in_time_is_killed() -> None:
    launch, _ = launcher(DEAF)
    pool = WorkerPool(launch, count=1, prefix="w")
    pool.tend(1)
    assert not pool.drain(timedelta(seconds=0.2))
    assert pool.alive == 0


def claimed(run_id: str, worker: str | None) -> Run:
    queue = FakeQueue(ManualClock())
    queue.enqueue([replace(request("t"), run_id=run_id)])
    run = queue.claim("whoever", LONG)
    assert run is not None
    return replace(run, worker=worker)


def test_one_that_lost_its_run_is_killed_even_frozen_and_a_successor_of_its_name_is_not() -> None:
    launch, _ = launcher(DEAF)
    pool = WorkerPool(launch, count=2, prefix="w")
    pool.tend(2)
    run = claimed("a", "w-0")
    pool.follow([run], ())
    assert not pool.silence(claimed("a", "another"))
    assert pool.silence(run) and pool.alive == 1
    pool.follow([run], {"a"})
    pool.tend(2)
    assert eventually(lambda: not pool.tend(2) and pool.alive == 2)  # type: ignore[func-returns-value]
    pool.follow([run], {"a"})
    assert not pool.silence(run) and pool.alive == 2, "the next one of its name has nothing to do with it"
    pool.follow([run, claimed("b", "w-0")], {"a"})
    assert pool.alive == 2
    assert pool.silence(claimed("b", "w-0")) and pool.alive == 1
    pool.drain(timedelta(0))


@pytest.mark.parametrize(
    ("now", "expired", "alive"),
    [
        ((), set(), 1),
        (("w-0",), set(), 1),
        (("w-0",), {"a"}, 0),
        ((None,), set(), 0),
        (("w-9",), set(), 0),
    ],
    ids=["it was ended", "it goes on", "its lease is over", "it waits anew", "another one has it"],
)
def test_whose_run_is_lost_is_killed_whoever_settled_it(
    now: Sequence[str | None], expired: set[str], alive: int
) -> None:
    """A command that waits for the table may have settled the run before the daemon looked."""
    launch, _ = launcher(DEAF)
    pool = WorkerPool(launch, count=1, prefix="w")
    pool.tend(1)
    pool.follow([claimed("a", "w-0")], ())
    pool.follow([claimed("a", worker) for worker in now], expired)
    assert pool.alive == alive
    pool.drain(timedelta(0))


def test_one_that_not_even_a_kill_ends_makes_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for a disk that hangs."""
    launch, names = launcher(DEAF)
    now = [0.0]
    pool = WorkerPool(launch, count=1, prefix="w", monotonic=lambda: now[0])
    pool.tend(1)
    (slot,) = pool._slots
    undead = slot.process
    assert undead is not None
    monkeypatch.setattr(pool_module, "_DEATH", 0.1)
    with monkeypatch.context() as deaf:
        deaf.setattr(pool_module, "_signal_group", lambda process, number: None)
        pool.follow([claimed("a", "w-0")], {"a"})
    pool.tend(1)
    assert names == ["w-0"], "as after any failure, there is a pause"
    now[0] += 2
    pool.tend(1)
    assert names == ["w-0", "w-0"] and pool.alive == 1 and undead.poll() is None
    undead.kill()
    assert pool._dying == [undead]
    undead.wait()
    pool.tend(1)
    assert pool._dying == []
    pool.drain(timedelta(0))


def test_a_failing_worker_is_started_again_with_growing_pauses() -> None:
    launch, names = launcher(FAIL)
    now, failures = [0.0], [0]

    def failed() -> None:
        failures[0] += 1

    pool = WorkerPool(launch, count=1, prefix="w", on_failure=failed, monotonic=lambda: now[0])
    starts: list[float] = []
    while len(starts) < 5 and now[0] < 60:
        before = len(names)
        pool.tend(1)
        if len(names) > before:
            starts.append(now[0])
            assert eventually(lambda: pool.alive == 0)
        now[0] += 0.5
    assert [b - a for a, b in itertools.pairwise(starts)] == [1.5, 2.5, 4.5, 8.5]
    assert failures[0] == 4


def test_a_worker_that_was_idle_is_started_again_at_once() -> None:
    launch, names = launcher(IDLE)
    pool = WorkerPool(launch, count=1, prefix="w", monotonic=lambda: 0.0)
    pool.tend(1)
    assert eventually(lambda: pool.alive == 0)
    pool.tend(0)
    pool.tend(1)
    assert len(names) == 2
    assert pool.drain(timedelta(seconds=10))


def test_a_worker_gets_its_configuration_on_stdin_and_a_log_file(tmp_path: Path) -> None:
    launch = worker_launcher(
        config=lambda name: f'{{"name": "{name}"}}',
        logs=tmp_path / "logs",
        environment={"PYTHONPATH": str(tmp_path)},
        command=(sys.executable, "-c", "import sys; print(sys.stdin.read())"),
    )
    process = launch("w-7")
    assert process.wait(10) == 0
    assert (tmp_path / "logs" / "w-7.log").read_text() == '{"name": "w-7"}\n'


@pytest.mark.heavy
def test_a_worker_runs_nothing_of_the_folder_that_the_daemon_was_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = tmp_path / "here" / "lakewarden" / "__init__.py"
    foreign.parent.mkdir(parents=True)
    foreign.write_text(f"open({str(tmp_path / 'was run')!r}, 'w').close()")
    monkeypatch.chdir(tmp_path / "here")
    launch = worker_launcher(
        config=lambda name: "no configuration",
        logs=tmp_path / "logs",
        environment={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert launch("w-8").wait(60) != 0
    assert not (tmp_path / "was run").exists()


def test_a_worker_that_the_machine_does_not_let_start_is_tried_again_with_growing_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    full, launch = [True], launcher(SLEEP)[0]
    now, failures, tries = [0.0], [0], list[float]()

    def failed() -> None:
        failures[0] += 1

    def start(name: str) -> "subprocess.Popen[bytes]":
        tries.append(now[0])
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return launch(name)

    pool = WorkerPool(start, count=1, prefix="w", on_failure=failed, monotonic=lambda: now[0])
    while now[0] < 8:
        pool.tend(1)
        assert pool.alive == 0
        now[0] += 0.5
    assert tries == [0.0, 1.0, 3.0, 7.0] and failures == [4]
    assert "worker not started (worker=w-0, because=[Errno 28] No space left on device" in caplog.text
    full[0], now[0] = False, 20.0
    pool.tend(1)
    assert pool.alive == 1 and pool.unstarted is None
    pool.drain(timedelta(seconds=10))


def test_logs_that_cannot_be_written_end_nobody_who_keeps_workers(tmp_path: Path) -> None:
    (tmp_path / "logs").touch()
    launch = worker_launcher(config=lambda name: "", logs=tmp_path / "logs", environment={})
    pool = WorkerPool(launch, count=1, prefix="w")
    pool.tend(1)
    assert pool.alive == 0 and pool.unstarted is not None and "w-0.log" in pool.unstarted
