"""Server processes that end with their starter."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from lakewarden.catalog.errors import PreconditionError
from lakewarden.daemon.process.child import Tethered

_SLEEP = ("sleep", "60")
_STUBBORN = ("/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done")


def test_a_server_runs_until_it_is_stopped(tmp_path: Path) -> None:
    server = _start(tmp_path, *_SLEEP)
    children = psutil.Process(server.pid).children(recursive=True)
    assert server.running()
    server.stop()
    assert not server.running()
    assert psutil.wait_procs(children, timeout=5)[1] == []
    server.stop()


def test_a_server_that_ends_by_itself_is_seen_and_its_words_are_kept(tmp_path: Path) -> None:
    server = _start(tmp_path, "/bin/sh", "-c", "echo port taken; exit 3")
    _until(lambda: not server.running())
    assert server.said() == "port taken\n"
    server.stop()


def test_a_server_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    server = _start(tmp_path, *_STUBBORN)
    _until(lambda: "up" in server.said())
    server.stop(grace=timedelta(seconds=0.2))
    assert not server.running()


def test_a_server_can_ask_for_its_own_signal(tmp_path: Path) -> None:
    script = (
        "import signal, time; signal.signal(signal.SIGINT, lambda *_: exit(7)); "
        "print('up', flush=True); time.sleep(60)"
    )
    server = _start(tmp_path, sys.executable, "-c", script, ends_on=signal.SIGINT)
    _until(lambda: "up" in server.said())
    started = time.monotonic()
    server.stop()
    assert time.monotonic() - started < 5


@pytest.mark.heavy
def test_a_killed_starter_takes_its_server_along(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from lakewarden.daemon.process.child import Tethered\n"
        "folder = Path(sys.argv[1])\n"
        "server = Tethered(('sleep', '60'), folder=folder, log=folder / 'log')\n"
        "print(server.pid, flush=True)\n"
        "time.sleep(60)"
    )
    starter = subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    shell = psutil.Process(int(starter.stdout.readline()))
    processes = [shell, *shell.children(recursive=True)]
    os.kill(starter.pid, signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    assert psutil.wait_procs(processes, timeout=10)[1] == []


def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    first = _start(tmp_path, *_SLEEP)
    with pytest.raises(PreconditionError, match="Another server is using"):
        _start(tmp_path, *_SLEEP, patience=timedelta(seconds=0.1))
    first.kill()
    second = _start(tmp_path, *_SLEEP, patience=timedelta(0))
    assert second.running(), "a killed server holds nothing back"
    second.stop()


def _start(
    folder: Path,
    *command: str,
    ends_on: signal.Signals = signal.SIGTERM,
    patience: timedelta = timedelta(seconds=5),
) -> Tethered:
    return Tethered(command, folder=folder, log=folder / "log", ends_on=ends_on, patience=patience)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
