"""The system store killed at every step: whatever was half done converges when somebody does it again."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.model.pending_purge import PURGE_AFTER
from lakewarden.catalog.model.rows import TableState
from lakewarden.catalog.model.unread_lineage import is_lineage_unread, with_lineage_read
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import HEALTH, RUNS, SYSTEM_TABLES, TABLES, SystemTable
from lakewarden.catalog.system.recovery.backup import read_backup
from lakewarden.catalog.system.recovery.verify import verify
from lakewarden.catalog.system.store import DeltaSystemStore
from support.builders.system_samples import NOW, make_older, sample
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here
from support.processes import system_process

pytestmark = pytest.mark.crash
AGES_AGO = time.time() - timedelta(days=3).total_seconds()
LEADER = "lakewarden.leader"


def opened(folder: Path) -> DeltaSystemStore:
    return DeltaSystemStore(canonical(str(folder)), StorageOptions(), actor="tests")


def created(folder: Path) -> DeltaSystemStore:
    store = opened(folder)
    store.create(system_rows(store, now=NOW, actor="tests"))
    return store


def killed(role: str, folder: Path, point: str, *arguments: str) -> None:
    """Play a role, on a store that nobody else has, until it reaches the point."""
    store = DeltaSystemStore(canonical(str(folder)), StorageOptions(), actor="process")
    killed_here(point, lambda: system_process.ROLES[role](store, *arguments))


def test_a_writer_killed_by_sigkill_leaves_a_whole_table(tmp_path: Path) -> None:
    store = created(tmp_path)
    done = subprocess.run(
        [sys.executable, system_process.__file__, "edit", canonical(str(tmp_path))],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "LAKEWARDEN_FAILPOINT": "system.commit",
        },
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert verify(store) == () and store.rows(TABLES).get(sample(TABLES, 30).table_id) is None
    system_process.edit(store)
    assert store.rows(TABLES).all().count(sample(TABLES, 30)) == 1


@pytest.mark.parametrize("point", [*points_of("test_init_killed_and_done_again"), "system.commit"])
def test_init_killed_and_done_again(tmp_path: Path, point: str) -> None:
    killed("create", tmp_path, point)
    store = created(tmp_path)
    assert store.exists() and verify(store) == ()
    assert [row.row for row in sorted(store.rows(TABLES).all(), key=lambda row: row.row)] == list(range(7))
    assert store.rows(TABLES).version == 1


@pytest.mark.parametrize("role", ["edit", "append"])
@pytest.mark.parametrize("point", points_of("test_a_change_killed_is_there_whole_or_not_at_all"))
def test_a_change_killed_is_there_whole_or_not_at_all(tmp_path: Path, role: str, point: str) -> None:
    store = created(tmp_path)
    killed(role, tmp_path, point)
    table: SystemTable[Any] = TABLES if role == "edit" else RUNS
    row = sample(table, 30)
    assert store.rows(table).all().count(row) == (1 if point == "system.committed" else 0)
    assert verify(store) == ()
    system_process.ROLES[role](store)
    assert store.rows(table).all().count(row) == 1


@pytest.mark.parametrize("point", points_of("test_a_leader_killed_while_it_fences_is_overtaken"))
def test_a_leader_killed_while_it_fences_is_overtaken(tmp_path: Path, point: str) -> None:
    store = created(tmp_path)
    first = store.raise_fence("first", at_least=0)
    killed("lead", tmp_path, point)
    second = store.raise_fence("second", at_least=0)
    assert second.token > first.token + 1
    for one in SYSTEM_TABLES:
        store.edit(one, lambda _, of=one: [sample(of, 1)], fence=second, because="leads")  # type: ignore[misc]  # bound now
    assert verify(store) == ()


@pytest.mark.few(2)
@pytest.mark.parametrize("point", [*points_of("test_care_killed_leaves_a_whole_table"), "system.commit"])
def test_care_killed_leaves_a_whole_table(tmp_path: Path, point: str) -> None:
    store = created(tmp_path)
    for number in range(60):
        store.append(RUNS, [sample(RUNS, number)], because="recorded")
    for path in [*(tmp_path / "runs" / "_delta_log").glob("*"), *(tmp_path / "runs").glob("bucket=*/*")]:
        os.utime(path, (AGES_AGO, AGES_AGO))
    orphan = tmp_path / "runs" / "bucket=0" / "orphan.parquet"
    orphan.touch()
    os.utime(orphan, (AGES_AGO, AGES_AGO))
    before = store.rows(RUNS).all()
    killed("tend", tmp_path, point)
    assert verify(opened(tmp_path)) == () and opened(tmp_path).rows(RUNS).all() == before
    system_process.tend(opened(tmp_path))
    assert verify(opened(tmp_path)) == () and opened(tmp_path).rows(RUNS).all() == before
    assert not orphan.exists()
    version = store.rows(RUNS).version
    system_process.tend(store)
    assert store.rows(RUNS).version == version


@pytest.mark.parametrize("point", points_of("test_an_upgrade_killed_goes_on"))
def test_an_upgrade_killed_goes_on(tmp_path: Path, point: str) -> None:
    created(tmp_path)
    make_older(tmp_path, HEALTH, without={"findings"})
    killed("create", tmp_path, point)
    with pytest.raises(PreconditionError, match="waits for the upgrade"):
        opened(tmp_path).edit(HEALTH, lambda _: [sample(HEALTH, 1)], because="too early")
    store = created(tmp_path)
    store.edit(HEALTH, lambda _: [sample(HEALTH, 1)], because="upgraded")
    assert verify(store) == () and store.rows(HEALTH).all() == (sample(HEALTH, 1),)


@pytest.mark.parametrize("point", points_of("test_a_backup_killed_goes_on"))
def test_a_backup_killed_goes_on(tmp_path: Path, point: str) -> None:
    store, copy = created(tmp_path / "system"), canonical(str(tmp_path / "copy"))
    store.edit(TABLES, lambda _: [sample(TABLES, 30)], because="register")
    killed("back_up", tmp_path / "system", point, copy)
    assert read_backup(copy, StorageOptions()) is None
    system_process.back_up(store, copy)
    saved = opened(tmp_path / "copy")
    assert verify(saved) == ()
    assert all(saved.rows(table).all() == store.rows(table).all() for table in SYSTEM_TABLES)


@pytest.mark.parametrize("point", points_of("test_a_repair_killed_goes_on"))
def test_a_repair_killed_goes_on(tmp_path: Path, point: str) -> None:
    home, copy = tmp_path / "system", canonical(str(tmp_path / "copy"))
    store = created(home)
    store.append(RUNS, [sample(RUNS, 1)], because="recorded")
    before = {table: store.rows(table).all() for table in SYSTEM_TABLES}
    system_process.back_up(store, copy)
    for table in (TABLES, RUNS):
        next((home / table.name).glob("bucket=*/*.parquet")).unlink()
    killed("mend", home, point, copy)
    assert len({problem.table for problem in verify(opened(home))}) == 1, "of two damaged tables one is whole"
    system_process.mend(opened(home), copy)
    assert verify(opened(home)) == ()
    assert {table: opened(home).rows(table).all() for table in SYSTEM_TABLES} == before


@pytest.mark.few(2)
@pytest.mark.parametrize("point", points_of("test_a_restore_killed_leaves_the_damage_or_the_whole_table"))
def test_a_restore_killed_leaves_the_damage_or_the_whole_table(tmp_path: Path, point: str) -> None:
    home, copy = tmp_path / "system", canonical(str(tmp_path / "copy"))
    store = created(home)
    waiting = replace(sample(TABLES, 31), state=TableState.PURGING, properties={PURGE_AFTER: NOW.isoformat()})
    for number in range(32, 36):
        store.edit(TABLES, lambda _, one=number: [sample(TABLES, one)], because="register")  # type: ignore[misc]  # bound now
    store.edit(TABLES, lambda _: [waiting], because="purge")
    system_process.back_up(store, copy)
    store.edit(TABLES, lambda _: [sample(TABLES, 40)], because="since then")
    (home / "tables" / "_delta_log" / f"{store.rows(TABLES).version:020d}.json").write_bytes(b"")
    (home / "tables" / "_delta_log" / f"{0:020d}.json").unlink()
    killed("mend", home, point, copy)
    if verify(opened(home)) == ():
        assert opened(home).rows(TABLES).get(waiting.table_id).state is TableState.DROPPED  # type: ignore[union-attr]  # there
    system_process.mend(opened(home), copy)
    assert verify(opened(home)) == ()
    rows = {row.table_id: row for row in opened(home).rows(TABLES).all()}
    assert rows[waiting.table_id].state is TableState.DROPPED
    for number in range(32, 36):  # as they were, but for what says that their lineage is to be read
        back, then = rows[f"table-{number:06d}"], sample(TABLES, number)
        said = {"updated_at": then.updated_at, "updated_by": then.updated_by}
        assert is_lineage_unread(back.properties) and replace(with_lineage_read(back), **said) == then
    opened(home).edit(TABLES, lambda _: [sample(TABLES, 50)], because="life goes on")
