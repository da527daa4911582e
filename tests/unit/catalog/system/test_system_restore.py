"""Backups that are whole, and what may not come back with one: deletions, locks and leaders of the day it was made."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import FencedError, UnreadableError
from lakewarden.catalog.model.pending_purge import PURGE_AFTER, PURGE_HEAD, PURGE_UNKNOWN, PURGE_VERSION
from lakewarden.catalog.model.rows import RollbackState, RowKind, TableRow, TableState
from lakewarden.catalog.model.unread_lineage import LINEAGE_UNREAD
from lakewarden.catalog.policy.original_properties import OriginalProperty, is_leaving, kept_of, leaving
from lakewarden.catalog.storage.file_store import StorageOptions, canonical, open_store
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import ROLLBACKS, RUNS, SYSTEM_TABLES, TABLES
from lakewarden.catalog.system.recovery.backup import Backup, open_backup, plan_backup, run_backup
from lakewarden.catalog.system.recovery.damage import Damage
from lakewarden.catalog.system.recovery.repair import repair
from lakewarden.catalog.system.recovery.repair_plan import (
    CreateAgain,
    CutHistory,
    CutLog,
    DropFiles,
    RestoreFiles,
    RestoreTable,
    SetAside,
    plan_repair,
)
from lakewarden.catalog.system.recovery.set_aside import move_aside
from lakewarden.catalog.system.recovery.verify import other_histories, verify
from lakewarden.catalog.system.store import DeltaSystemStore
from support.builders.system_samples import NOW, sample, table_row
from support.fakes.clock import ManualClock

pytestmark = pytest.mark.heavy

NONE = StorageOptions()
NOTE = Note(actor="tests", because="repair")
Harm = Callable[[Path], None]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "system"


@pytest.fixture
def store(home: Path) -> DeltaSystemStore:
    opened = opened_at(home)
    opened.create(system_rows(opened, now=NOW, actor="tests"))
    for number in range(10, 16):
        opened.edit(TABLES, lambda _, one=number: [table_row(one)], because="register")  # type: ignore[misc]  # bound now
    return opened


def opened_at(folder: Path) -> DeltaSystemStore:
    return DeltaSystemStore(canonical(str(folder)), NONE, actor="tests")


def backed_up(store: DeltaSystemStore, folder: Path) -> Backup:
    location = canonical(str(folder))
    return run_backup(store, plan_backup(store, location, NONE), NONE, clock=ManualClock())


def mended(home: Path, backup: Path | None, *, consent: bool = True) -> list[type]:
    store = opened_at(home)
    source = None if backup is None else open_backup(canonical(str(backup)), NONE)
    problems = verify(store, source)
    diverged = () if source is None else other_histories(store, problems, source)
    plan = plan_repair(problems, None if source is None else source.backup, diverged=diverged)
    repair(store, plan, source=source, consent=consent, now=NOW, note=NOTE)
    assert verify(opened_at(home), source) == ()
    return [type(step) for step in plan.steps]


def commit(home: Path, version: int, table: str = "tables") -> Path:
    return home / table / "_delta_log" / f"{version:020d}.json"


def files_of(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def owners(store: DeltaSystemStore) -> list[str | None]:
    return [row.owner for row in store.rows(TABLES).all() if row.owner is not None]


# backups


def test_a_log_entry_of_the_same_size_but_of_another_history_is_copied_anew(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    shutil.copytree(home, tmp_path / "before")
    store.edit(TABLES, lambda _: [table_row(30, owner="bea")], because="policy")
    backed_up(store, tmp_path / "copy")
    size = commit(home, store.rows(TABLES).version).stat().st_size
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "before", home)
    again = opened_at(home)
    again.edit(TABLES, lambda _: [table_row(30, owner="cat")], because="policy")
    assert commit(home, again.rows(TABLES).version).stat().st_size == size, "the trap is set"
    backed_up(again, tmp_path / "copy")
    copy = opened_at(tmp_path / "copy")
    assert copy.rows(TABLES).all() == again.rows(TABLES).all()
    assert owners(copy)[-1] == "cat"


def test_a_file_that_the_destination_lost_is_copied_again(store: DeltaSystemStore, tmp_path: Path) -> None:
    backed_up(store, tmp_path / "copy")
    lost = next((tmp_path / "copy" / "tables").glob("bucket=*/*.parquet"))
    lost.unlink()
    damaged = commit(tmp_path / "copy", 3)
    damaged.write_bytes(damaged.read_bytes().replace(b"register", b"registar"))
    plan = plan_backup(store, canonical(str(tmp_path / "copy")), NONE)
    assert len(plan.files) == 2
    run_backup(store, plan, NONE, clock=ManualClock())
    assert opened_at(tmp_path / "copy").rows(TABLES).all() == store.rows(TABLES).all()


def test_a_manifest_that_was_tampered_with_is_no_manifest(store: DeltaSystemStore, tmp_path: Path) -> None:
    backed_up(store, tmp_path / "copy")
    manifest = tmp_path / "copy" / "lakewarden-backup.json"
    manifest.write_text(manifest.read_text().replace('"version": 7', '"version": 3'))
    with pytest.raises(UnreadableError, match="manifest"):
        open_backup(canonical(str(tmp_path / "copy")), NONE)


def test_a_backup_with_one_rotten_file_changes_nothing(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    backed_up(store, tmp_path / "copy")
    shutil.rmtree(home / "tables" / "_delta_log")
    max((tmp_path / "copy" / "tables").glob("bucket=*/*.parquet")).write_bytes(b"rot")
    before = files_of(home)
    with pytest.raises(UnreadableError, match="not what its manifest says"):
        mended(home, tmp_path / "copy")
    assert files_of(home) == before


# damage


def flipped(home: Path) -> None:
    """A byte within a file's name: the line is JSON all the same."""
    path = commit(home, 4)
    content = path.read_bytes()
    place = content.index(b'"path":"bucket=') + 40
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])


def renamed_action(home: Path) -> None:
    path = commit(home, 4)
    path.write_bytes(path.read_bytes().replace(b'{"add":', b'{"adf":'))


def flipped_data(home: Path) -> None:
    path = next((home / "tables").glob("bucket=*/*.parquet"))
    content = path.read_bytes()
    path.write_bytes(content[:8] + bytes([content[8] ^ 1]) + content[9:])


@pytest.mark.parametrize("harm", [flipped, renamed_action, flipped_data], ids=lambda one: one.__name__)
def test_a_flipped_byte_is_found_and_put_right_from_the_backup(
    store: DeltaSystemStore, home: Path, tmp_path: Path, harm: Harm
) -> None:
    before = store.rows(TABLES).all()
    backed_up(store, tmp_path / "copy")
    harm(home)
    assert mended(home, tmp_path / "copy", consent=False) == [RestoreFiles]
    assert opened_at(home).rows(TABLES).all() == before
    assert len(list((home / "tables").glob("_broken-*/*"))) == 1, "what lay there is kept"


def test_an_action_nobody_knows_is_damage_without_any_backup(store: DeltaSystemStore, home: Path) -> None:
    renamed_action(home)
    assert [one.damage for one in verify(opened_at(home))] == [Damage.LOG_BROKEN]


def checkpointed(store: DeltaSystemStore, home: Path) -> Path:
    DeltaTable(str(home / "tables")).create_checkpoint()
    version = store.rows(TABLES).version
    store.edit(TABLES, lambda _: [table_row(20)], because="register")
    return home / "tables" / "_delta_log" / f"{version:020d}.checkpoint.parquet"


def test_a_truncated_checkpoint_is_only_set_aside(store: DeltaSystemStore, home: Path) -> None:
    checkpoint = checkpointed(store, home)
    before = store.rows(TABLES).all()
    checkpoint.write_bytes(checkpoint.read_bytes()[:300])
    assert [one.damage for one in verify(opened_at(home))] == [Damage.CHECKPOINT_BROKEN]
    assert mended(home, None, consent=False) == [SetAside]
    assert opened_at(home).rows(TABLES).all() == before


def test_a_checkpoint_that_says_something_else_than_the_commits_is_set_aside(
    store: DeltaSystemStore, home: Path
) -> None:
    checkpoint = checkpointed(store, home)
    older = DeltaTable(str(home / "tables"), version=2)
    shutil.copytree(home / "tables", home.parent / "older")
    older = DeltaTable(str(home.parent / "older"), version=2)
    older.create_checkpoint()
    shutil.copy(home.parent / "older" / "_delta_log" / f"{2:020d}.checkpoint.parquet", checkpoint)
    assert [one.damage for one in verify(opened_at(home))] == [Damage.CHECKPOINT_BROKEN]
    assert mended(home, None, consent=False) == [SetAside]


def test_damage_before_a_sound_checkpoint_costs_history_and_no_row(
    store: DeltaSystemStore, home: Path
) -> None:
    checkpointed(store, home)
    before = store.rows(TABLES).all()
    commit(home, 3).unlink()
    assert mended(home, None) == [CutHistory]
    assert opened_at(home).rows(TABLES).all() == before


def test_single_files_of_another_history_are_not_mixed_in(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    shutil.copytree(home, tmp_path / "before")
    store.edit(TABLES, lambda _: [table_row(30, owner="bea")], because="policy")
    store.edit(TABLES, lambda _: [table_row(31, owner="bea")], because="policy")
    backed_up(store, tmp_path / "copy")
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "before", home)
    again = opened_at(home)
    for number in (30, 31):
        again.edit(TABLES, lambda _, one=number: [table_row(one, owner="cat")], because="policy")  # type: ignore[misc]  # bound now
    commit(home, again.rows(TABLES).version).write_bytes(b"")
    source = open_backup(canonical(str(tmp_path / "copy")), NONE)
    damaged = opened_at(home)
    assert other_histories(damaged, verify(damaged, source), source) == (TABLES,)
    assert mended(home, tmp_path / "copy") == [RestoreTable]


def test_files_of_a_history_that_was_given_up_are_not_taken_for_ours_where_no_entry_can_be_read(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    backed_up(store, tmp_path / "early")
    for number in range(30, 36):
        store.edit(TABLES, lambda _, one=number: [table_row(one, owner="bea")], because="policy")  # type: ignore[misc]  # bound now
    backed_up(store, tmp_path / "late")
    lost(home, "tables")
    assert mended(home, tmp_path / "early") == [RestoreTable], "the store goes back in time"
    for entry in (home / "tables" / "_delta_log").glob("*.json"):
        entry.write_bytes(b"{")
    assert mended(home, tmp_path / "late") == [RestoreTable], "a loss that is told, not single files"
    scopes = opened_at(home).rows(TABLES).find(name="*", kind=RowKind.SCOPE)
    assert len(scopes) == 1 and scopes[0].paused is not None


def test_files_of_a_table_that_was_lost_are_not_taken_for_those_of_the_one_that_was_created_anew(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    waiting = purging(store)
    backed_up(store, tmp_path / "copy")
    lost(home, "tables")
    assert mended(home, None) == [CreateAgain]
    for entry in (home / "tables" / "_delta_log").glob("*.json"):
        entry.write_bytes(b"{")
    assert mended(home, tmp_path / "copy") == [RestoreTable]
    is_settled(home, waiting.table_id, "backup")


def test_single_files_come_back_where_the_newest_entry_shows_that_the_history_is_ours(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    backed_up(store, tmp_path / "early")
    lost(home, "tables")
    mended(home, tmp_path / "early")
    again = opened_at(home)
    again.edit(TABLES, lambda _: [table_row(30, owner="bea")], because="policy")
    backed_up(again, tmp_path / "late")
    commit(home, 1).write_bytes(b"{")
    assert mended(home, tmp_path / "late", consent=False) == [RestoreFiles]


# what does not come back


def lost(home: Path, *tables: str) -> None:
    for table in tables:
        shutil.rmtree(home / table)


def test_a_purge_of_then_comes_back_as_dropped_and_work_is_paused(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    marks = {PURGE_AFTER: (NOW - timedelta(days=1)).isoformat(), PURGE_VERSION: "3", "kept": "yes"}
    marks |= {PURGE_HEAD: "uuid@3@0", PURGE_UNKNOWN: "1 file"}
    waiting = replace(table_row(40), state=TableState.PURGING, properties=marks)
    asked = replace(table_row(41), state=TableState.CONVERTING)
    store.edit(TABLES, lambda _: [waiting, asked], because="purge and convert")
    backed_up(store, tmp_path / "copy")
    lost(home, "tables")
    assert mended(home, tmp_path / "copy") == [RestoreTable]
    rows = opened_at(home).rows(TABLES)
    back = rows.get(waiting.table_id)
    assert back is not None and back.state is TableState.DROPPED
    assert back.properties == {"kept": "yes", LINEAGE_UNREAD: NOW.isoformat()}
    assert "backup" in (back.state_reason or "")
    assert rows.get(asked.table_id) is None, "nobody waits for this conversion any more"
    scopes = rows.find(name="*", kind=RowKind.SCOPE)
    assert len(scopes) == 1 and "backup" in (scopes[0].paused or "")


@pytest.mark.parametrize("harm", ["half written", "missing"])
def test_a_log_that_is_cut_brings_no_purge_back_either(
    store: DeltaSystemStore, home: Path, harm: str
) -> None:
    waiting = purging(store)
    store.edit(TABLES, lambda _: [replace(waiting, state=TableState.ACTIVE, properties={})], because="undrop")
    spoiled = store.rows(TABLES).version
    commit(home, spoiled).write_bytes(b"{")
    if harm == "missing":
        commit(home, spoiled + 1).write_bytes(commit(home, spoiled - 1).read_bytes())
        commit(home, spoiled).unlink()
    assert mended(home, None) == [CutLog]
    is_settled(home, waiting.table_id, "taken back to version")


@pytest.mark.long
def test_a_repair_that_is_killed_while_it_cuts_leaves_the_damage_and_the_next_one_ends_it(
    store: DeltaSystemStore, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = purging(store)
    store.edit(TABLES, lambda _: [replace(waiting, state=TableState.ACTIVE, properties={})], because="undrop")
    spoiled = store.rows(TABLES).version
    for version in (spoiled, spoiled + 1):
        commit(home, version).write_bytes(b"{")
    shutil.copytree(home, tmp_path / "damaged")
    kills = 0
    while killed_at(home, kills, monkeypatch):
        told = verify(opened_at(home), None)
        if told:
            assert mended(home, None) == [CutLog]
        is_settled(home, waiting.table_id, "taken back to version")
        shutil.rmtree(home)
        shutil.copytree(tmp_path / "damaged", home)
        kills += 1
    assert kills > 4
    is_settled(home, waiting.table_id, "taken back to version")


def test_work_is_paused_where_rows_of_tables_are_given_up_that_may_have_been_holds(
    store: DeltaSystemStore, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [file] = (home / "tables").rglob(f"{newest_data_file(home)}")
    file.write_bytes(b"rotten")
    shutil.copytree(home, tmp_path / "rotten")
    for kills in range(3):
        if killed_at(home, kills, monkeypatch):
            rotten = any(one.damage is Damage.FILE_UNREADABLE for one in verify(opened_at(home), None))
            assert rotten or opened_at(home).rows(TABLES).find(name="*", kind=RowKind.SCOPE)
            shutil.rmtree(home)
            shutil.copytree(tmp_path / "rotten", home)
    assert mended(home, None) == [DropFiles]
    [everything] = opened_at(home).rows(TABLES).find(name="*", kind=RowKind.SCOPE)
    assert "without some rows" in (everything.paused or "")


def newest_data_file(home: Path) -> str:
    last = max((home / "tables" / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in last.read_text().splitlines()]
    return next(str(Path(action["add"]["path"]).name) for action in actions if "add" in action)


def test_a_rollback_waits_for_a_person_where_the_log_of_rollbacks_is_cut(
    store: DeltaSystemStore, home: Path
) -> None:
    begun = replace(sample(ROLLBACKS, 1), step=0, state=RollbackState.INTENT)
    store.edit(ROLLBACKS, lambda _: [begun], because="rollback")
    store.edit(ROLLBACKS, lambda _: [replace(begun, state=RollbackState.DONE)], because="rollback")
    commit(home, store.rows(ROLLBACKS).version, "rollbacks").write_bytes(b"{")
    assert mended(home, None) == [CutLog]
    assert [row.state for row in opened_at(home).rows(ROLLBACKS).all()] == [RollbackState.CONFLICT]
    assert "taken back" in (opened_at(home).rows(TABLES).find(name="*")[0].paused or "")


def purging(store: DeltaSystemStore) -> TableRow:
    marks = {PURGE_AFTER: (NOW - timedelta(days=1)).isoformat(), PURGE_VERSION: "3", PURGE_HEAD: "uuid@3@0"}
    row = replace(table_row(40), state=TableState.PURGING, properties=marks)
    store.edit(TABLES, lambda _: [row], because="purge")
    return row


def is_settled(home: Path, table_id: str, because: str) -> None:
    rows = opened_at(home).rows(TABLES)
    back = rows.get(table_id)
    assert back is not None and back.state is TableState.DROPPED and because in (back.state_reason or "")
    [everything] = rows.find(name="*", kind=RowKind.SCOPE)
    assert because in (everything.paused or "")


class Killed(BaseException):
    """Ends a repair at a failpoint."""


def killed_at(home: Path, after: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Repair without a backup, killed at the failpoint of this number; False if it came to its end before."""
    reached: list[str] = []

    def kill(point: str) -> None:
        if len(reached) == after:
            raise Killed
        reached.append(point)

    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "listener", kill)
        try:
            mended(home, None)
        except Killed:
            return True
    return False


def test_properties_owed_then_are_not_given_back_by_themselves(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    memory = (OriginalProperty(name="delta.logRetentionDuration", before=None, ours=("interval 30 days",)),)
    owed = leaving(replace(table_row(40), state=TableState.DROPPED), memory, NOW.isoformat())
    store.edit(TABLES, lambda _: [owed], because="drop")
    backed_up(store, tmp_path / "copy")
    lost(home, "tables")
    assert mended(home, tmp_path / "copy") == [RestoreTable]
    back = opened_at(home).rows(TABLES).get(owed.table_id)
    assert back is not None and back.state is TableState.DROPPED and not is_leaving(back)
    assert kept_of(back) == memory, "undropped and dropped again, it gets them back"
    assert "backup" in (back.state_reason or "")


@pytest.mark.parametrize("state", [RollbackState.INTENT, RollbackState.UNDOING])
def test_a_rollback_of_then_waits_for_a_person(
    store: DeltaSystemStore, home: Path, tmp_path: Path, state: RollbackState
) -> None:
    begun = replace(sample(ROLLBACKS, 1), step=0, state=state)
    done = replace(sample(ROLLBACKS, 2), rollback_id="rollback-2", step=0, state=RollbackState.DONE)
    store.edit(ROLLBACKS, lambda _: [begun, done], because="rollback")
    backed_up(store, tmp_path / "copy")
    lost(home, "rollbacks")
    assert mended(home, tmp_path / "copy") == [RestoreTable]
    rows = {row.rollback_id: row for row in opened_at(home).rows(ROLLBACKS).all()}
    assert rows[begun.rollback_id].state is RollbackState.CONFLICT
    assert rows[done.rollback_id] == done
    assert opened_at(home).rows(TABLES).find(name="*")[0].paused is not None


def test_a_leader_of_then_is_refused_and_so_is_one_that_came_after(
    store: DeltaSystemStore, home: Path, tmp_path: Path
) -> None:
    backed_up(store, tmp_path / "copy")
    for number in range(5):
        frozen = store.raise_fence(f"leader-{number}", at_least=0)
    lost(home, *(table.name for table in SYSTEM_TABLES))
    mended(home, tmp_path / "copy")
    for table in (TABLES, RUNS):
        with pytest.raises(FencedError):
            opened_at(home).edit(table, lambda _, of=table: [sample(of, 50)], fence=frozen, because="awake")  # type: ignore[misc]  # bound now
    leads = opened_at(home).raise_fence("new", at_least=0)
    assert leads.token > frozen.token
    opened_at(home).edit(RUNS, lambda _: [sample(RUNS, 51)], fence=leads, because="leads")


def test_a_whole_home_comes_back(store: DeltaSystemStore, home: Path, tmp_path: Path) -> None:
    store.append(RUNS, [sample(RUNS, 1)], because="recorded")
    backed_up(store, tmp_path / "copy")
    before = store.rows(RUNS).all(), owners(store)
    shutil.rmtree(home)
    assert mended(home, tmp_path / "copy") == [RestoreTable] * 7
    assert (opened_at(home).rows(RUNS).all(), owners(opened_at(home))) == before


# never a sound older version on the way


def test_a_log_that_is_moved_aside_cannot_be_opened_as_an_older_version(
    store: DeltaSystemStore, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = store.rows(TABLES).version
    seen: set[int | None] = set()

    def look(point: str) -> None:
        seen.add(DeltaTable(str(home / "tables")).version() if commit(home, 0).exists() else None)

    monkeypatch.setattr("lakewarden.catalog.system.recovery.set_aside.reach", look)
    files = open_store(store.location(TABLES))
    move_aside(files, [entry.path for entry in files.list("_delta_log")], NOW)
    assert seen <= {None, head} and os.listdir(home / "tables" / "_delta_log") == []
