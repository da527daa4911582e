"""A table that was dropped is a precondition that does not hold, whatever command names it;
one that nobody knows is not there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from lakewarden.catalog.errors import ExitCode
from lakewarden.daemon.cli.app import COMMANDS
from lakewarden.daemon.installation.lazily import load
from support.builders.delta_logs import LogWriter
from support.processes.commands import Cli, caller, command

pytestmark = pytest.mark.heavy

NAMING = {
    "why": ExitCode.OK,
    "pause": ExitCode.PRECONDITION,
    "resume": ExitCode.PRECONDITION,
    "tables show": ExitCode.OK,
    "tables validate": ExitCode.PRECONDITION,
    "tables history": ExitCode.PRECONDITION,
    "tables owner": ExitCode.PRECONDITION,
    "tables hold": ExitCode.PRECONDITION,
    "tables register": ExitCode.PRECONDITION,
    "tables convert": ExitCode.PRECONDITION,
    "tables adopt": ExitCode.PRECONDITION,
    "tables drop": ExitCode.PRECONDITION,
    "tables undrop": ExitCode.OK,
    "tables rename": ExitCode.PRECONDITION,
    "tables policy show": ExitCode.PRECONDITION,
    "tables policy set": ExitCode.PRECONDITION,
    "rollback plan": ExitCode.PRECONDITION,
    "rollback release": ExitCode.PRECONDITION,
    "jobs run": ExitCode.PRECONDITION,
    "jobs list": ExitCode.OK,
    "lineage show": ExitCode.OK,
    "lineage declare": ExitCode.PRECONDITION,
    "lineage events": ExitCode.OK,
    "lineage stream": ExitCode.PRECONDITION,
    "lineage mark": ExitCode.PRECONDITION,
    "lineage marks": ExitCode.PRECONDITION,
    "metastore diff": ExitCode.PRECONDITION,
    "metastore sync": ExitCode.PRECONDITION,
}
"""Every command that names a table. OK: those that look at what is on record of it, and the one that takes it back."""
BY_PLACE = ("tables register", "tables convert", "tables adopt")
"""These take what nobody knows yet; a dropped table is met by them at its place."""
MORE = {
    "tables owner": ["bob"],
    "tables hold": ["--reason", "case 4711"],
    "pause": ["--reason", "month end"],
    "tables drop": ["--yes"],
    "tables rename": ["db.other"],
    "tables policy set": ["vacuum.retention=30 days"],
    "rollback plan": ["--to-version", "0"],
    "jobs run": ["log_care"],
    "lineage declare": ["--upstream", "db.kept", "--on-rollback", "plan"],
    "lineage mark": ["0", "--bad"],
}
NAMED_ELSEWHERE = [
    "lineage declare db.kept --upstream {} --on-rollback plan",
    "rollback plan db.kept --to-version 0 --agreed {}",
    "rollback plan db.kept --to-version 0 --remove-files {}",
    "rollback plan db.kept --to-version 0 --consent append_only={}",
    "rollback plan db.kept --to-version 0 --diff {}",
    "sql ROLLBACK TABLE {} TO VERSION 0",
    "sql UPDATE lakewarden.tables SET policy.vacuum.retention = '30 days' WHERE name = '{}'",
    "sql MARK TABLE {} VERSION 0 BAD",
]


def leaves(name: str, node: Any) -> Iterator[tuple[str, Any]]:
    children = getattr(node, "commands", {})
    if not children:
        yield name, node
    for child, inner in children.items():
        yield from leaves(name if child == name else f"{name} {child}", inner)


def naming_a_table() -> set[str]:
    """The commands with an argument that is a table."""
    found = set[str]()
    for name, where in COMMANDS.items():
        group = typer.main.get_command(load(f"lakewarden.daemon.cli.commands.{where.module}").app)
        alone = getattr(group, "commands", {}).get(name)
        for path, leaf in leaves(name, group if alone is None else alone):
            if any(one.param_type_name == "argument" and one.name == "where" for one in leaf.params):
                found.add(path)
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`db.kept`, and `db.gone`, which was dropped."""
    lake = tmp_path_factory.mktemp("lake")
    assert command(lake / "home", "init").returncode == 0
    for name in ("kept", "gone"):
        LogWriter(root=lake / name).create()
        registered = command(lake / "home", "tables", "register", str(lake / name), "--name", f"db.{name}")
        assert registered.returncode == 0, registered.stderr
    dropped = command(lake / "home", "tables", "drop", "db.gone", "--yes")
    assert dropped.returncode == 0, dropped.stderr
    return lake / "home"


@pytest.fixture
def call(home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return caller(home, monkeypatch, capfdbinary)


def test_every_command_that_names_a_table_is_listed_here() -> None:
    assert naming_a_table() == set(NAMING)


@pytest.mark.few(10)
@pytest.mark.parametrize("name", [name for name in NAMING if name != "tables undrop"])
def test_a_dropped_table_is_met_with_one_exit_code(name: str, home: Path, call: Cli) -> None:
    where = str(home.parent / "gone") if name in BY_PLACE else "db.gone"
    said = call(*name.split(), where, *MORE.get(name, ()))
    assert said.code == NAMING[name], said
    if said.code:
        assert "db.gone was dropped from management." in said.err
        assert "`lakewarden tables undrop db.gone` takes it back." in said.err


@pytest.mark.parametrize("words", NAMED_ELSEWHERE)
@pytest.mark.parametrize(
    ("table", "code"), [("db.gone", ExitCode.PRECONDITION), ("db.nowhere", ExitCode.FAILED)]
)
def test_so_it_is_where_an_option_or_a_statement_names_it(
    words: str, table: str, code: ExitCode, call: Cli
) -> None:
    first, *rest = words.format(table).split()
    said = call(first, *([" ".join(rest)] if first == "sql" else rest))
    assert said.code == code, said


@pytest.mark.parametrize("name", [name for name in NAMING if name not in BY_PLACE])
def test_a_table_that_nobody_knows_is_not_there(name: str, call: Cli) -> None:
    said = call(*name.split(), "db.nowhere", *MORE.get(name, ()))
    assert said.code == ExitCode.FAILED, said
    assert "db.nowhere is not a managed table." in said.err


def test_it_is_taken_back(call: Cli) -> None:
    assert call("tables", "undrop", "db.gone").code == ExitCode.OK
    assert call("tables", "undrop", "db.gone").code == ExitCode.OK
    assert call("tables", "drop", "db.gone", "--yes").code == ExitCode.OK
