"""Files in a table's folder, or behind links, that belong to another table or that a live version names: they stay."""

import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.model.rows import Outcome
from support.builders.estate import Estate, numbers, rows
from support.builders.runs import parquet_file
from support.processes.commands import Cli


def managed(estate: Estate, place: Path) -> Path:
    estate.must("tables", "register", str(place), "--name", "db.t")
    estate.must("tables", "policy", "set", "db.t", "mode=manage")
    return place


def aged(place: Path) -> None:
    """As if all of it had been written last year."""
    for path in place.rglob("*.parquet"):
        os.utime(path, (time.time() - 365 * 86_400,) * 2)


def vacuumed(estate: Estate) -> str:
    """The whole folder listed for garbage, as `vacuum --full` does it."""
    estate.queue("db.t", estate.vacuum("db.t", full=True))
    done = estate.work()
    assert done is not None and done.result.outcome is Outcome.SUCCEEDED, done
    return done.result.message or ""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table of one file, and beside it a file that no log names."""
    made = tmp_path / "lake" / "t"
    write_deltalake(str(made), numbers(0))
    parquet_file(made / "left-over.parquet")
    return made


def test_a_full_vacuum_stays_out_of_a_table_inside_the_folder(estate: Estate, place: Path) -> None:
    write_deltalake(str(place / "exports" / "mine"), numbers(70))
    aged(place)
    managed(estate, place)
    said = vacuumed(estate)
    assert rows(place / "exports" / "mine") == list(range(70, 80))
    assert "deleted 1 file" in said and not (place / "left-over.parquet").exists()
    assert "stayed out of 1 table inside its folder: exports/mine" in said
    assert rows(place) == list(range(10))


def test_a_full_vacuum_keeps_a_live_file_that_the_log_names_through_a_link(
    estate: Estate, place: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(place)
    extra = place / "extra.parquet"
    parquet_file(extra)
    add = (
        f'{{"add":{{"path":"{tmp_path}/link/extra.parquet","partitionValues":{{}},'
        f'"size":{extra.stat().st_size},'
        '"modificationTime":1,"dataChange":true}}'
    )
    (place / "_delta_log" / f"{1:020d}.json").write_text(add + "\n")
    aged(place)
    managed(estate, place)
    said = vacuumed(estate)
    assert extra.exists(), said
    assert "deleted 1 file" in said and not (place / "left-over.parquet").exists()


def test_a_conversion_absorbs_no_table_and_brings_no_deleted_rows_back(cli: Cli, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for number in range(2):
        parquet_file(raw / f"{number}.parquet")
    inner = raw / "inner"
    write_deltalake(str(inner), numbers(0))
    write_deltalake(str(inner), numbers(10), mode="append")
    DeltaTable(str(inner)).delete("id < 10")
    said = cli("tables", "convert", str(raw))
    assert not (raw / "_delta_log").exists(), f"{len(rows(raw))} rows instead of 20"
    assert said.code == 5 and "has 1 other table in its folder: inner" in said.err, said
    assert rows(inner) == list(range(10, 20))
