"""The script where its surroundings are hostile: one sentence and a hint, the right exit code, never a traceback."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from lakewarden.catalog.model.rows import Outcome
from lakewarden.daemon.usecases.runs.waiting import run_and_wait
from support.builders.states import request
from support.processes.daemon_process import FakeWorkerServices
from support.processes.house import House

LAKEWARDEN = str(Path(sys.executable).with_name("lakewarden"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home without tables of users."""
    place = tmp_path_factory.mktemp("edges") / "home"
    assert called(place, "init").returncode == 0
    return place


def called(
    home: Path, *arguments: str | bytes, to: str | None = None, settings: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run the script; standard output goes to the file `to`, or is captured."""
    environment = {**os.environ, "LAKEWARDEN_HOME": str(home), **(settings or {})}
    with open(to or os.devnull, "wb") as place:
        return subprocess.run(
            [LAKEWARDEN, *arguments],
            stdout=subprocess.PIPE if to is None else place,
            stderr=subprocess.PIPE,
            env=environment,
            check=False,
        )


def sentences(said: "subprocess.CompletedProcess[bytes]") -> list[str]:
    return said.stderr.decode().splitlines()


@pytest.mark.parametrize(
    "arguments", [("--help",), ("tables", "list"), ("tables", "list", "-o", "json")], ids=" ".join
)
def test_a_full_disk_behind_standard_output(home: Path, arguments: tuple[str, ...]) -> None:
    said = called(home, *arguments, to="/dev/full")
    problem, hint = "No space left on device.", "Check disk and permissions, then repeat the command."
    assert said.returncode == 1
    if "json" in arguments:
        assert json.loads(said.stderr) == {"error": problem, "hint": hint, "exit_code": 1}
    else:
        assert sentences(said) == [f"Error: {problem}", f"Hint: {hint}"]


def test_a_program_that_asked_for_json_gets_errors_as_json(home: Path) -> None:
    said = called(home, "tables", "show", "db.nowhere", "-o", "json")
    assert said.returncode == 1
    assert said.stdout == b""
    told = json.loads(said.stderr)
    assert told["exit_code"] == 1
    assert "db.nowhere" in told["error"]
    assert told["hint"]


def test_an_argument_that_is_not_text(home: Path) -> None:
    said = called(home, "tables", "show", b"db.\xff")
    assert (said.returncode, sentences(said)[0]) == (2, r"Error: Argument 3 is not text: b'db.\xff'.")


def test_a_terminal_that_knows_only_latin_letters(home: Path) -> None:
    said = called(home, "tables", "show", "db.├ö", settings={"PYTHONIOENCODING": "latin-1"})
    assert said.returncode == 1
    assert said.stderr.decode("latin-1").startswith("Error: db.?ö is not a managed table.")


def test_a_system_table_that_cannot_be_written(home: Path) -> None:
    blocked = home / "system" / "audit"
    for number in range(64):
        (blocked / f"bucket={number}").write_text("in the way")
    said = called(home, "pause", "db.*")
    assert said.returncode == 0
    assert "Done, but not recorded yet: lakewarden.audit cannot be written" in sentences(said)[0]


def test_a_daemon_whose_database_does_not_answer_has_failed(home: Path) -> None:
    nowhere = "database.url=sqlite:////nonexistent/state.db"
    said = called(home, "daemon", "--once", "--set", nowhere, "--set", "http.port=0")
    assert said.returncode == 1
    assert b"Traceback" not in said.stderr


@pytest.mark.parametrize("led", [False, True], ids=["alone", "beside a daemon"])
def test_what_a_command_waited_for_when_it_was_interrupted(tmp_path: Path, led: bool) -> None:
    class Slow(FakeWorkerServices):
        @contextmanager
        def own_workers(self, count: int) -> Iterator[None]:
            yield

    services, asked, said = Slow(House(tmp_path).services.settings), request("t"), list[str]()
    if led:
        services.leases.acquire(services.settings.lease_name, "another", services.settings.lease_ttl)
    Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()  # by then it waits
    with pytest.raises(KeyboardInterrupt):
        run_and_wait(services, asked, tell=said.append)
    run = services.queue.get(asked.run_id)
    assert run is not None and said[-1].startswith(f"Run {asked.run_id} ")
    assert (run.result is not None and run.result.outcome is Outcome.CANCELLED) is not led
    assert ("goes on" in said[-1]) is led
