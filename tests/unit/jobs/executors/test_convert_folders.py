"""By its path a folder is converted only where each file lies in a partition by the columns that were given: all others
would become rows that Spark does not read, or lose what their folders say."""

import shutil
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog import failpoints
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError, RefusedError
from lakewarden.catalog.formats.iceberg.observation import ICEBERG
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.storage.file_store import StorageOptions, canonical, open_store
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.engines.iceberg.parquet_source import source_in_folder
from lakewarden.jobs.executors.convert import convert
from lakewarden.jobs.executors.convert_checks import check_source
from support.builders.runs import Bench, parquet_file

FORMATS = pytest.mark.parametrize("format_", [DELTA, ICEBERG])
DAY = (("day", "STRING"),)


def folder_with(place: Path, *files: str) -> str:
    for file in files:
        parquet_file(place / file)
    return canonical(str(place))


def checked(location: str, format_: TableFormat, partitioned_by: tuple[tuple[str, str], ...] = ()) -> int:
    found = check_source(
        Convert(name=None, location=location, partitioned_by=partitioned_by),
        format_=format_,
        metastore=None,
        storage=StorageOptions(),
        now=SystemClock().now(),
    )
    return len(found)


@FORMATS
@pytest.mark.parametrize(
    ("files", "odd"),
    [
        (["a.parquet", "old/a.parquet"], "old"),
        (["orders/a.parquet", "items/day=1/a.parquet"], "items/day=1, orders"),
        (["day=1/a.parquet", "day=1/old/a.parquet"], "day=1/old"),
        (["day=/a.parquet"], "day="),
    ],
    ids=["an old copy", "a whole database", "below a partition", "no value"],
)
@pytest.mark.parametrize("given", [(), DAY], ids=["no columns", "by day"])
def test_files_in_folders_that_are_no_partitions_are_refused_with_these(
    tmp_path: Path, files: list[str], odd: str, given: tuple[tuple[str, str], ...], format_: TableFormat
) -> None:
    location = folder_with(tmp_path / "raw", *files)
    with pytest.raises(RefusedError) as refused:
        checked(location, format_, given)
    assert str(refused.value).endswith(
        f"folders that are no partitions, which Spark does not read with it: {odd}."
    )


@FORMATS
@pytest.mark.parametrize("given", [(), DAY], ids=["no columns", "by day"])
@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        (["day=1/a.parquet", "day=2/a.parquet", "b.parquet"], "., day=1"),
        (["day=1/a.parquet", "day=1/hour=2/a.parquet"], "day=1, day=1/hour=2"),
        (["day=1/a.parquet", "month=1/a.parquet"], "day=1, month=1"),
    ],
    ids=["one at the root", "of different depth", "by other columns"],
)
def test_folders_that_do_not_say_the_same_columns_are_refused_with_one_of_each(
    tmp_path: Path, files: list[str], kinds: str, given: tuple[tuple[str, str], ...], format_: TableFormat
) -> None:
    location = folder_with(tmp_path / "raw", *files)
    with pytest.raises(RefusedError) as refused:
        checked(location, format_, given)
    assert str(refused.value).endswith(f"do not say the same partition columns: {kinds}.")


@FORMATS
def test_names_that_differ_by_case_are_one_column_which_has_to_be_given(
    tmp_path: Path, format_: TableFormat
) -> None:
    location = folder_with(tmp_path / "raw", "Day=1/a.parquet", "day=2/a.parquet")
    with pytest.raises(RefusedError, match="their types were not given") as refused:
        checked(location, format_)
    assert "PARTITIONED BY (Day STRING)" in refused.value.hint
    assert checked(location, format_, DAY) == 2


def test_a_folder_that_comes_after_the_checks_stops_the_conversion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = folder_with(tmp_path / "raw", "a.parquet")

    def listener(reached: str) -> None:
        if reached == "convert.checked":
            parquet_file(tmp_path / "raw" / "old" / "a.parquet")

    monkeypatch.setattr(failpoints, "listener", listener)
    asked = Convert(name=None, location=location)
    with pytest.raises(RefusedError, match="no partitions"):
        convert(Bench().context(location), asked)
    assert not (tmp_path / "raw" / "_delta_log").exists()
    monkeypatch.setattr(failpoints, "listener", None)
    shutil.rmtree(tmp_path / "raw" / "old")
    assert convert(Bench().context(location), asked).files == 1


@pytest.mark.parametrize(
    ("files", "given"),
    [(["day=1/a.parquet", "b.parquet"], DAY), (["day=1/a.parquet", "DAY=2/a.parquet"], ()), (["old/a.parquet"], ())],
    ids=["one at the root", "partitions", "another folder"],
)  # fmt: skip
def test_the_import_to_iceberg_takes_no_folder_that_is_no_partition(
    tmp_path: Path, files: list[str], given: tuple[tuple[str, str], ...]
) -> None:
    """Whatever came since the checks; before Spark is asked anything."""
    location = folder_with(tmp_path / "raw", *files)
    with pytest.raises(ConflictError, match="no partitions of it by now"):
        source_in_folder(cast(SparkSession, None), open_store(location), given)
