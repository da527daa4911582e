"""One file, several spellings: delta-rs writes only paths that it spells as the log does, and so do we."""

import json
from pathlib import Path
from string import ascii_letters, digits
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.storage.file_store import StorageOptions, canonical, open_store
from lakewarden.jobs.engines.delta.added_files import additions, require_live
from lakewarden.jobs.engines.delta.file_statistics import fill_file_statistics
from lakewarden.jobs.engines.delta.rs_metadata import RsTable
from lakewarden.jobs.engines.delta.rs_restore import restore
from support.builders.delta_logs import LogWriter, add, remove

BARE = ascii_letters + digits + "_.!$&'()+,;=@~-"
ESCAPED = ["20", "22", "23", "25", "2A", "3C", "3E", "3F", "5B", "5C", "5D", "5E", "60", "7B", "7C", "7D"]


def table(folder: Path, *paths: str) -> LogWriter:
    """Two versions: without files, and with these."""
    for path in paths:
        file = folder / unquote(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    made = LogWriter(root=folder).create()
    made.commit(*(add(path) for path in paths))
    return made


def rs_table(folder: Path) -> RsTable:
    return RsTable(location=canonical(str(folder)), storage=StorageOptions())


def gone_back(folder: Path) -> int | None:
    return restore(rs_table(folder), requires=1, to=0, run_id="r", apps=())


def removed(folder: Path, version: int) -> list[str]:
    lines = (folder / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return sorted(json.loads(line)["remove"]["path"] for line in lines if line.startswith('{"remove"'))


def test_paths_that_delta_rs_is_given_come_out_as_they_were(tmp_path: Path) -> None:
    paths = [f"{one}/x{one}y.parquet" for one in [*BARE, *(f"%{code}" for code in ESCAPED)] if one != "."]
    table(tmp_path, *paths)
    assert gone_back(tmp_path) == 2
    assert removed(tmp_path, 2) == sorted(paths)
    assert list(DeltaReader().files(canonical(str(tmp_path)), version=2)) == []


@pytest.mark.parametrize(
    "path",
    ["p=München/f.parquet", "p=日/f", "p=%41/f", "p=a%3ab/f", "p=a%3Ab/f", "a b", "p=%C3%BC/f", "p=a:b/f"],
)
def test_a_table_with_any_other_path_is_left_to_spark(tmp_path: Path, path: str) -> None:
    table(tmp_path, "plain.parquet", path)
    assert gone_back(tmp_path) is None
    assert not (tmp_path / "_delta_log" / f"{2:020}.json").exists()


def test_what_is_removed_under_another_spelling_stays_as_it_does_for_delta_rs(tmp_path: Path) -> None:
    made = table(tmp_path, "p=é/f", "p=%C3%A9/g")
    made.commit(remove("p=%C3%A9/f"), remove("p=%C3%A9/g"))
    location = canonical(str(tmp_path))
    assert [one.path for one in DeltaReader().files(location)] == ["p=é/f"]
    assert [one.path for one in DeltaReader().tombstones(location)] == ["p=é/g"]
    assert "p=é/f" in DeltaTable(str(tmp_path)).get_add_actions().column("path").to_pylist()
    seen = DeltaReader().observe(location)
    assert getattr(seen, "files", None) == 1


def test_files_that_head_has_under_another_spelling_are_not_taken_out(tmp_path: Path) -> None:
    made = table(tmp_path, "p=é/f", "g")
    made.commit(remove("p=é/f"), add("p=%C3%A9/f"), operation="RESTORE")
    location = canonical(str(tmp_path))
    store = open_store(location, StorageOptions())
    added = additions(store, [1])
    require_live(store, StorageOptions(), added, version=1)
    with pytest.raises(PreconditionError, match="no longer has p=é/f as it was added"):
        require_live(store, StorageOptions(), added, version=2)


@pytest.mark.parametrize(("path", "filled"), [("p=1-f", 1), ("p%3D1-f", 0), ("p=%31-f", 0)])
def test_statistics_are_given_to_no_file_under_another_spelling(
    tmp_path: Path, path: str, filled: int
) -> None:
    pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), tmp_path / unquote(path))
    made = LogWriter(root=tmp_path).create()
    made.commit(add(path, rows=None, size=(tmp_path / unquote(path)).stat().st_size))
    location = canonical(str(tmp_path))
    change = fill_file_statistics(rs_table(tmp_path), requires=1, run_id="r")
    assert change.files_added == filled
    assert len(list(DeltaReader().files(location))) == 1
