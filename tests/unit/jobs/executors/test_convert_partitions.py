"""The value of a partition is what the metastore says: where names of folders are read instead, both must agree."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.iceberg.observation import ICEBERG
from lakewarden.catalog.metastore.port import Entry, EntryColumn
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.executors.convert_checks import check_source
from support.builders.runs import parquet_file
from support.fakes.metastore import FakeMetastore

NULL = "__HIVE_DEFAULT_PARTITION__"
MOVED = {"day=2024-01-01": "day=2024-01-01_fixed"}


def checked(folder: Path, partitions: Mapping[str, str], format_: TableFormat = DELTA) -> int:
    """The check of a table with these partitions, by name their folders, each of one file."""
    columns = tuple(
        EntryColumn(name=name, type=type_) for name, type_ in (("id", "bigint"), ("day", "string"))
    )
    entry = Entry(
        database="db", table="t", location=f"file:{folder}", provider="parquet", table_type="MANAGED_TABLE",
        columns=columns[:1], partition_columns=columns[1:],
    )  # fmt: skip
    metastore = FakeMetastore()
    metastore.create_database("db")
    metastore.create(entry)
    for name, place in partitions.items():
        metastore.add_partition("db", "t", name, f"file:{folder / place}")
        parquet_file(folder / place / "a.parquet")
    found = check_source(
        Convert(name="db.t", location=canonical(str(folder))),
        format_=format_,
        metastore=metastore,
        storage=StorageOptions(),
        now=SystemClock().now(),
    )
    return len(found)


@pytest.mark.parametrize(
    ("partitions", "odd"),
    [
        ({**MOVED, f"day={NULL}": f"day={NULL}"}, "day=2024-01-01 in day=2024-01-01_fixed"),
        ({"day=1": "day=1", f"day={NULL}": "day=none"}, f"day={NULL} in day=none"),
    ],
    ids=["another", "that of NULL"],
)
def test_beside_a_null_a_partition_in_a_folder_of_another_name_is_refused(
    tmp_path: Path, partitions: Mapping[str, str], odd: str
) -> None:
    with pytest.raises(RefusedError, match=f"whose folders say others: {odd}") as refused:
        checked(tmp_path / "t", partitions)
    assert "SET LOCATION" in refused.value.hint


def test_where_the_metastore_tells_the_values_folders_may_have_any_name(tmp_path: Path) -> None:
    assert checked(tmp_path / "without", {**MOVED, "day=2": "two"}) == 2
    assert checked(tmp_path / "iceberg", {**MOVED, f"day={NULL}": "none"}, ICEBERG) == 2


def test_beside_a_null_partitions_in_folders_of_their_names_are_taken(tmp_path: Path) -> None:
    partitions = {f"day={NULL}": f"Day={NULL}", "day=a%2Fb": "Day=a%2Fb", "day=x y": "Day=x y"}
    assert checked(tmp_path / "t", partitions) == 3


@pytest.mark.parametrize("format_", [DELTA, ICEBERG])
def test_partitions_that_share_a_folder_are_refused(tmp_path: Path, format_: TableFormat) -> None:
    with pytest.raises(RefusedError, match="share a folder, .*: day=1, day=2"):
        checked(tmp_path / "t", {"day=1": "day=1", "day=2": "day=1", "day=3": "day=3"}, format_)
