"""The system tables' own care: nothing is lost, idle care commits nothing, a stale leader may not even tidy up."""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.errors import ConflictError, FencedError, NotFoundError, UsageError
from lakewarden.catalog.model.rows import RunRow
from lakewarden.catalog.storage.file_store import FileEntry, StorageOptions, canonical
from lakewarden.catalog.system import commits, maintenance
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.maintenance import Cared, compact, tend_log, vacuum
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import RUNS, TABLES, Rows
from lakewarden.catalog.system.store import DeltaSystemStore
from support.builders.system_samples import NOW, sample, table_row

NOTE = Note(actor="tests", because="care")
MEBIBYTE = 1024 * 1024
AGES_AGO = time.time() - 10 * 86_400


@pytest.fixture
def store(tmp_path: Path) -> DeltaSystemStore:
    opened = DeltaSystemStore(canonical(str(tmp_path)), StorageOptions(), actor="tests")
    opened.create(system_rows(opened, now=NOW, actor="tests"))
    return opened


def appended(store: DeltaSystemStore, commits: int) -> None:
    for number in range(commits):
        store.append(RUNS, [sample(RUNS, number)], because="recorded")


def files_of(folder: Path) -> int:
    return sum(1 for _ in folder.glob("bucket=*/*"))


@pytest.mark.heavy
def test_compaction_joins_small_files_and_keeps_every_row(store: DeltaSystemStore, tmp_path: Path) -> None:
    appended(store, 24)
    before = store.rows(RUNS)
    done = compact(store, RUNS, target_bytes=MEBIBYTE, min_small_files=4, note=NOTE)
    assert (done.files_removed, done.files_added) == (24, 4) and done.version == before.version + 1
    assert store.added(RUNS, before.version + 1) == ()
    after = store.rows(RUNS)
    assert after.all() == before.all() and after.version == done.version
    assert [after.get(f"run-{number:06d}") for number in range(24)] == list(before.all())


@pytest.mark.heavy
def test_compaction_with_nothing_to_gain_makes_no_commit(store: DeltaSystemStore) -> None:
    appended(store, 24)
    compact(store, RUNS, target_bytes=MEBIBYTE, min_small_files=4, note=NOTE)
    version = store.rows(RUNS).version
    for _ in range(10):
        assert compact(store, RUNS, target_bytes=MEBIBYTE, min_small_files=4, note=NOTE) == Cared()
    assert store.rows(RUNS).version == version


def test_numbers_are_still_known_after_compaction(store: DeltaSystemStore) -> None:
    store.append(TABLES, [table_row(40)], because="a file of its own")
    store.append(TABLES, [table_row(number) for number in range(10, 38)], because="files of their own")
    compact(store, TABLES, target_bytes=MEBIBYTE, min_small_files=2, note=NOTE)
    assert store.rows(TABLES).highest("row") == 40
    assert store.edit(TABLES, lambda _: [table_row(40)], because="as before").rows == ()


def test_an_edit_meeting_a_compaction_decides_again(store: DeltaSystemStore) -> None:
    appended(store, 12)
    calls: list[int] = []

    def change(rows: Rows[RunRow]) -> list[RunRow]:
        calls.append(rows.version)
        if len(calls) == 1:
            compact(store, RUNS, target_bytes=MEBIBYTE, min_small_files=2, note=NOTE)
        return [sample(RUNS, 99)]

    store.edit(RUNS, change, because="recorded")
    assert len(calls) == 2 and len(store.rows(RUNS).all()) == 13


def test_vacuum_leaves_the_window_readable(store: DeltaSystemStore, tmp_path: Path) -> None:
    for number in range(6):
        store.edit(TABLES, lambda _, n=number: [table_row(9, owner=f"o{n}")], because="owner")  # type: ignore[misc]  # bound now
    head = store.rows(TABLES).version
    assert vacuum(store, TABLES, retention=timedelta(hours=1), now=datetime.now(UTC), note=NOTE) == Cared()
    assert store.rows(TABLES).version == head
    assert [store.rows(TABLES, version=v).find(row=9)[0].owner for v in range(2, head + 1)] == [
        f"o{number}" for number in range(6)
    ]


def test_vacuum_takes_what_killed_writers_left(store: DeltaSystemStore, tmp_path: Path) -> None:
    folder = tmp_path / "tables" / "bucket=5"
    folder.mkdir(exist_ok=True)
    for name, moment in (("old.parquet", AGES_AGO), ("young.parquet", time.time())):
        (folder / name).write_bytes(b"half a file")
        os.utime(folder / name, (moment, moment))
    planned = vacuum(
        store, TABLES, retention=timedelta(days=2), now=datetime.now(UTC), note=NOTE, dry_run=True
    )
    assert planned == Cared(files_removed=1, bytes_removed=11) and (folder / "old.parquet").exists()
    version = store.rows(TABLES).version
    done = vacuum(store, TABLES, retention=timedelta(days=2), now=datetime.now(UTC), note=NOTE)
    assert done == planned and store.rows(TABLES).version == version, "it makes no commit"
    assert not (folder / "old.parquet").exists() and (folder / "young.parquet").exists()
    assert vacuum(store, TABLES, retention=timedelta(days=2), now=datetime.now(UTC), note=NOTE) == Cared()
    assert store.rows(TABLES).highest("row") == 6


def edited(store: DeltaSystemStore, monkeypatch: pytest.MonkeyPatch, *owners: str) -> None:
    """Edits of a row by a host whose clock is far behind."""
    with monkeypatch.context() as clock:
        clock.setattr(commits, "time", SimpleNamespace(time_ns=lambda: int(AGES_AGO * 1e9)))
        for owner in owners:
            store.edit(TABLES, lambda _, o=owner: [table_row(9, owner=o)], because="owner")  # type: ignore[misc]  # bound now


def aged(files: Iterable[Path]) -> None:
    for file in files:
        os.utime(file, (AGES_AGO, AGES_AGO))


@pytest.mark.parametrize("storage", ["right", "wrong"])
def test_what_a_host_removes_whose_clock_is_far_behind_stays_readable(
    store: DeltaSystemStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str
) -> None:
    edited(store, monkeypatch, "o0")
    before = set((tmp_path / "tables").rglob("*.*"))
    edited(store, monkeypatch, "o1", "o2", "o3")
    aged(before if storage == "right" else set((tmp_path / "tables").rglob("*.*")) - before)
    head = store.rows(TABLES).version
    assert vacuum(store, TABLES, retention=timedelta(days=2), now=datetime.now(UTC), note=NOTE) == Cared()
    versions = (store.rows(TABLES, version=one) for one in range(head - 3, head + 1))
    assert [rows.find(row=9)[0].owner for rows in versions] == ["o0", "o1", "o2", "o3"]


def test_what_was_removed_before_the_window_goes(
    store: DeltaSystemStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited(store, monkeypatch, "o0", "o1", "o2")
    aged((tmp_path / "tables").rglob("*.*"))
    done = vacuum(store, TABLES, retention=timedelta(days=2), now=datetime.now(UTC), note=NOTE)
    assert done.files_removed == 2 and store.rows(TABLES).find(row=9)[0].owner == "o2"


def test_a_retention_that_endangers_writers_is_refused(store: DeltaSystemStore) -> None:
    with pytest.raises(UsageError, match="too short"):
        vacuum(store, TABLES, retention=timedelta(minutes=5), now=datetime.now(UTC), note=NOTE)


def test_a_stale_leader_may_not_care(store: DeltaSystemStore) -> None:
    old = Note(actor="tests", because="care", fence=store.raise_fence("daemon-1", at_least=0))
    store.raise_fence("daemon-2", at_least=0)
    appended(store, 8)
    with pytest.raises(FencedError):
        compact(store, RUNS, target_bytes=MEBIBYTE, min_small_files=2, note=old)
    with pytest.raises(FencedError):
        vacuum(store, RUNS, retention=timedelta(days=2), now=datetime.now(UTC), note=old)
    with pytest.raises(FencedError):
        tend_log(store, RUNS, checkpoint=True, keep=timedelta(days=2), now=NOW, note=old)


def test_a_compaction_whose_files_were_rewritten_meanwhile_is_a_conflict(
    store: DeltaSystemStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    appended(store, 8)
    changed = replace(sample(RUNS, 3), message="changed")
    monkeypatch.setattr(
        maintenance,
        "admit",
        lambda *_: store.edit(RUNS, lambda _: [changed], because="faster than the compaction"),
    )
    with pytest.raises(ConflictError):
        compact(store, RUNS, target_bytes=MEBIBYTE, min_small_files=2, note=NOTE)
    assert store.rows(RUNS).get("run-000003") == changed and len(store.rows(RUNS).all()) == 8


def test_a_compaction_beside_an_append_is_a_conflict_too(
    store: DeltaSystemStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    appended(store, 8)
    monkeypatch.setattr(
        maintenance, "admit", lambda *_: store.append(RUNS, [sample(RUNS, 50)], because="beside it")
    )
    with pytest.raises(ConflictError):
        compact(store, RUNS, target_bytes=MEBIBYTE, min_small_files=2, note=NOTE)
    assert len(store.rows(RUNS).all()) == 9 and files_of(tmp_path / "runs") == 9


def test_a_leader_frozen_in_a_compaction_is_refused(
    store: DeltaSystemStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    appended(store, 8)
    old = Note(actor="tests", because="care", fence=store.raise_fence("daemon-1", at_least=0))
    monkeypatch.setattr(maintenance, "admit", lambda *_: store.raise_fence("daemon-2", at_least=0))
    with pytest.raises(ConflictError):
        compact(store, RUNS, target_bytes=MEBIBYTE, min_small_files=2, note=old)
    assert store.raise_fence("daemon-3", at_least=0).token == 3


def test_a_leader_frozen_in_a_vacuum_does_not_lower_the_token(
    store: DeltaSystemStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = Note(actor="tests", because="care", fence=store.raise_fence("daemon-1", at_least=0))
    (tmp_path / "runs" / "bucket=0").mkdir(exist_ok=True)
    (tmp_path / "runs" / "bucket=0" / "orphan.parquet").touch()
    os.utime(tmp_path / "runs" / "bucket=0" / "orphan.parquet", (AGES_AGO, AGES_AGO))
    looks: list[object] = []

    def last_look(*_: object) -> None:
        looks.append(_)
        if len(looks) == 2:  # between it and the deletion nothing can be asked
            store.raise_fence("daemon-2", at_least=0)

    monkeypatch.setattr(maintenance, "admit", last_look)
    with suppress(ConflictError):
        vacuum(store, RUNS, retention=timedelta(days=2), now=datetime.now(UTC), note=old)
    assert store.raise_fence("daemon-3", at_least=0).token == 3


class Frozen:
    """A clock by which the process was frozen for a minute between two files, while something happened."""

    def __init__(self, meanwhile: Callable[[], object], *, asked: int) -> None:
        self.meanwhile, self.left, self.now = meanwhile, asked, 1_000.0

    def __call__(self) -> float:
        self.left -= 1
        if self.left == 0:
            self.meanwhile()
            self.now += 60
        return self.now


@pytest.mark.parametrize("care", ["vacuum", "log"])
def test_a_leader_that_wakes_within_a_batch_deletes_nothing_more(
    store: DeltaSystemStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, care: str
) -> None:
    old = Note(actor="tests", because="care", fence=store.raise_fence("daemon-1", at_least=0))
    folder = tmp_path / "runs" / {"vacuum": "bucket=0", "log": "_delta_log"}[care]
    folder.mkdir(exist_ok=True)
    names = [{"vacuum": f"orphan-{n}.parquet", "log": f"_commit_{n}.json.tmp"}[care] for n in range(5)]
    for name in names:
        (folder / name).touch()
        os.utime(folder / name, (AGES_AGO, AGES_AGO))
    # asked after the first answer, then before each further file
    frozen = Frozen(lambda: store.raise_fence("daemon-2", at_least=0), asked=4)
    monkeypatch.setattr(maintenance, "seconds_since_boot", frozen)
    with pytest.raises(FencedError):
        if care == "vacuum":
            vacuum(store, RUNS, retention=timedelta(days=2), now=datetime.now(UTC), note=old)
        else:
            keep = timedelta(days=2)
            tend_log(store, RUNS, checkpoint=False, keep=keep, now=datetime.now(UTC), note=old)
    assert sum((folder / name).exists() for name in names) == 2


@pytest.mark.parametrize("care", ["vacuum", "log"])
def test_what_a_repair_has_put_back_since_it_was_listed_stays(
    store: DeltaSystemStore, tmp_path: Path, care: str
) -> None:
    folder = tmp_path / "runs" / {"vacuum": "bucket=0", "log": "_delta_log"}[care]
    folder.mkdir(exist_ok=True)
    name = folder / {"vacuum": "orphan.parquet", "log": "_commit_dead.json.tmp"}[care]
    name.touch()
    os.utime(name, (AGES_AGO, AGES_AGO))

    def put_back() -> None:
        name.write_bytes(b"from a backup")

    with pytest.raises(ConflictError, match="was put back meanwhile"):
        if care == "vacuum":
            vacuum(
                store, RUNS, retention=timedelta(days=2), now=datetime.now(UTC), note=NOTE, proceed=put_back
            )
        else:
            keep, now = timedelta(days=2), datetime.now(UTC)
            tend_log(store, RUNS, checkpoint=False, keep=keep, now=now, note=NOTE, proceed=put_back)
    assert name.read_bytes() == b"from a backup"


@pytest.mark.heavy
def test_the_log_is_cleaned_behind_the_window_only(store: DeltaSystemStore, tmp_path: Path) -> None:
    appended(store, 70)  # a checkpoint at 49
    log = tmp_path / "runs" / "_delta_log"
    for version in range(60):
        os.utime(log / f"{version:020d}.json", (AGES_AGO + version, AGES_AGO + version))
    (log / "_commit_dead.json.tmp").write_text("{}")
    os.utime(log / "_commit_dead.json.tmp", (AGES_AGO, AGES_AGO))
    rows = store.rows(RUNS).all()
    now = datetime.now(UTC)
    assert (
        tend_log(store, RUNS, checkpoint=True, keep=timedelta(days=30), now=now, note=NOTE).files_removed == 0
    )
    done = tend_log(store, RUNS, checkpoint=True, keep=timedelta(days=2), now=now, note=NOTE)
    left = sorted(int(path.stem) for path in log.glob("*.json"))
    assert left == list(range(49, 71)) and done.version is None and done.files_removed == 50
    assert not (log / "_commit_dead.json.tmp").exists()
    fresh = DeltaSystemStore(canonical(str(tmp_path)), StorageOptions(), actor="tests")
    assert fresh.rows(RUNS).all() == rows and fresh.rows(RUNS).version == 70
    assert len(fresh.rows(RUNS, version=59).all()) == 59
    with pytest.raises(NotFoundError):
        fresh.rows(RUNS, version=12)
    assert store.append(RUNS, [sample(RUNS, 99)], because="life goes on") == 71


@pytest.mark.heavy
def test_nothing_but_us_cleans_the_log(store: DeltaSystemStore, tmp_path: Path) -> None:
    appended(store, 45)
    log = tmp_path / "runs" / "_delta_log"
    for path in log.glob("*.json"):
        os.utime(path, (AGES_AGO - 365 * 86_400, AGES_AGO - 365 * 86_400))
    appended(store, 60)
    DeltaTable(str(tmp_path / "runs")).create_checkpoint()
    assert sorted(int(path.stem) for path in log.glob("*.json")) == list(range(61))


def test_no_commit_counts_as_older_than_one_before_it() -> None:
    def entry(path: str, day: int) -> FileEntry:
        return FileEntry(path=f"_delta_log/{path}", size_bytes=1, modified_at=NOW + timedelta(days=day))

    log = [
        entry(f"{0:020d}.json", 9),  # a clock that was ahead: what follows is not older than this
        entry(f"{1:020d}.json", 0),
        entry(f"{2:020d}.json", 1),
        entry(f"{2:020d}.checkpoint.parquet", 1),
        entry(f"{3:020d}.json", 12),
    ]
    assert maintenance._expendable(log, oldest=NOW + timedelta(days=5)) == []
    assert [one.path[-6:] for one in maintenance._expendable(log, oldest=NOW + timedelta(days=10))] == [
        "0.json",
        "1.json",
    ]
