"""Rollbacks along lineage that leads through a table which was dropped, or made anew, on real Delta tables."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from support.builders.derived import ids, write
from support.processes.commands import Cli, Said, registered


def planned(cli: Cli, to: int) -> Any:
    said = cli("rollback", "plan", "db.first", "--to-version", str(to), "--cascade", "-o", "json")
    assert said.code == 0, said
    return said.json


def applied(cli: Cli, plan: Any) -> Said:
    return cli("rollback", "apply", plan["hash"], "-o", "json")


@pytest.mark.parametrize("purged", [False, True])
def test_what_was_made_from_a_table_dropped_before_any_sweep_goes_back_too(
    tmp_path: Path, cli: Cli, purged: bool
) -> None:
    first, middle, last = (tmp_path / "lake" / name for name in ("first", "middle", "last"))
    write(first, 1)
    reads_first = {registered(cli, first): first}
    write(middle, 1, reads=reads_first)
    reads_middle = {registered(cli, middle): middle}
    write(last, 1, reads=reads_middle)
    registered(cli, last)
    write(first, 99)
    write(middle, 99, reads=reads_first)
    write(last, 99, reads=reads_middle)
    how = ("--purge", "--at-version", "1") if purged else ()
    dropped = cli("tables", "drop", "db.middle", "-y", *how)
    assert dropped.code == 0, dropped
    if purged:
        shutil.rmtree(middle)  # as after the grace period: no log tells any more
    done = applied(cli, planned(cli, to=0))
    assert done.code == 0, done
    assert (ids(first), ids(last)) == ([1], [1])


def test_a_plan_for_a_table_made_anew_is_another_plan(tmp_path: Path, cli: Cli) -> None:
    first = tmp_path / "lake" / "first"
    for number in (1, 2, 3):
        write(first, number)
    registered(cli, first)
    before = planned(cli, to=1)
    assert applied(cli, before).code == 0
    assert ids(first) == [1, 2]
    shutil.rmtree(first)
    for number in (7, 8, 9):
        write(first, number)
    anew = planned(cli, to=1)
    assert anew["hash"] != before["hash"]
    done = applied(cli, anew)
    assert done.code == 0, done
    assert ids(first) == [7, 8]


def test_a_plan_speaks_of_a_commit_not_of_its_number(tmp_path: Path, cli: Cli) -> None:
    """The log is put back from a backup and written to: the same UUID, the same number, another commit."""
    first, backup = tmp_path / "lake" / "first", tmp_path / "backup"
    write(first, 1)
    registered(cli, first)
    shutil.copytree(first, backup, copy_function=shutil.copy2)
    write(first, 99)
    plan = planned(cli, to=0)
    shutil.rmtree(first)
    backup.rename(first)
    write(first, 7)
    refused = applied(cli, plan)
    assert refused.code == 4 and "stale" in refused.err, refused
    assert ids(first) == [1, 7]
    assert planned(cli, to=0)["hash"] != plan["hash"]


@pytest.mark.parametrize("damage", ["truncated", "folder"])
def test_no_table_goes_back_to_a_version_with_damaged_files(tmp_path: Path, cli: Cli, damage: str) -> None:
    first = tmp_path / "lake" / "first"
    write(first, 1)
    registered(cli, first)
    (old,) = first.glob("*.parquet")
    DeltaTable(str(first)).delete()
    write(first, 2)
    whole = old.read_bytes()
    old.unlink()
    if damage == "folder":
        old.mkdir()
    else:
        old.write_bytes(whole[: len(whole) // 2])
    said = cli("rollback", "plan", "db.first", "--to-version", "0", "-o", "json")
    assert said.code == 4 and "gone or damaged" in said.json["why_not"][0], said
    assert ids(first) == [2]


def test_a_place_that_leads_to_a_held_table_by_now_is_not_rewound(tmp_path: Path, cli: Cli) -> None:
    first, held = tmp_path / "lake" / "first", tmp_path / "lake" / "held"
    for place in (first, held):
        write(place, 1)
        write(place, 2)
        registered(cli, place)
    assert cli("tables", "hold", "db.held", "--reason", "case 4711").code == 0
    shutil.rmtree(first)
    first.symlink_to(held)
    said = cli("rollback", "plan", "db.first", "--to-version", "0", "-o", "json")
    done = applied(cli, said.json) if said.code == 0 else said
    assert done.code != 0, done
    assert ids(held) == [1, 2]
