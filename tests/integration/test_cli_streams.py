"""The script in a pipeline: readers that have gone away, streams that are closed, questions nobody answers, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.state.port import RunState
from support.builders.states import request
from support.processes.commands import command
from support.processes.house import House

LAKEWARDEN = str(Path(sys.executable).with_name("lakewarden"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("streams") / "home"
    assert command(place, "init").returncode == 0
    return place


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_reader_that_has_seen_enough(home: Path, form: str) -> None:
    assert piped(home, f"config show -o {form}", "| head -c 1 > /dev/null") == (0, "")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("line", "code", "closed"),
    [
        ("tables list", 0, ">&-"),
        ("tables list -o json", 0, ">&-"),
        ("--help", 0, ">&- 2>&-"),
        ("tables show db.x", 1, "2>&-"),
        ("tables list", 0, "<&-"),
    ],
)
def test_streams_that_are_closed(home: Path, line: str, code: int, closed: str) -> None:
    found, told = piped(home, line, f"{closed} | cat")
    assert found == code
    assert "Traceback" not in told


@pytest.mark.few(1)
@pytest.mark.parametrize(("line", "code"), [("tables show db.x", 1), ("tables lst", 2), ("pause db.*", 0)])
def test_nobody_reads_what_is_remarked(home: Path, line: str, code: int) -> None:
    assert piped(home, line, "2>&1 >/dev/null | true") == (code, "")


def test_a_table_of_commas_ends_its_lines_as_a_shell_wants_them(home: Path) -> None:
    said = command(home, "config", "show", "-o", "csv")
    assert said.stdout.startswith("key,value,") and "\r" not in said.stdout


def piped(home: Path, line: str, into: str) -> tuple[int, str]:
    """The exit code of a command whose output a shell leads elsewhere, and what of it came to light."""
    told = subprocess.run(
        ["bash", "-c", f'{LAKEWARDEN} {line} {into}; exit "${{PIPESTATUS[0]}}"'],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "LAKEWARDEN_HOME": str(home)},
        check=False,
    )
    return told.returncode, told.stdout.decode()


def test_a_question_that_nobody_answers(home: Path, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "asked"), pa.table({"id": [1]}))
    assert command(home, "tables", "register", str(tmp_path / "asked"), "--name", "db.asked").returncode == 0
    code, told = piped(home, "tables drop db.asked -o json", "< /dev/null")
    assert code == 4
    assert json.loads(told.splitlines()[-1]) == {
        "error": "Not confirmed: nothing was changed.",
        "hint": "--yes skips the question.",
        "exit_code": 4,
    }
    assert command(home, "tables", "drop", "db.asked", "--yes").returncode == 0


def test_a_run_that_is_waited_for_goes_on_after_ctrl_c(tmp_path: Path) -> None:
    house, asked = House(tmp_path), request("t")
    house.services.queue.enqueue([asked])
    waiting = subprocess.Popen(
        [LAKEWARDEN, "jobs", "wait", asked.run_id],
        stderr=subprocess.PIPE,
        env={**os.environ, "LAKEWARDEN_HOME": str(house.services.settings.home)},
    )
    assert waiting.stderr is not None
    begun = waiting.stderr.readline().decode()
    waiting.send_signal(signal.SIGINT)
    told = waiting.stderr.read().decode().splitlines()
    waiting.stderr.close()
    assert begun == "No daemon leads: a queued run waits until one does.\n"
    goes_on = f"Run {asked.run_id} ({asked.action} of {asked.name}) goes on;"
    assert told == [f"{goes_on} `lakewarden jobs cancel {asked.run_id}` ends it.", "Interrupted."]
    assert waiting.wait() == 130
    run = house.services.queue.get(asked.run_id)
    assert run is not None and run.state is RunState.QUEUED
