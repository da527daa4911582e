"""Cleanup of a Delta log: what goes, what stays, and that it can be interrupted anywhere. Tables made by delta-rs."""

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from deltalake.exceptions import DeltaError

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.storage.file_store import FileEntry, FileStore, canonical, open_store
from lakewarden.jobs.engines.delta.log_cleanup import SIDECAR_REST, clean_log
from lakewarden.jobs.runs.port import FileChange
from support.builders.delta_logs import LogWriter, add

pytestmark = pytest.mark.heavy

NOW = datetime(2026, 11, 21, tzinfo=UTC)
HEAD = 17
CHECKPOINTS = (5, 10, 15)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Versions 0 to 17, one row more in each; checkpoints of 5, 10 and 15."""
    hooks = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
    for version in range(HEAD + 1):
        write_deltalake(
            str(tmp_path / "t"),
            pa.table({"id": [version]}),
            mode="append",
            post_commithook_properties=hooks,
        )
        if version in CHECKPOINTS:
            DeltaTable(str(tmp_path / "t")).create_checkpoint()
    return tmp_path / "t"


def cleaned(table: Path, keep_from: int) -> FileChange:
    return clean_log(open_store(canonical(str(table))), keep_from=keep_from, now=NOW, proceed=lambda: None)


def log(table: Path) -> list[str]:
    return sorted(path.name for path in (table / "_delta_log").iterdir())


def readable(table: Path) -> list[int]:
    """The versions that delta-rs rebuilds, each with all its files."""
    found = []
    for version in range(HEAD + 1):
        try:
            files = DeltaTable(str(table), version=version).file_uris()
        except DeltaError:
            files = []  # this version is gone
        assert len(files) in (0, version + 1)
        found.extend([version] if files else [])
    return found


@pytest.mark.parametrize(
    ("keep_from", "first"),
    [
        pytest.param(12, 10, id="back to the checkpoint before the oldest version to keep"),
        pytest.param(15, 15, id="a checkpoint of exactly that version"),
        pytest.param(99, 15, id="never beyond the last checkpoint"),
        pytest.param(4, 0, id="no checkpoint old enough: nothing goes"),
    ],
)
def test_every_version_to_keep_stays_readable(table: Path, keep_from: int, first: int) -> None:
    change = cleaned(table, keep_from)
    assert readable(table) == list(range(first, HEAD + 1))
    assert change.version == (first or None)
    gone = [version for version in CHECKPOINTS if version < first]
    assert change.files_removed == first + len(gone)
    assert cleaned(table, keep_from).files_removed == 0


def test_a_checkpoint_keeps_its_own_commit(table: Path) -> None:
    cleaned(table, 12)
    assert log(table)[:2] == [f"{10:020d}.checkpoint.parquet", f"{10:020d}.json"]


class Interrupted:
    """A store that stops working after one deletion."""

    def __init__(self, store: FileStore) -> None:
        self._store, self._deleted = store, False

    def delete_listed(self, entry: FileEntry) -> bool:
        if self._deleted:
            raise InterruptedError(entry.path)
        self._deleted = True
        return self._store.delete_listed(entry)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def test_interrupted_anywhere_the_table_stays_readable_and_the_next_call_finishes(table: Path) -> None:
    deletions = 0
    while True:
        store = Interrupted(open_store(canonical(str(table))))
        try:
            clean_log(cast(FileStore, store), keep_from=12, now=NOW, proceed=lambda: None)
            break
        except InterruptedError:
            deletions += 1
        assert set(readable(table)) >= set(range(10, HEAD + 1))
    assert deletions == 10  # ten commits and one checkpoint, the last of which needed no further call
    assert readable(table) == list(range(10, HEAD + 1))


@pytest.mark.parametrize("is_lost", [True, False], ids=["by its clock", "by what lies there"])
def test_a_worker_that_wakes_within_a_batch_leaves_the_table_that_was_made_anew(
    table: Path, is_lost: bool
) -> None:
    asked = iter(range(100))

    def woken() -> None:
        if next(asked) != 2:
            return
        shutil.rmtree(table)
        for number in range(3):
            write_deltalake(str(table), pa.table({"other": [number]}), mode="append")
        if is_lost:
            raise ConflictError("The run's lease was lost.")

    store = open_store(canonical(str(table)))
    with pytest.raises(ConflictError, match="lease was lost" if is_lost else "made anew or replaced"):
        clean_log(store, keep_from=12, now=NOW, proceed=lambda: None, still_ours=woken)
    assert DeltaTable(str(table)).version() == 2
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == 3


def test_an_unsound_checkpoint_is_nothing_to_start_from(table: Path) -> None:
    checkpoint = table / "_delta_log" / f"{10:020d}.checkpoint.parquet"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    assert cleaned(table, 12).version == 5
    assert log(table)[0].startswith(f"{5:020d}")


@pytest.mark.parametrize(
    ("hint", "first"),
    [
        pytest.param('{"version":5,"size":3}', 5, id="readers are sent to an older checkpoint"),
        pytest.param("not json", 0, id="the hint makes no sense"),
        pytest.param(None, 10, id="no hint: readers list the log"),
    ],
)
def test_what_the_hint_names_stays(table: Path, hint: str | None, first: int) -> None:
    path = table / "_delta_log" / "_last_checkpoint"
    path.unlink()
    if hint is not None:
        path.write_text(hint)
    assert cleaned(table, 12).version == (first or None)


def test_a_log_with_a_hole_is_cleaned_only_behind_it(table: Path) -> None:
    (table / "_delta_log" / f"{12:020d}.json").unlink()
    assert cleaned(table, 14).version is None
    assert cleaned(table, 16).version is None, "nothing proves 15, and 0 to 11 can still be read"
    DeltaTable(str(table)).create_checkpoint()
    assert cleaned(table, HEAD).version == HEAD, "which 15, where readers start anyway, and 16 and 17 prove"


def test_checksums_compacted_commits_and_hadoops_side_files_go_with_them(table: Path) -> None:
    folder = table / "_delta_log"
    old = [
        f"{3:020d}.crc",
        f".{3:020d}.crc.crc",
        f".{3:020d}.json.crc",
        f"{2:020d}.{9:020d}.compacted.json",
    ]
    kept = [
        f"{12:020d}.crc",
        f".{12:020d}.json.crc",
        f"{8:020d}.{11:020d}.compacted.json",
        "_last_vacuum_info",
        "x",
    ]
    for name in old + kept:
        (folder / name).write_text("{}")
    cleaned(table, 12)
    assert not set(old) & set(log(table)) and set(kept) <= set(log(table))


def test_sidecars_go_when_no_checkpoint_names_them(tmp_path: Path) -> None:
    table = LogWriter(root=tmp_path / "t", now=NOW - SIDECAR_REST - timedelta(hours=1)).create()
    for number in range(1, 13):
        table.commit(add(f"{number}.parquet"))
        if number in (5, 10):
            table.checkpoint("v2-json")
    folder = table.log / "_sidecars"
    new = [path for path in folder.iterdir() if path.stat().st_mtime > table.now.timestamp() - 200]
    (folder / "being-written.parquet").write_bytes(b"0")
    os.utime(folder / "being-written.parquet", (NOW.timestamp(), NOW.timestamp()))
    assert cleaned(table.root, 12).version == 10
    assert set(folder.iterdir()) == {*new, folder / "being-written.parquet"} and len(new) == 2


def test_no_sidecar_goes_while_a_checkpoint_names_one_that_is_not_there(tmp_path: Path) -> None:
    """The name may be what is damaged, and the sidecar the one it meant."""
    table = LogWriter(root=tmp_path / "t", now=NOW - SIDECAR_REST - timedelta(hours=1)).create()
    table.commit(add("a.parquet"), add("b.parquet"))
    table.checkpoint("v2-json")
    sidecar = next((table.log / "_sidecars").iterdir())
    other = sidecar.with_name(f"{'0' * 8}{sidecar.name[8:]}")
    sidecar.rename(other)
    table.clean(1)
    assert cleaned(table.root, 1).files_removed == 0 and other.exists()


def test_a_checkpoint_whose_sidecar_is_not_whole_is_nothing_to_start_from(table: Path) -> None:
    folder = table / "_delta_log"
    (folder / f"{10:020d}.checkpoint.parquet").unlink()
    (folder / "_sidecars").mkdir()
    (folder / "_sidecars" / "s.parquet").write_bytes(b"01234")
    actions = [{"protocol": {}}, {"metaData": {}}, {"sidecar": {"path": "s.parquet", "sizeInBytes": 10}}]
    lines = "\n".join(json.dumps(action) for action in actions)
    (folder / f"{10:020d}.checkpoint.{'0' * 8}-0000-0000-0000-{'0' * 12}.json").write_text(lines)
    assert cleaned(table, 12).version == 5
