"""What a person mistypes, or a script leaves empty, is refused in a sentence that says what is wrong with it."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from support.processes.commands import Cli


@pytest.fixture
def table(cli: Cli, tmp_path: Path) -> Path:
    folder = tmp_path / "lake" / "t"
    write_deltalake(str(folder), pa.table({"id": [1]}))
    assert cli("tables", "register", str(folder), "--name", "db.t").code == 0
    return folder


@pytest.mark.heavy
def test_an_empty_id_names_nothing_even_where_only_one_thing_is_there(cli: Cli, table: Path) -> None:
    write_deltalake(str(table), pa.table({"id": [2]}), mode="append")
    assert cli("rollback", "plan", "db.t", "--to-version", "0").code in (0, 4)
    (planned,) = cli("rollback", "list", "-o", "json").json
    commands = [("rollback", one) for one in ("apply", "show", "undo", "resume")]
    commands += [("jobs", one) for one in ("show", "logs", "wait", "cancel")]
    for group, command in commands:
        said = cli(group, command, "" if command != "show" else " ")
        what = "rollback" if group == "rollback" else "run"
        assert (said.code, said.err.splitlines()[0]) == (2, f"Error: The {what} is not named."), said
    assert cli("rollback", "list", "-o", "json").json == [planned]


@pytest.mark.heavy
@pytest.mark.parametrize("depth", [1_000, 20_000])
def test_a_statement_that_is_nested_too_deeply_makes_no_sense(depth: int, cli: Cli) -> None:
    for statement in (
        "SELECT {} FROM lakewarden.tables",
        "UPDATE lakewarden.tables SET owner = {} WHERE name = 'db.t'",
        "EXPLAIN GOVERNED UPDATE db.t SET id = {}",
    ):
        said = cli("sql", statement.format("(" * depth + "1" + ")" * depth))
        assert said.code == 2, said
        assert said.err.startswith("Error: The statement is nested too deeply to be read.\n")


def test_two_statements_are_told_to_be_two(cli: Cli) -> None:
    for text in (
        "SELECT * FROM lakewarden.tables; SELECT 1",
        "SELECT 1; SELECT * FROM lakewarden.tables;",
        "UPDATE lakewarden.tables SET owner = 'bo'; SELECT 1",
    ):
        said = cli("sql", text)
        assert (said.code, said.err.splitlines()[0]) == (
            2,
            "Error: These are 2 statements, and one is run at a time.",
        )
    assert cli("sql", "SELECT count(*) FROM lakewarden.tables;").code == 0


def test_a_storage_that_nobody_knows_does_not_merely_fail_to_answer(cli: Cli) -> None:
    said = cli("tables", "register", "ftp://x/y")
    assert said.code == 2, said
    assert said.err.startswith("Error: ftp:// is no storage that lakewarden knows: ftp://x/y.\nHint: ")
    assert "hdfs" in said.err and "s3" in said.err
    assert cli("system", "backup", "ftp://x/y").code == 2


@pytest.mark.heavy
def test_a_managed_table_keeps_its_name_and_owner_unless_they_are_changed_by_their_commands(
    cli: Cli, table: Path
) -> None:
    for other in (("--name", "db.other"), ("--owner", "somebody_else")):
        said = cli("tables", "register", str(table), *other)
        assert said.code == 5 and "is managed already, and its " in said.err, said
        assert "`tables rename`" in said.err
    again = cli("tables", "register", str(table), "--name", "DB.t")
    assert (again.code, again.err.splitlines()[0]) == (0, "Already managed: db.t (active).")


@pytest.mark.heavy
@pytest.mark.parametrize("where", ["lake/t", "lake/t/backup", "lake"])
def test_a_backup_has_no_place_at_in_or_around_a_managed_table(
    where: str, cli: Cli, table: Path, tmp_path: Path
) -> None:
    before = sorted(table.parent.rglob("*"))
    for more in ((), ("--dry-run",)):
        said = cli("system", "backup", str(tmp_path / where), *more)
        assert said.code == 5 and "the managed table db.t" in said.err, said
    assert sorted(table.parent.rglob("*")) == before
    assert cli("system", "backup", str(tmp_path / "backup")).code == 0
