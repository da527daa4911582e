"""Lineage that went back in time: until the logs of all tables have been read for it again, nothing is deleted by what
derived tables need."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from lakewarden.catalog.model.rows import Outcome, TableState
from lakewarden.catalog.model.unread_lineage import LINEAGE_UNREAD
from lakewarden.catalog.system.port import LINEAGE
from support.builders.estate import Estate, numbers, overwritten

ONCE = ("daemon", "--once", "--set", "http.port=0")


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.parquet")}


def derive(estate: Estate, folder: Path, source: Path) -> None:
    """A table made from the head of `db.t`, as governed writes record it."""
    row, log = estate.row("db.t"), DeltaTable(str(source))
    read = {"table_id": row.table_id, "location": row.location, "format": "delta", "version": log.version()}
    told = {
        "v": 1,
        "run_id": "r",
        "operation": "append",
        "user": "ana",
        "inputs": [read],
        "reads_self": False,
    }
    write_deltalake(
        str(folder),
        pa.table({"id": pa.array([1], pa.int64())}),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"lakewarden.lineage": json.dumps(told)}),
    )


@pytest.fixture
def source(estate: Estate, tmp_path: Path) -> Path:
    """`db.t` has files that a vacuum would delete but for `db.derived`, which the backup does not know as derived."""
    place, derived = tmp_path / "lake" / "t", tmp_path / "lake" / "derived"
    overwritten(place)
    estate.must("tables", "register", str(place), "--name", "db.t")
    estate.must("tables", "policy", "set", "db.t", "mode=manage")
    write_deltalake(str(derived), numbers(0))
    estate.must("tables", "register", str(derived), "--name", "db.derived")
    estate.must("tables", "policy", "set", "db.derived", "rollback.promise=300 days")
    estate.must(*ONCE)
    estate.must("system", "backup", str(tmp_path / "backup"))
    derive(estate, derived, place)
    estate.must(*ONCE)
    return place


def vacuumed(estate: Estate) -> str:
    estate.queue("db.t", estate.vacuum("db.t"))
    done = estate.work()
    assert done is not None
    return f"{done.result.outcome}: {done.result.message}"


def read_by_derived(estate: Estate) -> list[str]:
    derived = estate.row("db.derived").table_id
    rows = estate.services.store.rows(LINEAGE).find(output_id=derived)
    return [one.input_id for one in rows if one.input_id not in (None, "?")]


@pytest.mark.parametrize("lost", ["a table", pytest.param("everything", marks=pytest.mark.long)])
def test_a_promise_counts_while_nobody_knows_whose_it_is(
    estate: Estate, source: Path, tmp_path: Path, lost: str
) -> None:
    before = files(source)
    assert "has to keep more by now" in vacuumed(estate)
    if lost == "a table":
        shutil.rmtree(estate.home / "system" / "lineage" / "_delta_log")
    else:
        shutil.rmtree(estate.home / "system")
    estate.must("system", "repair", "--backup", str(tmp_path / "backup"), "--yes", "--accept-loss")
    assert read_by_derived(estate) == []
    if lost == "everything":
        estate.must("resume")
    said = vacuumed(estate)
    assert files(source) == before
    assert "what db.derived was made from has not been read since lineage was repaired" in said, said
    # One whose log cannot be read keeps it so; it is looked at all the same.
    away = tmp_path / "lake" / "derived" / "_delta_log"
    away.rename(tmp_path / "lake" / "aside")
    estate.must(*ONCE)
    assert "has not been read since" in vacuumed(estate)
    assert "not known yet whether db.derived" in estate.must("why", "db.t").out
    (tmp_path / "lake" / "aside").rename(away)
    estate.must(*ONCE)
    assert read_by_derived(estate) == [estate.row("db.t").table_id]
    assert "has to keep more by now" in vacuumed(estate)
    assert files(source) == before
    assert "lineage.unread" not in str(estate.row("db.derived").properties)


@pytest.mark.long
def test_who_leaves_makes_nobody_wait(estate: Estate, source: Path, tmp_path: Path) -> None:
    shutil.rmtree(estate.home / "system" / "lineage" / "_delta_log")
    estate.must("system", "repair", "--backup", str(tmp_path / "backup"), "--yes", "--accept-loss")
    estate.must("tables", "drop", "db.derived", "--yes")
    assert vacuumed(estate).startswith(Outcome.SUCCEEDED)
    assert len(files(source)) == 1


def amid_others(estate: Estate, tmp_path: Path) -> Path:
    """`db.derived` gets rows of its own since; the file of `lakewarden.lineage` that says what it was made from."""
    write_deltalake(str(tmp_path / "lake" / "derived"), numbers(5), mode="append")
    estate.must(*ONCE)
    edge = [("input_id", "=", estate.row("db.t").table_id)]
    lineage = estate.home / "system" / "lineage"
    (lost,) = [one for one in lineage.rglob("*.parquet") if pq.read_table(one, filters=edge).num_rows]
    assert len(list(lineage.rglob("*.parquet"))) > 1
    return lost


def lose(estate: Estate, lost: Path) -> None:
    lost.unlink()
    estate.must("system", "repair", "--yes", "--accept-loss")
    assert read_by_derived(estate) == []
    assert LINEAGE_UNREAD in estate.row("db.derived").properties


def require_read_again(estate: Estate) -> None:
    assert read_by_derived(estate) == [estate.row("db.t").table_id]
    assert LINEAGE_UNREAD not in estate.row("db.derived").properties


@pytest.mark.long
def test_rows_that_were_lost_amid_others_are_read_again(estate: Estate, source: Path, tmp_path: Path) -> None:
    lose(estate, amid_others(estate, tmp_path))
    assert "has not been read since lineage was repaired" in vacuumed(estate)
    estate.must(*ONCE)
    require_read_again(estate)
    assert "has to keep more by now" in vacuumed(estate)


def test_who_leaves_is_read_again_first(estate: Estate, source: Path, tmp_path: Path) -> None:
    lose(estate, amid_others(estate, tmp_path))
    estate.must("tables", "drop", "db.derived", "--yes")
    require_read_again(estate)


@pytest.mark.long
def test_who_leaves_and_cannot_be_read_is_told_of(estate: Estate, source: Path, tmp_path: Path) -> None:
    lose(estate, amid_others(estate, tmp_path))
    (tmp_path / "lake" / "derived").rename(tmp_path / "aside")
    said = estate.must("tables", "drop", "db.derived", "--yes").err
    assert "its last lineage is not known" in said, said
    (tmp_path / "aside").rename(tmp_path / "lake" / "derived")
    estate.must(*ONCE)
    require_read_again(estate)


def test_who_waits_to_be_purged_is_read_again(estate: Estate, source: Path, tmp_path: Path) -> None:
    lost = amid_others(estate, tmp_path)
    version = DeltaTable(str(tmp_path / "lake" / "derived")).version()
    estate.must("tables", "drop", "db.derived", "--purge", "--at-version", str(version), "--yes")
    lose(estate, lost)
    assert "has not been read since lineage was repaired" in vacuumed(estate)
    estate.must(*ONCE)
    assert estate.is_state("db.derived", TableState.PURGING)
    require_read_again(estate)
    assert "has to keep more by now" in vacuumed(estate)


@pytest.mark.long
def test_without_rows_of_tables_there_is_nothing_to_read_again(estate: Estate, source: Path) -> None:
    for name in ("tables", "lineage"):
        shutil.rmtree(estate.home / "system" / name)
    estate.must("system", "repair", "--yes", "--accept-loss")
    assert "db.t" not in estate.must("tables", "list").out
