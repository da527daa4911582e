"""Doctor reads all seven system tables: the newest version and a row of each."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from support.processes.commands import Cli, caller


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def cli(home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    call = caller(home, monkeypatch, capfdbinary)
    assert call("init").code == 0
    write_deltalake(str(home.parent / "t"), pa.table({"id": [1]}))
    assert call("tables", "register", str(home.parent / "t"), "--name", "db.t").code == 0
    return call


def garbled_log(table: Path) -> None:
    for commit in (table / "_delta_log").glob("*.json"):
        commit.write_text("{")


def lost_log(table: Path) -> None:
    shutil.rmtree(table / "_delta_log")


def lost_files(table: Path) -> None:
    for file in table.rglob("bucket=*/*.parquet"):
        file.unlink()


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("table", "damage", "said"),
    [
        ("health", garbled_log, "The log of lakewarden.health cannot be read."),
        ("health", lost_files, "A file of a system table cannot be read."),
        ("audit", lost_log, "lakewarden.audit does not exist."),
        ("lineage", shutil.rmtree, "lakewarden.lineage does not exist."),
    ],
)
def test_a_damaged_system_table_is_found(
    table: str, damage: Callable[[Path], None], said: str, cli: Cli, home: Path
) -> None:
    damage(home / "system" / table)
    told = cli("doctor", "-o", "json")
    found = {row["check"]: row for row in told.json}
    assert told.code == 3
    assert found["system tables"]["verdict"] == "fail"
    assert found["system tables"]["message"] == f"lakewarden.{table} cannot be read: {said}"
    assert "system repair" in found["system tables"]["fix"]


@pytest.mark.heavy
def test_whole_ones_are_said_to_be_so(cli: Cli) -> None:
    found = {row["check"]: row for row in cli("doctor", "-o", "json").json}
    assert found["system tables"]["verdict"] == "ok"
    assert found["system tables"]["message"].startswith("All 7 can be read; lakewarden.tables is at version ")
    assert found["writers"]["message"].startswith("1 table is on file://")


def test_a_select_on_files_that_are_lost_is_told_in_a_sentence(cli: Cli, home: Path) -> None:
    lost_files(home / "system" / "health")
    said = cli("sql", "SELECT * FROM lakewarden.health")
    assert (said.code, said.err) == (
        1, "Error: A file of a system table cannot be read.\nHint: `lakewarden system verify` says which.\n",
    )  # fmt: skip
