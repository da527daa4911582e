"""Where the settings file is no TOML, every command says so in one sentence, with a hint and the code of a usage error:
but for `doctor`, which goes on, and `completion`, which needs no home."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakewarden.daemon.cli.app import COMMANDS
from lakewarden.daemon.cli.lazy import command_of
from support.processes.commands import caller

NEED_NO_SETTINGS = {("doctor",), ("completion",)}
WRITTEN = {"assignments": ["mode=manage"], "action": ["vacuum"], "versions": ["1"], "file": ["policies.yaml"]}
"""What is written for a required argument, where a word will not do."""
ALSO_WRITTEN = {
    ("sql",): ["SELECT 1"],
    ("tables", "register"): ["/data/events"],
    ("tables", "convert"): ["--dry-run"],
    ("rollback", "plan"): ["db.events", "--to-version", "1"],
    ("lineage", "mark"): ["--bad"],
    ("lineage", "declare"): ["--remove"],
    ("tables", "hold"): ["--lift"],
}


def commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each that can be called, by its words."""
    below: dict[str, Any] = getattr(command, "commands", {})
    if not below:
        yield words, command
    for name, child in below.items():
        yield from commands(child, (*words, name))


def all_of_them() -> Iterator[tuple[str, ...]]:
    """A command line for each."""
    for name, where in COMMANDS.items():
        loaded = command_of(where)
        for words, command in commands(getattr(loaded, "commands", {}).get(name, loaded), (name,)):
            if words in NEED_NO_SETTINGS:
                continue
            said = list(words)
            for one in command.params:
                if one.required:
                    option = one.opts[:1] if one.param_type_name == "option" else []
                    said += [*option, *WRITTEN.get(one.name, ["word"])]
            yield (*said, *ALSO_WRITTEN.get(words, ()))


EVERY = list(all_of_them())


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_a_command_says_that_the_settings_are_no_toml(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies.yaml").write_text("{}")
    (tmp_path / "lakewarden.toml").write_text("[metastore]\nuri = thrift://m:9083\n")
    said = caller(tmp_path, monkeypatch, capfdbinary)(*words)
    assert (said.code, said.out) == (2, "")
    error, hint = said.err.splitlines()
    file = tmp_path / "lakewarden.toml"
    assert error == f"Error: {file} is not valid TOML at line 2, column 7: invalid value."
    assert hint.startswith("Hint: Text stands between quotes")
    assert {one.name for one in tmp_path.iterdir()} == {"policies.yaml", "lakewarden.toml"}


def test_there_are_many_commands() -> None:
    assert len(EVERY) >= 50 and ("tables", "list") in EVERY
