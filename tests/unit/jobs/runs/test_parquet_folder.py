"""What a listing of a Parquet folder says."""

from datetime import UTC, datetime

import pytest

from lakewarden.catalog.storage.file_store import FileEntry
from lakewarden.jobs.runs.parquet_folder import (
    data_files,
    misnamed,
    partition_columns,
    registered_folders,
    sinks_of,
    writers_at_work,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)


def entries(*paths: str) -> list[FileEntry]:
    return [FileEntry(path=path, size_bytes=1, modified_at=AT, is_dir=path.endswith("/")) for path in paths]


def test_hidden_files_and_folders_are_no_data_but_partition_folders_are() -> None:
    listed = entries(
        "a.parquet", "000000_0", "_SUCCESS", ".a.parquet.crc", "_temporary/0/b.parquet", "_delta_log/0.json",
        "_year=2013/c.parquet", "year=2013/", "year=2013/d.parquet", "year=2013/_e.parquet",
    )  # fmt: skip
    assert [file.path for file in data_files(listed)] == [
        "a.parquet",
        "000000_0",
        "_year=2013/c.parquet",
        "year=2013/d.parquet",
    ]


@pytest.mark.parametrize(
    ("folders", "columns"),
    [
        (["year=2013/month=1", "year=2014/month=2"], ("year", "month")),
        (["day=2", "Day=1"], ("Day",)),
        (["year=2013", "year=2013/month=1"], None),
        (["year=2013", "month=1"], None),
        (["year=2013", ""], None),
        (["year=2013", "old"], None),
        (["year=2013/old"], None),
        (["old", ""], None),
        (["2013/01"], None),
        (["year="], None),
        (["=2013"], None),
        ([""], ()),
        ([], ()),
    ],
    ids=[
        "alike", "but for the case", "of different depth", "by others", "and the own", "and another", "deeper",
        "another", "not named", "no value", "no column", "the own", "no files",
    ],
)  # fmt: skip
def test_folder_names_tell_the_partition_columns(folders: list[str], columns: tuple[str, ...] | None) -> None:
    assert partition_columns(folders) == columns


@pytest.mark.parametrize("table", ["file:/data/t", "file:///data/t/", "/data/t"])
def test_registered_folders_are_compared_as_they_are_spelled(table: str) -> None:
    partitions = {
        "p=a%2Fb": "file:/data/t/p=a%2Fb",
        "p=x y": "file:///data/t/p=x y/",
        "p=renamed": "file:/data/t/elsewhere",
        "p=away": "hdfs://host/data/t/p=away",
        "p=beside": "file:/data/t2/p=beside",
    }
    assert registered_folders(partitions, table) == {
        "p=a%2Fb": "p=a%2Fb",
        "p=x y": "p=x y",
        "p=renamed": "elsewhere",
        "p=away": None,
        "p=beside": None,
    }


def test_partitions_in_folders_of_other_values_are_told_from_those_in_their_own() -> None:
    folders = {
        "p=a%2Fb/q=x y": "P=a%2fb/q=x y",
        "p=__HIVE_DEFAULT_PARTITION__": "p=__HIVE_DEFAULT_PARTITION__",
        "p=%FF": "p=%FE",
        "p=1": "p=01",
        "p=2": "q=2",
        "p=3": "p=3/q=1",
        "p=4": "4",
        "p=5": None,
    }
    assert misnamed(folders) == ("p=%FF", "p=1", "p=2", "p=3", "p=4", "p=5")


def test_folders_of_committers_show_a_writer_at_work() -> None:
    listed = entries(
        "_temporary/",
        "_temporary/0/a.parquet",
        "p=1/.spark-staging-7/b.parquet",
        ".hive-staging_x/c",
        "d.parquet",
        "__magic/job-1/tasks/e.parquet.pending",
        "__magic_job-2/f.pendingset",
    )
    assert writers_at_work(listed) == (
        ".hive-staging_x", "__magic", "__magic_job-2", "_temporary", "p=1/.spark-staging-7",
    )  # fmt: skip
    assert writers_at_work(entries("_temporary/", "a.parquet")) == ()


def test_notes_of_a_streaming_query_show_where_it_writes() -> None:
    listed = entries(
        "a.parquet", "_spark_metadata/", "_spark_metadata/0", "p=1/_spark_metadata/0.compact", "p=2/b"
    )
    assert sinks_of(listed) == ("", "p=1")
    assert sinks_of(entries("_spark_metadata", "a.parquet")) == ("",)
    assert sinks_of(entries("_spark_metadata_old/0", "a.parquet", "p=_spark_metadata/b")) == ()
