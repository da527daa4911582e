"""The delta-rs system store from inside: what it relies on, what its commits say, what it does when things go wrong."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import (
    ConflictError,
    FencedError,
    NotFoundError,
    OutdatedError,
    PreconditionError,
    UnreadableError,
)
from lakewarden.catalog.model.rows import RunRow, TableRow
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system import handles, migrate, schema, snapshot
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.commits import Note, commit
from lakewarden.catalog.system.data_files import ColumnCache
from lakewarden.catalog.system.own_rows import system_rows, system_table_id
from lakewarden.catalog.system.port import (
    AUDIT,
    HEALTH,
    LINEAGE,
    RUNS,
    SYSTEM_TABLES,
    TABLES,
    Rows,
    SystemTable,
)
from lakewarden.catalog.system.store import DeltaSystemStore
from support.builders.system_samples import NOW, health_row, make_older, sample, table_row

NONE = StorageOptions()


@pytest.fixture
def store(tmp_path: Path) -> DeltaSystemStore:
    opened = reopened(tmp_path)
    opened.create(system_rows(opened, now=NOW, actor="tests"))
    return opened


def reopened(folder: Path) -> DeltaSystemStore:
    return DeltaSystemStore(canonical(str(folder)), NONE, actor="tests")


def last_commit(folder: Path, table: SystemTable[Any]) -> dict[str, Any]:
    return DeltaTable(str(folder / table.name)).history(1)[0]


# what we rely on


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_delta_rs_refuses_any_commit_on_a_stale_handle_when_told_not_to_retry(
    tmp_path: Path, mode: Any
) -> None:
    rows = pa.table({"id": [1]})
    write_deltalake(str(tmp_path), rows)
    stale = DeltaTable(str(tmp_path))
    write_deltalake(str(tmp_path), rows, mode="append")
    with pytest.raises(CommitFailedError):
        write_deltalake(stale, rows, mode=mode, commit_properties=CommitProperties(max_commit_retries=0))
    with pytest.raises(CommitFailedError):
        stale.create_write_transaction(
            [], "append", stale.schema(), commit_properties=CommitProperties(max_commit_retries=0)
        )
    assert DeltaTable(str(tmp_path)).version() == 1


# what commits say


def test_a_commit_says_who_why_and_for_which_run(store: DeltaSystemStore, tmp_path: Path) -> None:
    fence = store.raise_fence("incarnation-1", at_least=0)
    store.edit(TABLES, lambda _: [table_row(9)], because="registered", run_id="run-1", fence=fence)
    said = last_commit(tmp_path, TABLES)
    assert said["lakewarden.because"] == "registered" and said["lakewarden.run_id"] == "run-1"
    assert said["lakewarden.actor"] == "tests" and said["lakewarden.incarnation"] == "incarnation-1"


def test_every_table_learns_of_a_new_leader(store: DeltaSystemStore, tmp_path: Path) -> None:
    fence = store.raise_fence("incarnation-1", at_least=6)
    for table in SYSTEM_TABLES:
        assert (
            DeltaTable(str(tmp_path / table.name)).transaction_version("lakewarden.leader")
            == fence.token
            == 7
        )
        assert last_commit(tmp_path, table)["lakewarden.incarnation"] == "incarnation-1"


@pytest.mark.heavy
def test_the_log_is_kept_and_checkpoints_are_made(store: DeltaSystemStore, tmp_path: Path) -> None:
    for number in range(55):
        store.append(AUDIT, [sample(AUDIT, number)], because="call")
    log = tmp_path / "audit" / "_delta_log"
    assert len(list(log.glob("*.json"))) == 56 and list(log.glob("*.checkpoint.parquet"))
    configuration = DeltaTable(str(tmp_path / "audit")).metadata().configuration
    assert configuration["delta.enableExpiredLogCleanup"] == "false"
    assert configuration["delta.deletedFileRetentionDuration"] == "interval 90 days"


def test_row_0_knows_its_own_delta_id(store: DeltaSystemStore, tmp_path: Path) -> None:
    row = store.rows(TABLES).get(system_table_id(TABLES.name))
    assert row is not None and row.format_ids == (str(DeltaTable(str(tmp_path / "tables")).metadata().id),)


# versions of the schema


def make_newer(folder: Path, table: SystemTable[Any]) -> None:
    newer = {"lakewarden.schema_version": str(schema.SCHEMA_VERSION + 1)}
    DeltaTable(str(folder / table.name)).alter.set_table_properties(newer, raise_if_not_exists=False)


@pytest.mark.parametrize("table", SYSTEM_TABLES, ids=lambda table: table.name)
def test_an_older_daemon_steps_down_once_a_newer_one_has_upgraded(
    store: DeltaSystemStore, tmp_path: Path, table: SystemTable[Any]
) -> None:
    leader = store.raise_fence("old", at_least=0)
    make_newer(tmp_path, table)
    today = schema.SCHEMA_VERSION
    told = f"schema version {today + 1}, this lakewarden knows {today}"
    with pytest.raises(OutdatedError, match=told) as raised:
        store.edit(table, lambda _: [sample(table, 1)], fence=leader, because="unaware")
    assert isinstance(raised.value, FencedError) and "newer" in raised.value.hint
    with pytest.raises(OutdatedError):
        store.rows(table)
    with pytest.raises(OutdatedError):
        reopened(tmp_path).create(())


def test_an_older_daemon_frozen_while_the_newer_one_upgrades_commits_nothing(
    store: DeltaSystemStore, tmp_path: Path
) -> None:
    def freeze(_: Rows[TableRow]) -> list[TableRow]:
        make_newer(tmp_path, TABLES)
        return [table_row(9)]

    with pytest.raises(OutdatedError):
        store.edit(TABLES, freeze, because="frozen")
    assert last_commit(tmp_path, TABLES)["operation"] == "SET TBLPROPERTIES"


def test_an_older_table_is_read_as_it_is_and_written_after_the_upgrade(
    store: DeltaSystemStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_older(tmp_path, HEALTH, without={"tombstone_bytes", "findings"})
    rows = [health_row(1), health_row(3)]
    with monkeypatch.context() as patch:  # a daemon of that time
        patch.setattr("lakewarden.catalog.system.commits.SCHEMA_VERSION", 0)
        reopened(tmp_path).edit(HEALTH, lambda _: rows, because="back then")
    fresh = reopened(tmp_path)
    assert fresh.rows(HEALTH).arrow(["table_id"]).num_rows == 2
    with pytest.raises(PreconditionError, match="waits for the upgrade"):
        fresh.edit(HEALTH, lambda _: [health_row(2)], because="too early")
    fresh.create(())
    names = {field.name for field in DeltaTable(str(tmp_path / "health")).schema().fields}
    assert {"tombstone_bytes", "findings", "bucket"} <= names
    fresh.edit(HEALTH, lambda _: [health_row(2)], because="upgraded")
    assert fresh.rows(HEALTH).get("table-000002") == health_row(2)
    version = fresh.rows(HEALTH).version
    fresh.create(())
    assert fresh.rows(HEALTH).version == version


def test_an_upgrade_shuts_the_first_table_first_and_opens_it_last(
    store: DeltaSystemStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in SYSTEM_TABLES:
        make_older(tmp_path, table, without=set())
    upgraded: list[list[str]] = []

    def look(point: str) -> None:
        if point.startswith("system.create.") or point == "system.upgrade.begun":
            upgraded.append([table.name for table in SYSTEM_TABLES if version_of(tmp_path, table) != "0"])
            with pytest.raises(PreconditionError, match="waits for the upgrade|has begun and not ended"):
                reopened(tmp_path).edit(TABLES, lambda _: [table_row(9)], because="too early")
            with pytest.raises(PreconditionError):
                reopened(tmp_path).raise_fence("too early", at_least=0)

    monkeypatch.setattr(failpoints, "listener", look)
    reopened(tmp_path).create(())
    assert upgraded[0] == ["tables"] and len(upgraded[-1]) == len(SYSTEM_TABLES)
    monkeypatch.setattr(failpoints, "listener", None)
    reopened(tmp_path).edit(TABLES, lambda _: [table_row(9)], because="upgraded")
    assert [row.name for row in reopened(tmp_path).rows(TABLES).all()] == [table_row(9).name]


def test_an_upgrade_that_an_older_process_commits_into_goes_on(
    store: DeltaSystemStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_older(tmp_path, RUNS, without={"hint"}, version=5)
    written: list[RunRow] = []
    real = handles.open_at

    def opened(location: str, *how: Any, **named: Any) -> DeltaTable:
        handle = real(location, *how, **named)
        if location.endswith("/runs") and len(written) < 3:
            written.append(sample(RUNS, len(written)))
            with monkeypatch.context() as patch:  # a daemon of that time, after it was opened
                patch.setattr("lakewarden.catalog.system.commits.SCHEMA_VERSION", 5)
                reopened(tmp_path).append(RUNS, written[-1:], because="back then")
        return handle

    monkeypatch.setattr(f"{migrate.__name__}.open_at", opened)
    reopened(tmp_path).create(())
    assert version_of(tmp_path, RUNS) == str(schema.SCHEMA_VERSION)
    kept = reopened(tmp_path).rows(RUNS).all()
    assert len(written) == 3 and sorted(row.run_id for row in kept) == [row.run_id for row in written]


def version_of(folder: Path, table: SystemTable[Any]) -> str:
    return DeltaTable(str(folder / table.name)).metadata().configuration["lakewarden.schema_version"]


def test_lineage_of_before_incremental_edges_is_kept_by_the_upgrade(
    store: DeltaSystemStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_older(tmp_path, LINEAGE, without={"from_version", "output_format_id", "input_format_id"})
    old = [sample(LINEAGE, number) for number in range(3)]
    with monkeypatch.context() as patch:  # a daemon of that time
        patch.setattr("lakewarden.catalog.system.commits.SCHEMA_VERSION", 0)
        reopened(tmp_path).append(LINEAGE, old, because="back then")
    fresh = reopened(tmp_path)
    fresh.create(())
    new = replace(sample(LINEAGE, 4), from_version=2, output_format_id="u1", input_format_id="u2")
    fresh.append(LINEAGE, [new], because="upgraded")
    stored = codec(LINEAGE).decode(fresh.rows(LINEAGE).arrow())
    assert sorted(stored, key=lambda row: row.output_id) == [*old, new]


def test_tables_of_before_marks_have_none_and_take_them_after_the_upgrade(
    store: DeltaSystemStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_older(tmp_path, TABLES, without={"marks"})
    old = [replace(table_row(number), marks=()) for number in (7, 8)]
    with monkeypatch.context() as patch:  # a daemon of that time
        patch.setattr("lakewarden.catalog.system.commits.SCHEMA_VERSION", 0)
        reopened(tmp_path).edit(TABLES, lambda _: old, because="back then")
    fresh = reopened(tmp_path)
    fresh.create(())
    assert fresh.rows(TABLES).get(old[0].table_id) == old[0]
    assert table_row(8).marks
    fresh.edit(TABLES, lambda _: [table_row(8)], because="marked")
    assert [fresh.rows(TABLES).get(row.table_id) for row in old] == [old[0], table_row(8)]


def test_runs_of_schema_version_5_are_kept_by_the_upgrade_and_new_ones_have_a_hint(
    store: DeltaSystemStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_older(tmp_path, RUNS, without={"hint"}, version=5)
    old = [sample(RUNS, number) for number in range(3)]
    with monkeypatch.context() as patch:  # a daemon of that time
        patch.setattr("lakewarden.catalog.system.commits.SCHEMA_VERSION", 5)
        reopened(tmp_path).append(RUNS, old, because="back then")
    fresh = reopened(tmp_path)
    assert fresh.rows(RUNS).get(old[0].run_id) == old[0]
    fresh.create(())
    new = replace(sample(RUNS, 4), hint="Mend it.")
    fresh.append(RUNS, [new], because="upgraded")
    stored = codec(RUNS).decode(reopened(tmp_path).rows(RUNS).arrow())
    assert sorted(stored, key=lambda row: row.run_id) == [*old, new]


# when things go wrong


class LostAnswer:
    """A handle whose commit arrives and whose answer does not."""

    def __init__(self, handle: DeltaTable) -> None:
        self._handle = handle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)

    def create_write_transaction(self, *arguments: Any, **options: Any) -> None:
        self._handle.create_write_transaction(*arguments, **options)
        raise OSError("connection reset")


def test_a_commit_whose_answer_was_lost_is_recognised(store: DeltaSystemStore, tmp_path: Path) -> None:
    handle = DeltaTable(str(tmp_path / "runs"))
    before = snapshot.take_snapshot(handle, "runs")
    files = handles.Handles(canonical(str(tmp_path)), NONE).store(RUNS)
    note = Note(actor="tests", because="once")
    assert commit(LostAnswer(handle), before, files, "runs", [], note) == before.version + 1  # type: ignore[arg-type]  # acts like one
    with pytest.raises(ConflictError):
        commit(DeltaTable(str(tmp_path / "runs"), version=before.version), before, files, "runs", [], note)


def test_whoever_loses_leaves_no_file_behind(store: DeltaSystemStore, tmp_path: Path) -> None:
    rival = reopened(tmp_path)
    tries: list[int] = []

    def change(rows: Rows[TableRow]) -> list[TableRow]:
        tries.append(rows.version)
        if len(tries) < 4:
            rival.append(TABLES, [table_row(100 + len(tries))], because="faster")
        return [table_row(9)]

    store.edit(TABLES, change, because="slower")
    named = {
        path
        for version in range(store.rows(TABLES).version + 1)
        for path in _added(tmp_path, TABLES, version)
    }
    assert len(tries) == 4
    assert {
        str(path.relative_to(tmp_path / "tables")) for path in (tmp_path / "tables").glob("bucket=*/*")
    } == named


def _added(folder: Path, table: SystemTable[Any], version: int) -> list[str]:
    lines = (folder / table.name / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return [action["add"]["path"] for action in map(json.loads, lines) if "add" in action]


def test_a_store_removed_under_a_warm_handle_is_gone_not_written_to(
    store: DeltaSystemStore, tmp_path: Path
) -> None:
    store.edit(TABLES, lambda _: [table_row(9)], because="warm")
    for table in SYSTEM_TABLES:
        shutil.rmtree(tmp_path / table.name)
    with pytest.raises(NotFoundError, match="does not exist"):
        store.edit(TABLES, lambda _: [table_row(10)], because="unaware")
    assert not store.exists() and not list(tmp_path.glob("tables/_delta_log/*"))


def test_a_store_put_back_at_an_older_version_is_noticed(store: DeltaSystemStore, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "tables", tmp_path / "copy")
    store.edit(TABLES, lambda _: [table_row(9)], because="warm")
    shutil.rmtree(tmp_path / "tables")
    (tmp_path / "copy").rename(tmp_path / "tables")
    assert store.rows(TABLES).get("table-000009") is None
    store.edit(TABLES, lambda _: [table_row(10)], because="after the restore")
    assert store.rows(TABLES).get("table-000010") == table_row(10)


def test_a_folder_with_somebody_elses_table_is_not_ours(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "tables"), pa.table({"id": [1]}))
    with pytest.raises(UnreadableError, match="not one that lakewarden made"):
        reopened(tmp_path).rows(TABLES)


def test_broken_bytes_are_a_sentence(store: DeltaSystemStore, tmp_path: Path) -> None:
    store.edit(HEALTH, lambda _: [health_row(1)], because="seen")
    next((tmp_path / "health").glob("bucket=*/*")).write_bytes(b"PAR1")
    with pytest.raises(UnreadableError, match="cannot be read") as raised:
        reopened(tmp_path).rows(HEALTH).all()
    assert "verify" in raised.value.hint
    (tmp_path / "health" / "_delta_log" / f"{1:020d}.json").write_text("{")
    with pytest.raises(UnreadableError, match=r"log of lakewarden\.health"):
        reopened(tmp_path).rows(HEALTH)


def test_a_log_that_is_damaged_while_the_store_is_open_is_a_sentence_for_a_leader_too(
    store: DeltaSystemStore, tmp_path: Path
) -> None:
    store.rows(TABLES)
    (tmp_path / "tables" / "_delta_log" / f"{0:020d}.json").write_text("{")
    with pytest.raises(UnreadableError, match=r"log of lakewarden\.tables"):
        store.raise_fence("one", at_least=1)


def test_the_cache_keeps_to_its_limit() -> None:
    cache = ColumnCache(limit_bytes=4_000)
    column = pa.chunked_array([pa.array(range(50), pa.int64())])
    for number in range(5):
        cache.put(f"file-{number}", "a", column)
    assert cache.get("file-0", "a") is None and cache.get("file-4", "a") is column
    cache.put("large", "a", pa.chunked_array([pa.array(range(500), pa.int64())]))
    assert cache.get("large", "a") is None and cache.get("file-4", "a") is column


def test_the_cache_forgets_files_that_the_table_no_longer_names() -> None:
    cache = ColumnCache()
    column = pa.chunked_array([pa.array([1])])
    for file in ("one/old", "one/new", "other/old"):
        cache.put(file, "a", column)
    cache.retain("one/", {"one/new"})
    held = [file for file in ("one/old", "one/new", "other/old") if cache.get(file, "a") is not None]
    assert held == ["one/new", "other/old"]


def test_edits_leave_only_the_files_of_the_newest_version_in_memory(
    store: DeltaSystemStore, tmp_path: Path
) -> None:
    for number in range(6):
        store.edit(HEALTH, lambda _, n=number: [replace(health_row(1), rows=n)], because="seen")  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    assert [row.rows for row in store.rows(HEALTH).all()] == [5]
    for file in (tmp_path / "health").glob("bucket=*/*"):
        file.unlink()
    assert [row.rows for row in store.rows(HEALTH).all()] == [5], "what head names is held"
    with pytest.raises(UnreadableError):
        store.rows(HEALTH, version=store.rows(HEALTH).version - 1).all()
