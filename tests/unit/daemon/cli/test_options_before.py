"""`--home`, `--profile` and `-o` before a command mean what they mean after it; two that do not agree are refused."""

import json
from pathlib import Path

import pytest

from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from support.builders.states import request
from support.processes.commands import Cli, caller

RUN_ID = "3f2a" + "0" * 28


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def cli(home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    call = caller(home, monkeypatch, capfdbinary)
    assert call("init").code == 0
    return call


@pytest.mark.parametrize(
    "line", ["-o json status", "status -o json", "-o json status -o json", "--output=json status"]
)
def test_the_format_may_stand_on_either_side(line: str, cli: Cli, home: Path) -> None:
    assert cli(*line.split()).json["home"] == str(home)


def test_what_was_said_before_one_command_does_not_count_for_the_next(cli: Cli) -> None:
    assert cli("-o", "json", "status").out.startswith("{")
    assert cli("status").out.startswith("home ")


@pytest.mark.heavy
def test_another_home_may_stand_on_either_side(cli: Cli, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    assert cli("--home", other, "init").code == 0
    for line in (
        ["--home", other, "status"],
        ["status", "--home", other],
        ["--home", other, "status", "--home", other],
    ):
        assert cli(*line, "-o", "json").json["home"] == other


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ("-o json", "-o csv", "-o says json before the command and csv after it."),
        ("--home /a", "--home /b", "--home says /a before the command and /b after it."),
        ("--profile a", "--profile b", "--profile says a before the command and b after it."),
    ],
)
def test_two_that_do_not_agree_are_refused(before: str, after: str, error: str, cli: Cli) -> None:
    said = cli(*before.split(), "status", *after.split())
    told = (
        json.loads(said.err)["error"]
        if "json" in before
        else said.err.splitlines()[0].removeprefix("Error: ")
    )
    assert (said.code, said.out, told) == (2, "", error)


@pytest.mark.parametrize(
    "line", ["-o json top --once", "top --once -o json", "completion bash -o csv", "-o yaml daemon --once"]
)
def test_a_command_without_a_result_takes_no_format(line: str, cli: Cli) -> None:
    said = cli(*line.split())
    assert (said.code, said.out) == (2, "")
    assert "has no result to print in another way." in said.err


def test_a_cancelled_run_is_told_to_programs(cli: Cli, home: Path) -> None:
    made = Services(load_settings(home=home, environment={}))
    asked = request(run_id=RUN_ID)
    made.queue.enqueue([asked])
    said = cli("jobs", "cancel", "3f2a", "-o", "json")
    assert said.code == 0
    assert said.json == {"run_id": RUN_ID, "name": asked.name, "action": asked.action, "state": "finished"}


@pytest.mark.heavy
def test_policies_are_exported_in_the_words_that_apply_reads(cli: Cli, tmp_path: Path) -> None:
    cli("tables", "policy", "set", "db.*", "vacuum.retention=9 days", "mode=manage")
    said = cli("policy", "export", "-o", "json")
    assert said.json == {"db.*": {"mode": "manage", "vacuum.retention": "9 days"}}
    (tmp_path / "policies.json").write_text(said.out)
    assert cli("policy", "diff", str(tmp_path / "policies.json"), "-o", "json").json == []
    assert (
        cli("policy", "export", "-o", "csv").out
        == "name,key,value\ndb.*,mode,manage\ndb.*,vacuum.retention,9 days\n"
    )
    assert cli("policy", "export").out == cli("policy", "export", "-o", "yaml").out
