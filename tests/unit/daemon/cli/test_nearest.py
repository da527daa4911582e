"""Misspelt tables, scopes and filters: what is near is named; what is allowed is still done, and exits with 0."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from support.processes.commands import Cli, caller

pytestmark = pytest.mark.heavy


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    call = caller(tmp_path / "home", monkeypatch, capfdbinary)
    assert call("init").code == 0
    for name in ("merge", "orders"):
        write_deltalake(str(tmp_path / name), pa.table({"id": [1]}))
        assert (
            call("tables", "register", str(tmp_path / name), "--name", f"sales.{name}", "--owner", "ana").code
            == 0
        )
    return call


@pytest.mark.parametrize("line", ["why sales.marge", "tables show sale.merge", "tables history sales.merges"])
def test_a_table_that_nobody_knows_is_told_with_the_nearest(line: str, cli: Cli) -> None:
    said = cli(*line.split())
    assert (said.code, said.err.splitlines()[-1]) == (1, "Hint: Did you mean sales.merge?")


def test_a_database_in_common_makes_no_table_alike(cli: Cli) -> None:
    hint = "Hint: `lakewarden tables list` shows those that are."
    assert cli("why", "sales.xyz").err.splitlines()[-1] == hint


@pytest.mark.parametrize(
    "line",
    [
        "pause salse.*",
        "resume salse.*",
        "tables policy set salse.* mode=manage",
        "tables hold salse.* --reason law",
    ],
)
def test_a_scope_without_tables_is_set_and_remarked_upon(line: str, cli: Cli) -> None:
    said = cli(*line.split(), "-o", "json")
    assert (said.code, said.json["name"]) == (0, "salse.*")
    assert "No table matches salse.* today; did you mean sales.*?" in said.err.splitlines()


def test_a_scope_with_tables_is_not_remarked_upon(cli: Cli) -> None:
    for scope in ("sales.*", "*"):
        assert "matches" not in cli("pause", scope).err


def test_a_scope_that_is_like_no_other_is_just_said_to_be_empty(cli: Cli) -> None:
    assert "No table matches new_project.* today.\n" in cli("pause", "new_project.*").err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("salse.*", "No table has a name like salse.*; did you mean sales.*?"),
        ("sales.merg", "No table has a name like sales.merg; did you mean sales.merge?"),
        ("--owner anna", "No table has the owner anna; did you mean ana?"),
        ("--format delat", "No table has the format delat; did you mean delta?"),
        ("--namespace sale", "No table is in sale; did you mean sales?"),
        ("--finding ower_set", "There is no check ower_set; did you mean owner_set?"),
        ("--owner bo", "No table has the owner bo."),
    ],
)
def test_a_filter_that_no_table_meets(line: str, said: str, cli: Cli) -> None:
    found = cli("tables", "list", *line.split(), "-o", "json")
    assert (found.code, found.json, found.err) == (0, [], f"{said}\n")


def test_filters_that_only_together_leave_nothing_are_no_misspelling(cli: Cli) -> None:
    found = cli(
        "tables", "list", "sales.*", "--state", "quarantined", "--finding", "head_files", "-o", "json"
    )
    assert (found.code, found.json, found.err) == (0, [], "")
