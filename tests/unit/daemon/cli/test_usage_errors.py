"""What the command line does not take is told like any other error: a sentence and a hint, as JSON if asked for."""

import json
from pathlib import Path

import pytest

from support.processes.commands import Cli, caller


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return caller(tmp_path, monkeypatch, capfdbinary)


@pytest.mark.parametrize(
    ("line", "error", "hint"),
    [
        ("statsu", "No such command 'statsu'.", "Did you mean status?"),
        ("tables lst", "No such command 'lst'.", "Did you mean list?"),
        ("tables list --onwer ana", "No such option: --onwer.", "Did you mean --owner?"),
        (
            "tables list --stopped pausd",
            "Invalid value for '--stopped': 'pausd' is not one of 'paused', 'held'.",
            "Did you mean paused?",
        ),
        (
            "tables list --stopped yes",
            "Invalid value for '--stopped': 'yes' is not one of 'paused', 'held'.",
            "Write lakewarden tables list [OPTIONS] [PATTERN]; `lakewarden tables list --help` explains it.",
        ),
        (
            "why",
            "Missing argument 'where'.",
            "Write lakewarden why [OPTIONS] {where}; `lakewarden why --help` explains it.",
        ),
    ],
)
def test_a_line_that_makes_no_sense(line: str, error: str, hint: str, cli: Cli) -> None:
    said = cli(*line.split())
    assert (said.code, said.out, said.err) == (2, "", f"Error: {error}\nHint: {hint}\n")


def test_a_misspelt_action_is_told_with_the_nearest(cli: Cli) -> None:
    said = cli("jobs", "run", "db.t", "compct")
    assert (said.code, said.err.splitlines()[-1]) == (2, "Hint: Did you mean compact?")


@pytest.mark.parametrize("asked", ["-o json", "-ojson", "--output json", "--output=json"])
@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("tables list --stopped pausd", "'pausd' is not one of"),
        ("why", "Missing argument 'where'."),
        ("tables lst", "No such command 'lst'."),
    ],
)
def test_a_program_gets_it_as_json(asked: str, line: str, error: str, cli: Cli) -> None:
    said = cli(*line.split(), *asked.split())
    told = json.loads(said.err)
    assert (said.code, said.out) == (2, "")
    assert told.keys() == {"error", "hint", "exit_code"}
    assert error in told["error"] and told["hint"] and told["exit_code"] == 2


def test_what_follows_two_dashes_is_no_option(cli: Cli) -> None:
    assert cli("tables", "lst", "--", "-o", "json").err.startswith("Error: No such command 'lst'.\n")


def test_a_group_alone_shows_its_commands_on_stderr(cli: Cli) -> None:
    said = cli("tables")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("Usage: lakewarden tables ") and "register" in said.err


def test_help_and_version_are_what_was_asked_for(cli: Cli) -> None:
    for option in ("--help", "-h", "--version"):
        said = cli(option)
        assert (said.code, said.err) == (0, "") and "lakewarden" in said.out


def test_no_command_offers_to_install_a_completion_that_knows_no_tables(cli: Cli) -> None:
    for words in ((), ("tables",), ("config", "show")):
        assert "--install-completion" not in cli(*words, "--help").out
