"""`--dry-run` changes nothing, of any command that has it:
not a byte of a table, of the system tables, of the database."""

import hashlib
import sqlite3
from collections.abc import Mapping
from contextlib import closing, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.registry import encode
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.executors.convert_types import refuse_partition_types
from lakewarden.jobs.planning.run_history import remember
from support.builders.worlds import run
from support.processes.commands import Cli
from support.processes.sparkless import sparkless


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """A home with a managed table `db.t`, on workers that need no Spark."""
    call = sparkless(tmp_path / "home", monkeypatch, capfdbinary)
    for number in range(6):
        write_deltalake(tmp_path / "lake" / "t", pa.table({"id": pa.array([number])}), mode="append")
    (tmp_path / "found").mkdir()
    write_deltalake(tmp_path / "found" / "x", pa.table({"id": [1]}))
    pq.write_table(pa.table({"id": [1]}), _made(tmp_path / "raw" / "p=1") / "a.parquet")
    assert call("init").code == 0
    (tmp_path / "home" / "lakewarden.toml").write_text(f'[discovery]\nroots = ["{tmp_path / "found"}"]\n')
    assert call("tables", "register", str(tmp_path / "lake" / "t"), "--name", "db.t").code == 0
    assert call("tables", "policy", "set", "db.t", "mode=manage", "vacuum.retention=40 days").code == 0
    return call


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def digest(folder: Path) -> Mapping[str, str]:
    """Every file of the tables and of the system tables by content, and every row of the database."""
    files = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for root in ("lake", "found", "raw", "home/system")
        for path in sorted((folder / root).rglob("*"))
        if path.is_file()
    }
    with closing(sqlite3.connect(folder / "home" / "state.db")) as database:
        rows = "\n".join(database.iterdump())
    return {**files, "database": rows}


SAID = [
    pytest.param(("jobs", "run", "db.t", "properties"), 0, "interval 40 days", id="properties"),
    pytest.param(("jobs", "run", "db.t", "log_care"), 0, "checkpoint", id="log care"),
    pytest.param(("jobs", "run", "db.t", "statistics"), 0, "would describe the table", id="statistics"),
    pytest.param(("jobs", "run", "db.t", "sync"), 4, "No metastore is configured",
        id="sync without metastore"),
    pytest.param(("jobs", "run", "db.t", "purge"), 2, "not ordered here", id="purge"),
    pytest.param(("jobs", "run", "db.t", "convert"), 2, "not ordered here", id="convert of a table"),
    pytest.param(("tables", "adopt"), 0, "found/x", id="adopt"),
    pytest.param(("tables", "drop", "db.t"), 0, "Nothing was changed", id="drop"),
    pytest.param(("tables", "drop", "db.t", "--purge"), 0, "Nothing was changed", id="purge of a table"),
    pytest.param(("metastore", "sync"), 4, "No metastore is configured", id="metastore sync"),
    pytest.param(("system", "backup", "BACKUP"), 0, "", id="backup"),
    pytest.param(("system", "repair"), 0, "", id="repair"),
    pytest.param(("tables", "convert", "RAW", "--partitioned-by", "p INT"), 0, "Every check", id="convert"),
    pytest.param(("tables", "convert", "RAW", "--partitioned-by", "p NOSUCHTYPE"), 5,
        "NOSUCHTYPE is not a type", id="bad type"),
]  # fmt: skip


@pytest.mark.few(7)
@pytest.mark.parametrize(("arguments", "code", "words"), SAID)
def test_a_dry_run_changes_nothing(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    places = {"BACKUP": str(tmp_path / "backup"), "RAW": str(tmp_path / "raw")}
    before = digest(tmp_path)
    said = cli(*(places.get(one, one) for one in arguments), "--dry-run")
    assert (said.code, words in said.out + said.err) == (code, True), said
    assert digest(tmp_path) == before
    assert not (tmp_path / "backup").exists() or not any((tmp_path / "backup").iterdir())


@pytest.mark.parametrize("action", ["vacuum", "compact"])
def test_a_dry_run_that_is_a_run_changes_nothing_of_the_table(cli: Cli, tmp_path: Path, action: str) -> None:
    before = {key: value for key, value in digest(tmp_path).items() if key.startswith("lake/")}
    said = cli("jobs", "run", "db.t", action, "--dry-run", "-o", "json")
    assert said.code == 0, said
    assert {key: value for key, value in digest(tmp_path).items() if key.startswith("lake/")} == before


@pytest.mark.parametrize(
    "action",
    [
        Vacuum(requires=Head(9), retention_seconds=1, full=True, dry_run=True),
        Compact(requires=Head(9), target_bytes=1, min_small_files=2, quiet_seconds=0, dry_run=True),
    ],
    ids=["vacuum", "compact"],
)
def test_a_dry_run_on_record_delays_no_run_that_is_due(action: Vacuum | Compact) -> None:
    done = run(Action(action.kind), Outcome.SUCCEEDED, ago=timedelta(0), payload=encode(action))
    assert remember(None, done) is None


def test_a_foreseen_change_of_properties_is_what_the_run_then_does(cli: Cli, tmp_path: Path) -> None:
    foreseen = {
        one["change"] for one in cli("jobs", "run", "db.t", "properties", "--dry-run", "-o", "json").json
    }
    assert cli("jobs", "run", "db.t", "properties").code == 0
    table = DeltaTable(tmp_path / "lake" / "t")
    assert foreseen == set(table.metadata().configuration)
    again = cli("jobs", "run", "db.t", "properties", "--dry-run", "-o", "json").json
    assert [one["message"] for one in again] == ["there is nothing to do"]


def test_a_foreseen_checkpoint_is_not_foreseen_twice(cli: Cli, tmp_path: Path) -> None:
    assert cli("jobs", "run", "db.t", "log_care").code == 0
    (again,) = cli("jobs", "run", "db.t", "log_care", "--dry-run", "-o", "json").json
    assert again["message"] == "there is nothing to do"


def _written(folder: Path, table: pa.Table) -> str:
    pq.write_table(table, _made(folder) / "a.parquet")
    return str(folder)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        pytest.param({"t": pa.array([NOON.time()], pa.time64("us"))}, "a time of day", id="time"),
        pytest.param({"t": pa.array([1], pa.timestamp("ns"))}, "nanoseconds", id="nanoseconds"),
        pytest.param({"a b": [1]}, "does not allow the column name", id="a space"),
        pytest.param({"s": [{"x=y": 1}]}, "does not allow the column name", id="inside a struct"),
        pytest.param({"a": [1], "A": [2]}, "the same name but for the case", id="case"),
    ],
)
def test_columns_that_delta_cannot_take_are_found_without_spark(
    cli: Cli, tmp_path: Path, table: dict[str, object], words: str
) -> None:
    place = _written(tmp_path / "odd", pa.table(table))
    before = digest(tmp_path)
    said = cli("tables", "convert", place, "--dry-run")
    assert said.code == 5 and words in said.err, said
    assert digest(tmp_path) == before


def test_a_folder_without_files_and_one_with_garbage_are_refused_before_the_run(
    cli: Cli, tmp_path: Path
) -> None:
    assert (
        "holds no Parquet file" in cli("tables", "convert", str(_made(tmp_path / "empty")), "--dry-run").err
    )
    (_made(tmp_path / "bad") / "a.parquet").write_bytes(b"no Parquet at all")
    assert "a file is not Parquet" in cli("tables", "convert", str(tmp_path / "bad"), "--dry-run").err


@pytest.mark.parametrize(
    ("type_", "fits"),
    [
        ("INT", True), ("decimal(10, 2)", True), ("varchar(20)", True), ("string", True),
        ("NOSUCHTYPE", False), ("INT)", False), ("decimal(99,2)", False), ("decimal(5,9)", False),
        ("array<int>", False),
        ("char(0)", False), ("INT COMMENT 'x'", False),
    ],
)  # fmt: skip
def test_partition_types_are_parsed(type_: str, fits: bool) -> None:
    refused = (
        nullcontext()
        if fits
        else pytest.raises(RefusedError, match="is not a type for the partition column p")
    )
    with refused:
        refuse_partition_types([("p", type_)], [])


@pytest.mark.parametrize("type_", ["timestamp", "TIMESTAMP_NTZ", "Timestamp_LTZ"])
def test_moments_are_refused_as_partitions_before_the_run(cli: Cli, tmp_path: Path, type_: str) -> None:
    pq.write_table(pa.table({"id": [1]}), _made(tmp_path / "raw" / "p=2026-01-02 03%3A04%3A05") / "a.parquet")
    said = cli("tables", "convert", str(tmp_path / "raw"), "--partitioned-by", f"p {type_}", "--dry-run")
    assert said.code == 5 and f"a partition column of type {type_.upper()}" in said.err


def test_a_folder_whose_value_is_none_of_its_type_is_refused(cli: Cli, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), _made(tmp_path / "raw" / "p=abc") / "a.parquet")
    said = cli("tables", "convert", str(tmp_path / "raw"), "--partitioned-by", "p INT", "--dry-run")
    assert said.code == 5 and "The folder p=abc does not fit the type INT of p." in said.err


@pytest.mark.parametrize(
    ("type_", "value", "fits"),
    [
        ("date", "2026-01-31", True), ("DATE", "0", False), ("date", "31.1.2026", False), ("INT", "-7", True),
        ("TINYINT", "128", False), ("bigint", "9" * 30, False), ("boolean", "true", True),
        ("boolean", "maybe", False),
        ("decimal(3, 0)", "1", True), ("decimal(3,0)", "one", False), ("STRING", "a%2Fb", True),
        ("decimal(10,2)", "1.50", True), ("decimal(10,2)", "-0.01", True), ("decimal(10,2)", "1.5", False),
        ("decimal(10,2)", "1", False), ("decimal(10,2)", "1e2", False), ("decimal(4,2)", "123.00", False),
        ("numeric", "7", True), ("DEC", "7.0", False),
        ("varchar(3)", "abc", True), ("varchar(3)", "abcd", False), ("char(3)", "ab", True),
        ("INT", "__HIVE_DEFAULT_PARTITION__", True), ("INT", "²", False),
    ],
)  # fmt: skip
def test_values_of_folders_fit_their_type(type_: str, value: str, fits: bool) -> None:
    refused = nullcontext() if fits else pytest.raises(RefusedError, match="does not fit the type")
    with refused:
        refuse_partition_types([("p", type_)], [f"p={value}"])
