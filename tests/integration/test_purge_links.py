"""A purge and the links in a folder: what a link leads to is somebody else's, whatever the table's log says of it."""

import json
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.model.rows import Outcome, TableState
from support.builders.estate import Estate, numbers, rows


def table(estate: Estate, folder: Path, name: str) -> Path:
    write_deltalake(str(folder), numbers(0))
    estate.must("tables", "register", str(folder), "--name", name)
    return folder


def named_by_log(folder: Path, path: str, size: int) -> None:
    """A commit by hand that adds a file by a relative path."""
    version = DeltaTable(str(folder)).version() + 1
    add = (
        f'{{"add":{{"path":"{path}","partitionValues":{{}},"size":{size},'
        '"modificationTime":1,"dataChange":true}}'
    )
    (folder / "_delta_log" / f"{version:020d}.json").write_text(add + "\n")


def test_live_files_of_another_table_behind_a_link_stay(estate: Estate, tmp_path: Path) -> None:
    other = table(estate, tmp_path / "lake" / "other" / "inner", "db.other")
    folder = table(estate, tmp_path / "lake" / "t", "db.t")
    (folder / "sub").symlink_to(other)
    (live,) = other.glob("*.parquet")
    named_by_log(folder, f"sub/{live.name}", live.stat().st_size)
    version = str(DeltaTable(str(folder)).version())
    dry = estate.must("tables", "drop", "db.t", "--purge", "--dry-run", "-o", "json").json
    assert (dry["unknown_files"], dry["unknown_shown"]) == (1, ["sub"]), (
        "the link itself, and nothing behind it"
    )
    drop = ("tables", "drop", "db.t", "--purge", "--at-version", version, "--yes")
    estate.must(*drop, "--unknown-files", dry["unknown_token"])
    estate.queue("db.t", estate.purge("db.t"))
    done = estate.work()
    assert done is not None and done.result.outcome is Outcome.SUCCEEDED, done
    assert not folder.exists()
    assert rows(other) == list(range(10)) and live.exists()


def test_a_link_that_leads_nowhere_or_in_a_circle_is_an_unknown_file_and_goes_along(
    estate: Estate, tmp_path: Path
) -> None:
    folder = table(estate, tmp_path / "lake" / "t", "db.t")
    (folder / "year=2026").mkdir()
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    (folder / "year=2026" / "older.parquet").symlink_to("../gone")
    (folder / "year=2026" / "up").symlink_to("..")
    (folder / "year=2026" / "round").symlink_to("round")
    drop = ("tables", "drop", "db.t", "--purge", "--at-version", str(DeltaTable(str(folder)).version()))
    assert estate.says(*drop, "--yes").code == 4, "nobody agreed to delete the links"
    dry = estate.must("tables", "drop", "db.t", "--purge", "--dry-run", "-o", "json").json
    links = ["dangling", "year=2026/older.parquet", "year=2026/round", "year=2026/up"]
    assert sorted(dry["unknown_shown"]) == links
    estate.must(*drop, "--yes", "--unknown-files", dry["unknown_token"])
    estate.queue("db.t", estate.purge("db.t"))
    done = estate.work()
    assert done is not None and done.result.outcome is Outcome.SUCCEEDED, done
    assert not folder.exists()


def test_a_table_inside_is_said_before_anything_is_promised(estate: Estate, tmp_path: Path) -> None:
    folder = table(estate, tmp_path / "lake" / "t", "db.t")
    write_deltalake(str(folder / "exports"), numbers(5))
    refused = estate.says("tables", "drop", "db.t", "--purge", "--at-version", "0", "--yes")
    assert refused.code == 5 and "Another table lies inside db.t: exports" in refused.err
    dry = estate.says("tables", "drop", "db.t", "--purge", "--dry-run", "-o", "json")
    assert dry.code == refused.code, "it offers no command that will be refused"
    assert f"Error: {json.loads(dry.err)['error']}" in refused.err
    assert dry.json["inner_tables"] == ["exports"]
    assert estate.is_state("db.t", TableState.ACTIVE)


def test_a_table_that_waits_to_be_purged_can_be_held_and_paused(estate: Estate, tmp_path: Path) -> None:
    folder = table(estate, tmp_path / "lake" / "t", "db.t")
    estate.must("tables", "drop", "db.t", "--purge", "--at-version", "0", "--yes")
    run_id = estate.queue("db.t", estate.purge("db.t"))
    estate.must("tables", "hold", "db.t", "--reason", "case 4711")
    assert "came under legal hold" in (estate.result(run_id).message or "")
    estate.must("pause", "db.t")
    assert (estate.row("db.t").hold, estate.row("db.t").paused) == ("case 4711", "paused by hand")
    estate.queue("db.t", estate.purge("db.t"))
    done = estate.work()
    assert done is not None and done.result.error_class == "RevokedError"
    assert rows(folder) == list(range(10))


def test_a_conversion_refuses_files_behind_a_link(estate: Estate, tmp_path: Path) -> None:
    other = table(estate, tmp_path / "lake" / "other", "db.other")
    raw = tmp_path / "lake" / "raw"
    raw.mkdir()
    (raw / "p=1").symlink_to(other)
    refused = estate.says("tables", "convert", str(raw), "--partitioned-by", "p INT", "--dry-run")
    assert refused.code == 5, refused


@pytest.mark.parametrize("more", [(), ("--purge", "--at-version", "0")], ids=["drop", "purge"])
def test_a_dry_run_says_of_system_tables_and_held_ones_what_the_command_would_say(
    estate: Estate, tmp_path: Path, more: tuple[str, ...]
) -> None:
    def said(name: str, *last: str) -> tuple[int, str]:
        done = estate.says("tables", "drop", name, *more, *last)
        return done.code, done.err

    refused = said("lakewarden.tables", "--dry-run")
    assert refused == said("lakewarden.tables", "--yes")
    assert refused[0] == 5 and "lakewarden.tables is a system table." in refused[1]
    if more:
        table(estate, tmp_path / "lake" / "t", "db.t")
        estate.must("tables", "hold", "db.t", "--reason", "case 4711")
        held = said("db.t", "--dry-run")
        assert held == said("db.t", "--yes")
        assert held[0] == 4 and "under legal hold" in held[1]


@pytest.mark.parametrize("copied", [False, True], ids=["another table", "a copy"])
def test_a_place_that_leads_to_another_table_by_now_is_nobodys_to_delete(
    estate: Estate, tmp_path: Path, copied: bool
) -> None:
    """The other table is under a legal hold; the row of the first one knows nothing of it."""
    first, other = table(estate, tmp_path / "lake" / "first", "db.first"), tmp_path / "lake" / "other"
    if copied:
        shutil.copytree(first, other, copy_function=shutil.copy2)
        estate.must("tables", "register", str(other), "--name", "db.other", "--copy")
    else:
        table(estate, other, "db.other")
    estate.must("tables", "hold", "db.other", "--reason", "case 4711")
    estate.queue("db.first", estate.vacuum("db.first"))
    shutil.rmtree(first)
    first.symlink_to(other)
    before = sorted(other.rglob("*"))
    drop = ("tables", "drop", "db.first", "--purge")
    for more in (("--dry-run",), ("--at-version", "0", "--yes")):
        refused = estate.says(*drop, *more)
        assert refused.code == 4 and "leads to the folder of db.other by now" in refused.err, refused
    done = estate.work()
    assert done is not None and done.result.error_class == "RevokedError", done
    assert "is at the folder of db.other by now" in (done.result.message or "")
    assert sorted(other.rglob("*")) == before


def test_a_purge_that_waits_deletes_nothing_where_its_place_leads_to_another_table_meanwhile(
    estate: Estate, tmp_path: Path
) -> None:
    first, other = table(estate, tmp_path / "lake" / "first", "db.first"), tmp_path / "lake" / "other"
    shutil.copytree(first, other, copy_function=shutil.copy2)
    estate.must("tables", "register", str(other), "--name", "db.other", "--copy")
    estate.must("tables", "drop", "db.first", "--purge", "--at-version", "0", "--yes")
    estate.queue("db.first", estate.purge("db.first"))
    shutil.rmtree(first)
    first.symlink_to(other)
    done = estate.work()
    assert done is not None and done.result.error_class == "RevokedError", done
    assert rows(other) == list(range(10))


def test_a_purge_is_for_the_table_that_was_last_seen_there(estate: Estate, tmp_path: Path) -> None:
    first, stranger = table(estate, tmp_path / "lake" / "first", "db.first"), tmp_path / "lake" / "stranger"
    write_deltalake(str(stranger), numbers(5))
    shutil.rmtree(first)
    first.symlink_to(stranger)
    refused = estate.says("tables", "drop", "db.first", "--purge", "--at-version", "0", "--yes")
    assert refused.code == 4 and "Another table is at the place of db.first" in refused.err, refused
    assert rows(stranger) == list(range(5, 15))


def test_a_folder_that_was_moved_behind_a_link_is_still_the_tables_own(
    estate: Estate, tmp_path: Path
) -> None:
    first, disk = table(estate, tmp_path / "lake" / "first", "db.first"), tmp_path / "disk" / "first"
    disk.parent.mkdir()
    first.rename(disk)
    first.symlink_to(disk)
    estate.must("tables", "drop", "db.first", "--purge", "--dry-run")


def test_a_table_under_a_hold_does_not_become_a_copy_by_being_moved(estate: Estate, tmp_path: Path) -> None:
    first, moved = table(estate, tmp_path / "lake" / "first", "db.first"), tmp_path / "lake" / "moved"
    estate.must("tables", "hold", "db.first", "--reason", "case 4711")
    first.rename(moved)
    refused = estate.says("tables", "register", str(moved), "--copy")
    assert refused.code == 5 and "it is that table, and no copy" in refused.err, refused
    estate.must("tables", "register", str(moved))
    assert (estate.row("db.first").hold, estate.row("db.first").location) == ("case 4711", moved.as_uri())
    copy = tmp_path / "lake" / "copy"
    shutil.copytree(moved, copy)
    estate.must("tables", "register", str(copy), "--name", "db.copy", "--copy")
