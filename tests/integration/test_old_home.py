"""A home that the real code of an earlier commit made and used: today's opens it, upgrades it, and loses nothing."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.system.port import SYSTEM_TABLES, SystemTable
from lakewarden.catalog.system.schema import SCHEMA_VERSION, VERSION_PROPERTY
from support.cases import mostly_long
from support.processes.old_tree import TODAY, tree_of

SIX = "ea0a08221c11e02665f8e5e775d190e188075f3e"
"""The last commit with schema version 6 of the system tables: versions had no parents on record, heads no state."""
NINE = "1e8cb51fcad9cd73e395f41f3bdec95e01d3ceb9"
"""The last commit with schema version 9: health told neither deletes by kind nor a backlog."""
ONCE = ("daemon", "--once", "--set", "http.port=0")
Rows = Mapping[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Old:
    """What the old code left: `folder` holds home and table, `tables` is what it listed, `kept` its stored rows."""

    folder: Path
    schema_version: str
    tables: list[dict[str, Any]]
    kept: Mapping[str, Rows]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def table(self) -> Path:
        return self.folder / "lake" / "t"


@pytest.fixture(scope="module", params=mostly_long([SIX, NINE], [SIX]))
def made(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Old:
    """A table registered, governed, looked at by a daemon, and worked on by a worker, all of that time."""
    tree = tree_of(request.param, tmp_path_factory.mktemp("tree"))
    folder = tmp_path_factory.mktemp("old")
    home, table = folder / "home", folder / "lake" / "t"
    for number in range(3):
        append(table, number)
    tree.must(home, "init")
    tree.must(home, "tables", "register", str(table), "--name", "db.t")
    tree.must(home, "tables", "policy", "set", "db.t", "mode=manage", "vacuum.retention=30d")
    tree.must(home, *ONCE)
    tree.must(home, "jobs", "run", "db.t", "log_care")
    tree.must(home, *ONCE)
    append(table, 3)
    tree.must(home, "jobs", "run", "db.t", "log_care")  # finished; no daemon has put it on record
    return Old(
        folder=folder,
        schema_version={SIX: "6", NINE: "9"}[request.param],
        tables=tree.json(home, "tables", "list"),
        kept=stored(home),
    )


@pytest.fixture
def old(made: Old) -> Old:
    """The home where it was made, as it was left."""
    aside = made.folder.with_name(f"{made.folder.name}-left")
    if aside.exists():
        shutil.rmtree(made.folder)
        shutil.copytree(aside, made.folder)
    else:
        shutil.copytree(made.folder, aside)
    return made


def append(table: Path, number: int) -> None:
    write_deltalake(str(table), pa.table({"id": pa.array([number], pa.int64())}), mode="append")


def stored(home: Path) -> Mapping[str, Rows]:
    """Every stored row of every system table by its key, as Delta has it."""
    return {table.name: rows_of(home, table) for table in SYSTEM_TABLES}


def rows_of(home: Path, table: SystemTable[Any]) -> Rows:
    rows = DeltaTable(str(home / "system" / table.name)).to_pyarrow_table().to_pylist()
    return {tuple(row[name] for name in table.key): row for row in rows}


def schema_versions(home: Path) -> set[str]:
    tables = (DeltaTable(str(home / "system" / table.name)) for table in SYSTEM_TABLES)
    return {table.metadata().configuration[VERSION_PROPERTY] for table in tables}


def test_it_is_read_before_the_upgrade_and_changes_wait_for_it(old: Old) -> None:
    assert schema_versions(old.home) == {old.schema_version}
    listed = {row["table_id"]: row for row in TODAY.json(old.home, "tables", "list")}
    for row in old.tables:
        assert {key: listed[row["table_id"]][key] for key in ("name", "location", "owner", "state")} == {
            key: row[key] for key in ("name", "location", "owner", "state")
        }
    said = TODAY.says(old.home, "tables", "policy", "set", "db.t", "compaction.enabled=no")
    assert said.returncode == 4
    assert f"waits for the upgrade to {SCHEMA_VERSION}" in said.stderr
    assert stored(old.home) == old.kept


def test_the_upgrade_keeps_every_row_and_every_policy(old: Old) -> None:
    TODAY.must(old.home, "init")
    assert schema_versions(old.home) == {str(SCHEMA_VERSION)}
    now = stored(old.home)
    for name, rows in old.kept.items():
        assert rows.keys() <= now[name].keys(), name
        for key, row in rows.items():
            assert as_then(now[name][key], row) == row, (name, key)
    assert old.kept["runs"] and old.kept["lineage"] and old.kept["health"] and old.kept["audit"]
    listed = {row["table_id"]: row for row in TODAY.json(old.home, "tables", "list")}
    for row in old.tables:
        policy = listed[row["table_id"]]["policy"]
        assert {key: policy[key] for key in row["policy"]} == row["policy"]


def as_then(now: Any, then: Any) -> Any:
    """What there is now of what there was then; columns and fields of structs that came since are empty."""
    if not (isinstance(now, dict) and isinstance(then, dict)):
        return now
    assert all(now[name] in (None, "", [], {}) for name in now.keys() - then.keys())
    return {name: as_then(now[name], value) for name, value in then.items()}


def test_its_history_goes_on_where_it_ended(old: Old) -> None:
    TODAY.must(old.home, "init")
    append(old.table, 4)
    TODAY.must(old.home, *ONCE)
    now = stored(old.home)
    fresh = [row for key, row in now["runs"].items() if key not in old.kept["runs"]]
    assert [(run["action"], run["outcome"]) for run in fresh] == [("log_care", "succeeded")]
    (table,) = (row for row in old.tables if row["name"] == "db.t")
    written = [row for row in now["lineage"].values() if row["output_id"] == table["table_id"]]
    assert sorted((row["output_version"], row["output_parent"]) for row in written)[-2:] == [(3, 2), (4, 3)]
    planned = TODAY.says(old.home, "rollback", "plan", "db.t", "--to-version", "1", "-o", "json")
    assert planned.returncode in (0, 2), planned.stderr
    assert '"tainted"' in planned.stdout
