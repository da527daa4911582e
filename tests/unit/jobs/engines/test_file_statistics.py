"""Filling per-file statistics: one commit on the decided version, no change of data, nothing that is not certain."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.transaction import AddAction

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.jobs.engines.delta.file_statistics import fill_file_statistics
from lakewarden.jobs.engines.delta.rs_metadata import RsTable
from lakewarden.jobs.runs.port import FileChange

BARE = {"delta.dataSkippingNumIndexedCols": "32"}


def bare_table(folder: Path, parts: tuple[str, ...] = ("a", "b")) -> str:
    """A partitioned table whose log says nothing about what is in its files."""
    for number, part in enumerate(parts):
        data = pa.table({"id": [number * 10, number * 10 + 9], "part": [part, part]})
        write_deltalake(folder, data, partition_by=["part"], mode="append", configuration=BARE)
    strip_statistics(folder)
    return canonical(str(folder))


def strip_statistics(folder: Path) -> None:
    for commit in sorted((folder / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            action.get("add", {}).pop("stats", None)
        commit.write_text("\n".join(map(json.dumps, actions)))


def observe(location: str) -> Observation:
    seen = DeltaReader().observe(location)
    assert isinstance(seen, Observation)
    return seen


def fill(location: str, requires: int) -> FileChange:
    return fill_file_statistics(
        RsTable(location=location, storage=StorageOptions()), requires=requires, run_id="run-1"
    )


def test_every_file_gets_statistics_in_one_commit_that_changes_no_data(tmp_path: Path) -> None:
    location = bare_table(tmp_path / "t")
    before = observe(location)
    assert (before.files_without_statistics, before.rows) == (2, None)
    assert fill(location, before.version) == FileChange(version=2, files_added=2)
    after = observe(location)
    assert (after.files_without_statistics, after.rows, after.files) == (0, 4, before.files)
    assert (after.bytes, after.partitions) == (before.bytes, before.partitions)
    (commit,) = DeltaReader().commits(location, after=1)
    assert (commit.run_id, commit.data_change, commit.removed_files) == ("run-1", False, 0)
    rows = DeltaTable(tmp_path / "t").to_pyarrow_table().sort_by("id").to_pydict()
    assert rows == {"id": [0, 9, 10, 19], "part": ["a", "a", "b", "b"]}


def test_done_again_there_is_nothing_to_do(tmp_path: Path) -> None:
    location = bare_table(tmp_path / "t")
    fill(location, 1)
    assert fill(location, 2) == FileChange(version=None)
    assert observe(location).version == 2


def test_a_commit_by_somebody_else_is_never_passed_over(tmp_path: Path) -> None:
    location = bare_table(tmp_path / "t")
    DeltaTable(tmp_path / "t").delete("part = 'a'")
    with pytest.raises(ConflictError, match="it was not committed"):
        fill(location, 1)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 2, "no dead row came back"


def test_paths_that_could_be_spelt_in_two_ways_are_left_alone(tmp_path: Path) -> None:
    location = bare_table(tmp_path / "t", ("a b", "ü", "50%", "plain"))
    assert fill(location, 3).files_added == 1
    after = observe(location)
    assert (after.files, after.files_without_statistics) == (4, 3)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 8


def test_a_file_that_cannot_be_read_is_left_to_validation(tmp_path: Path) -> None:
    location = bare_table(tmp_path / "t")
    next((tmp_path / "t" / "part=a").glob("*.parquet")).write_bytes(b"not parquet")
    assert fill(location, 1).files_added == 1
    assert observe(location).files_without_statistics == 1


def test_files_that_have_statistics_are_not_added_again(tmp_path: Path) -> None:
    location = bare_table(tmp_path / "t")
    write_deltalake(tmp_path / "t", pa.table({"id": [1], "part": ["c"]}), mode="append")
    assert fill(location, 2).files_added == 2


def test_a_table_with_a_feature_that_delta_rs_does_not_know_is_left_alone(tmp_path: Path) -> None:
    location = bare_table(tmp_path / "t")
    first = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {
                "minReaderVersion": 1,
                "minWriterVersion": 7,
                "writerFeatures": ["rowTracking", "domainMetadata"],
            }
    first.write_text("\n".join(map(json.dumps, actions)))
    assert fill(location, 1) == FileChange(version=None)


def test_a_file_outside_the_tables_folder_is_left_alone(tmp_path: Path) -> None:
    location = bare_table(tmp_path / "t")
    table = DeltaTable(tmp_path / "t")
    stranger = AddAction("file:///elsewhere/f.parquet", 10, {"part": "z"}, 0, True, "")
    table.create_write_transaction(
        [stranger],
        mode="append",
        schema=table.schema(),
        partition_by=["part"],
        commit_properties=CommitProperties(max_commit_retries=0),
    )
    strip_statistics(tmp_path / "t")
    assert fill(location, 2).files_added == 2
