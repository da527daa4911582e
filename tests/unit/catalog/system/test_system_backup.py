"""Backup, verify and repair of the system tables: what breaks is found, what can come back comes back."""

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakewarden.catalog.errors import ConsentError, RefusedError, UnreadableError
from lakewarden.catalog.formats.delta.log_names import commit_path
from lakewarden.catalog.model.rows import RowKind
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.commits import Note, commit
from lakewarden.catalog.system.handles import open_at, opened
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import HEALTH, RUNS, SYSTEM_TABLES, TABLES, SystemTable
from lakewarden.catalog.system.recovery.backup import (
    MANIFEST,
    Backup,
    open_backup,
    plan_backup,
    read_backup,
    run_backup,
)
from lakewarden.catalog.system.recovery.damage import Damage, Problem
from lakewarden.catalog.system.recovery.repair import repair
from lakewarden.catalog.system.recovery.repair_plan import (
    CutLog,
    DropFiles,
    RestoreFiles,
    RestoreTable,
    plan_repair,
)
from lakewarden.catalog.system.recovery.verify import data_files, verify
from lakewarden.catalog.system.snapshot import take_snapshot
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.jobs.runs.standings import StoredStandings
from support.builders.system_samples import NOW, health_row, sample, table_row
from support.fakes.clock import ManualClock

NONE = StorageOptions()
NOTE = Note(actor="tests", because="repair")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "system"


@pytest.fixture
def store(home: Path) -> DeltaSystemStore:
    opened = opened_at(home)
    opened.create(system_rows(opened, now=NOW, actor="tests"))
    opened.edit(TABLES, lambda _: [table_row(number) for number in range(7, 60)], because="register")
    opened.edit(HEALTH, lambda _: [health_row(number) for number in range(7, 60)], because="observed")
    for number in range(5):
        opened.append(RUNS, [sample(RUNS, number)], because="recorded")
    return opened


def opened_at(folder: Path) -> DeltaSystemStore:
    return DeltaSystemStore(canonical(str(folder)), NONE, actor="tests")


def backed_up(store: DeltaSystemStore, folder: Path) -> Backup:
    location = canonical(str(folder))
    return run_backup(store, plan_backup(store, location, NONE), NONE, clock=ManualClock())


def contents(store: DeltaSystemStore) -> dict[str, Iterable[object]]:
    return {table.name: store.rows(table).all() for table in SYSTEM_TABLES}


def mended(store: DeltaSystemStore, backup: Path | None, *, consent: bool = False) -> list[type]:
    """Verify, plan, repair; the kinds of the steps."""
    source = None if backup is None else open_backup(canonical(str(backup)), NONE)
    plan = plan_repair(verify(store, source), None if source is None else source.backup)
    repair(store, plan, source=source, consent=consent, now=NOW, note=NOTE)
    return [type(step) for step in plan.steps]


def newest_file(home: Path, table: SystemTable[Any]) -> Path:
    pieces = take_snapshot(DeltaTable(str(home / table.name)), table.name).pieces
    return home / table.name / max(pieces, key=lambda piece: piece.added_ms).path


# backup


@pytest.mark.heavy
def test_a_backup_is_a_store_that_reads_the_same(store: DeltaSystemStore, tmp_path: Path) -> None:
    plan = plan_backup(store, canonical(str(tmp_path / "copy")), NONE)
    assert plan.bytes > 0 and not plan.known and not (tmp_path / "copy").exists()
    backup = backed_up(store, tmp_path / "copy")
    copy = opened_at(tmp_path / "copy")
    assert contents(copy) == contents(store) and verify(copy) == ()
    assert copy.rows(TABLES, version=1).arrow().num_rows == 7
    assert {one.version for one in backup.tables if one.table is RUNS.name} == {5}
    assert read_backup(canonical(str(tmp_path / "copy")), NONE) == backup


@pytest.mark.heavy
def test_repeating_a_backup_copies_only_what_is_new(store: DeltaSystemStore, tmp_path: Path) -> None:
    backed_up(store, tmp_path / "copy")
    location = canonical(str(tmp_path / "copy"))
    assert plan_backup(store, location, NONE).files == ()
    store.append(RUNS, [sample(RUNS, 9)], because="recorded")
    plan = plan_backup(store, location, NONE)
    assert len(plan.files) == 2 and all(file.path.startswith("runs/") for file in plan.files)
    run_backup(store, plan, NONE, clock=ManualClock())
    assert contents(opened_at(tmp_path / "copy")) == contents(store)


@pytest.mark.heavy
def test_a_backup_does_not_go_where_something_else_lives(store: DeltaSystemStore, tmp_path: Path) -> None:
    other = opened_at(tmp_path / "other")
    other.create(system_rows(other, now=NOW, actor="tests"))
    with pytest.raises(RefusedError, match="not a backup"):
        backed_up(store, tmp_path / "other")
    backed_up(other, tmp_path / "copy")
    with pytest.raises(RefusedError, match="another or a newer"):
        backed_up(store, tmp_path / "copy")
    with pytest.raises(RefusedError, match="inside its own source"):
        backed_up(store, tmp_path / "system" / "copy")


@pytest.mark.heavy
def test_a_backup_that_was_killed_goes_on(
    store: DeltaSystemStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(Exception):
        pass

    reached = 0

    def die(point: str) -> None:
        nonlocal reached
        reached += 1
        if reached == 70:
            raise KilledError

    monkeypatch.setattr("lakewarden.catalog.system.recovery.backup.reach", die)
    with pytest.raises(KilledError):
        backed_up(store, tmp_path / "copy")
    assert read_backup(canonical(str(tmp_path / "copy")), NONE) is None
    store.append(RUNS, [sample(RUNS, 9)], because="life went on")
    backed_up(store, tmp_path / "copy")
    assert contents(opened_at(tmp_path / "copy")) == contents(store)


@pytest.mark.heavy
def test_a_source_that_lacks_a_live_file_gives_no_backup(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    newest_file(home, RUNS).unlink()
    with pytest.raises(UnreadableError, match="not complete"):
        backed_up(store, tmp_path / "copy")
    assert not (tmp_path / "copy" / MANIFEST).exists()


# verify and repair


@pytest.mark.heavy
def test_a_whole_store_has_no_problems(store: DeltaSystemStore) -> None:
    assert verify(store) == ()


def remove_data(home: Path) -> None:
    newest_file(home, TABLES).unlink()


def truncate_data(home: Path) -> None:
    path = newest_file(home, TABLES)
    path.write_bytes(path.read_bytes()[:500])


def exchange_data(home: Path) -> None:
    shutil.copy(newest_file(home, HEALTH), newest_file(home, TABLES))


def remove_commit(home: Path) -> None:
    (home / "tables" / "_delta_log" / f"{1:020d}.json").unlink()


def corrupt_commit(home: Path) -> None:
    (home / "tables" / "_delta_log" / f"{1:020d}.json").write_text('{"add": {"path')


def remove_table(home: Path) -> None:
    shutil.rmtree(home / "tables")


@pytest.mark.few(2)
@pytest.mark.heavy
@pytest.mark.parametrize(
    ("harm", "damage"),
    [
        pytest.param(remove_data, Damage.FILE_MISSING, id="data-file-gone"),
        pytest.param(truncate_data, Damage.FILE_UNREADABLE, id="data-file-truncated"),
        pytest.param(exchange_data, Damage.FILE_UNREADABLE, id="data-file-exchanged"),
        pytest.param(remove_commit, Damage.LOG_BROKEN, id="commit-gone"),
        pytest.param(corrupt_commit, Damage.LOG_BROKEN, id="commit-corrupt"),
        pytest.param(remove_table, Damage.TABLE_MISSING, id="table-gone"),
    ],
)
def test_what_a_backup_holds_comes_back_whole(
    store: DeltaSystemStore, home: Path, tmp_path: Path, harm: Callable[[Path], None], damage: Damage
) -> None:
    before = contents(store)
    backed_up(store, tmp_path / "copy")
    harm(home)
    damaged = opened_at(home)
    assert damage in {problem.damage for problem in verify(damaged)}
    mended(damaged, tmp_path / "copy", consent=damage is Damage.TABLE_MISSING)
    paused = [row for row in damaged.rows(TABLES).all() if row.kind is RowKind.SCOPE]
    assert [row.name for row in paused] == (["*"] if damage is Damage.TABLE_MISSING else [])
    damaged.edit(TABLES, lambda _: (), delete=lambda _: paused, because="somebody has looked")
    assert verify(damaged) == () and contents(damaged) == before
    damaged.edit(TABLES, lambda _: [table_row(99)], because="life goes on")


@pytest.mark.heavy
def test_a_file_no_backup_has_is_given_up_only_with_consent(store: DeltaSystemStore, home: Path) -> None:
    newest_file(home, RUNS).unlink()
    damaged = opened_at(home)
    with pytest.raises(ConsentError, match=r"1 rows of lakewarden\.runs"):
        mended(damaged, None)
    assert mended(damaged, None, consent=True) == [DropFiles]
    assert verify(damaged) == ()
    assert damaged.rows(RUNS).all() == tuple(sample(RUNS, number) for number in range(4))


@pytest.mark.heavy
def test_files_younger_than_the_backup_and_in_it_are_told_apart(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    newest_file(home, HEALTH)
    backed_up(store, tmp_path / "copy")
    lost = newest_file(home, RUNS)
    store.append(RUNS, [sample(RUNS, 9)], because="after the backup")
    newest_file(home, RUNS).unlink()
    lost.unlink()
    damaged = opened_at(home)
    assert mended(damaged, tmp_path / "copy", consent=True) == [RestoreFiles, DropFiles]
    assert damaged.rows(RUNS).all() == tuple(sample(RUNS, number) for number in range(5))


@pytest.mark.heavy
def test_a_log_whose_last_entry_is_half_written_is_cut_there(store: DeltaSystemStore, home: Path) -> None:
    version = store.rows(RUNS).version
    (home / "runs" / "_delta_log" / f"{version:020d}.json").write_bytes(b"")
    damaged = opened_at(home)
    assert mended(damaged, None, consent=True) == [CutLog]
    assert verify(damaged) == ()
    assert damaged.rows(RUNS).all() == tuple(sample(RUNS, number) for number in range(4))
    assert list((home / "runs").glob("_broken-*/*.json"))


@pytest.mark.heavy
def test_a_table_comes_back_from_the_backup_where_its_log_is_lost(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    backed_up(store, tmp_path / "copy")
    before = store.rows(RUNS).all()
    store.append(RUNS, [sample(RUNS, 9)], because="after the backup")
    shutil.rmtree(home / "runs" / "_delta_log")
    (home / "runs" / "_delta_log").mkdir()
    damaged = opened_at(home)
    with pytest.raises(ConsentError, match="after version 5"):
        mended(damaged, tmp_path / "copy")
    assert mended(damaged, tmp_path / "copy", consent=True) == [RestoreTable]
    assert damaged.rows(RUNS).all() == before and verify(damaged) == ()


@pytest.mark.heavy
def test_who_has_a_table_open_that_is_put_back_sees_what_was_put_back(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    """Numbers go on: what was put back, and the repair's own commits, have those of what is lost."""
    backed_up(store, tmp_path / "copy")
    for number in range(2):
        store.edit(TABLES, lambda _, one=number: [table_row(90 + one)], because="lost")  # type: ignore[misc]
    warm = opened_at(home)
    lost = warm.rows(TABLES)
    standings = StoredStandings(warm)
    assert lost.find(table_id=table_row(90).table_id) and standings.governed(table_row(90).table_id)
    shutil.rmtree(home / "tables" / "_delta_log")
    (home / "tables" / "_delta_log").mkdir()
    mended(opened_at(home), tmp_path / "copy", consent=True)
    fresh = opened_at(home).rows(TABLES)
    found = warm.rows(TABLES)
    assert found.all() == fresh.all() and found.version == fresh.version and found.at != lost.at
    assert standings.governed(table_row(90).table_id) is None
    warm.edit(TABLES, lambda _: [table_row(8)], because="goes on")
    ids = [row.table_id for row in opened_at(home).rows(TABLES).all()]
    assert len(ids) == len(set(ids)) and table_row(90).table_id not in ids


@pytest.mark.heavy
def test_a_log_that_was_only_cleaned_up_is_the_same_table(store: DeltaSystemStore, home: Path) -> None:
    """A handle that nobody used for days stands at a version whose entry is gone."""
    before = store.rows(RUNS).at
    other = opened_at(home)
    other.append(RUNS, [sample(RUNS, 9)], because="later")
    opened(other, RUNS)[0].create_checkpoint()
    (home / "runs" / commit_path(before[1])).unlink()
    assert store.rows(RUNS).at == (before[0], before[1] + 1)


@pytest.mark.heavy
def test_a_backup_that_rotted_is_not_trusted(store: DeltaSystemStore, home: Path, tmp_path: Path) -> None:
    backed_up(store, tmp_path / "copy")
    lost = newest_file(home, RUNS)
    lost.unlink()
    (tmp_path / "copy" / "runs" / lost.relative_to(home / "runs")).write_bytes(b"rot")
    with pytest.raises(UnreadableError, match="not what its manifest says"):
        mended(opened_at(home), tmp_path / "copy")


def smuggle(store: DeltaSystemStore, table: SystemTable[Any], rows: pa.Table, bucket: int) -> None:
    """Commit rows past all rules, as a broken or foreign writer would."""
    handle = open_at(store.location(table), NONE, name=table.name)
    files = data_files(store, table)
    snapshot = take_snapshot(handle, table.name)
    commit(handle, snapshot, files.store, table.name, [files.write(rows, bucket)], NOTE)


@pytest.mark.heavy
def test_of_rows_with_one_key_the_newest_stays(store: DeltaSystemStore) -> None:
    row = store.rows(TABLES).find(row=20)[0]
    newer = replace(row, owner="newer")
    home_bucket = next(p.bucket for p in _pieces(store, TABLES) if row in _rows_of(store, TABLES, p.bucket))
    smuggle(store, TABLES, codec(TABLES).encode([newer]), home_bucket)
    assert [problem.damage for problem in verify(store)] == [Damage.ROW_DUPLICATE]
    mended(store, None)
    assert store.rows(TABLES).find(row=20) == (newer,) and verify(store) == ()
    assert store.rows(TABLES).arrow().num_rows == 60


@pytest.mark.heavy
def test_a_row_in_the_wrong_bucket_goes_where_its_key_says(store: DeltaSystemStore) -> None:
    rows = [table_row(number) for number in range(100, 104)]
    smuggle(store, TABLES, codec(TABLES).encode(rows), 0)
    assert store.rows(TABLES).get("table-000101") is None
    assert Damage.ROW_MISPLACED in {problem.damage for problem in verify(store)}
    mended(store, None)
    assert [store.rows(TABLES).get(row.table_id) for row in rows] == rows and verify(store) == ()


@pytest.mark.heavy
def test_a_row_nobody_can_read_is_named_and_taken_out(store: DeltaSystemStore) -> None:
    row = codec(RUNS).encode([sample(RUNS, 50)])
    odd = row.set_column(row.schema.get_field_index("outcome"), "outcome", pa.array(["exploded"]))
    smuggle(store, RUNS, odd, next(p.bucket for p in _pieces(store, RUNS)))
    with pytest.raises(UnreadableError, match="exploded"):
        store.rows(RUNS).all()
    with pytest.raises(ConsentError, match="1 unreadable rows"):
        mended(store, None)
    mended(store, None, consent=True)
    assert len(store.rows(RUNS).all()) == 5 and verify(store) == ()


@pytest.mark.heavy
def test_rows_of_the_system_tables_come_back(store: DeltaSystemStore) -> None:
    store.edit(TABLES, lambda _: (), delete=lambda rows: rows.find(row=3), because="by accident")
    assert [problem.damage for problem in verify(store)] == [Damage.SELF_MISSING]
    mended(store, None)
    assert store.rows(TABLES).find(row=3)[0].name == "lakewarden.schemas"


@pytest.mark.heavy
def test_properties_that_time_travel_needs_are_set_again(store: DeltaSystemStore, home: Path) -> None:
    DeltaTable(str(home / "audit")).alter.set_table_properties({"delta.enableExpiredLogCleanup": "true"})
    assert [problem.damage for problem in verify(store)] == [Damage.PROPERTIES]
    mended(store, None)
    configuration = DeltaTable(str(home / "audit")).metadata().configuration
    assert verify(store) == () and json.loads(configuration["delta.enableExpiredLogCleanup"]) is False


@pytest.mark.heavy
def test_a_broken_table_without_a_backup_is_beyond_repair_and_said_so(
    store: DeltaSystemStore, home: Path
) -> None:
    (home / "runs" / "_delta_log" / f"{0:020d}.json").write_text("nonsense")
    plan = plan_repair(verify(opened_at(home)), None)
    assert plan.steps == () and [(one.table, one.damage) for one in plan.beyond] == [
        (RUNS, Damage.LOG_BROKEN)
    ]


def test_a_plan_is_pure_and_empty_for_no_problems() -> None:
    assert plan_repair((), None).steps == ()
    problem = Problem(table=RUNS, damage=Damage.FILE_MISSING, message="gone", path="bucket=0/a.parquet")
    assert plan_repair([problem], None).losses == (
        "an unknown number of rows of lakewarden.runs that no backup has.",
    )


def _pieces(store: DeltaSystemStore, table: SystemTable[Any]) -> Any:
    return take_snapshot(open_at(store.location(table), NONE, name=table.name), table.name).pieces


def _rows_of(store: DeltaSystemStore, table: SystemTable[Any], bucket: int) -> list[Any]:
    files = data_files(store, table)
    return codec(table).decode(files.read_all([p for p in _pieces(store, table) if p.bucket == bucket]))
