"""A folder that holds a table of its own is never converted: its replaced and deleted rows would come back."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.metastore.port import Entry, EntryColumn
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.executors.convert import convert
from lakewarden.jobs.executors.convert_owners import refuse_owned
from lakewarden.jobs.runs.port import Report
from support.builders.runs import Bench, parquet_file
from support.fakes.metastore import FakeMetastore


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two plain Parquet files of ten rows each, in a folder."""
    place = tmp_path / "raw"
    for number in range(2):
        parquet_file(place / f"{number}.parquet")
    return place


def delta_inside(place: Path) -> None:
    """A Delta table of twenty rows, ten of which were deleted: their file is still there."""
    for number in range(2):
        rows = pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int64())})
        write_deltalake(str(place), rows, mode="append")
    DeltaTable(str(place)).delete("id < 10")


@pytest.mark.parametrize("where", ["inner", "deep/down/inner", "_old/inner", ".trash/inner"])
def test_a_folder_with_a_delta_table_in_it_is_refused_with_the_place(
    bench: Bench, folder: Path, where: str
) -> None:
    delta_inside(folder / where)
    with pytest.raises(RefusedError, match=f"has 1 other table in its folder: {where}.") as refused:
        convert_folder(bench, folder)
    assert "Move such a table out" in refused.value.hint
    assert not (folder / "_delta_log").exists()


@pytest.mark.parametrize(
    "mark", [".hoodie/hoodie.properties", "metadata/v2.metadata.json", "metadata/version-hint.text"]
)
def test_tables_of_other_formats_inside_are_refused_too(bench: Bench, folder: Path, mark: str) -> None:
    parquet_file(folder / "inner" / "data" / "a.parquet")
    written(folder / "inner" / mark)
    with pytest.raises(RefusedError, match="other table in its folder: inner"):
        convert_folder(bench, folder)


@pytest.mark.parametrize(
    ("mark", "sentence"),
    [
        (".hoodie/hoodie.properties", "the metadata of a Hudi table"),
        ("metadata/v2.metadata.json", "of an Iceberg table"),
    ],
)
def test_a_folder_that_is_itself_a_table_of_another_format_is_refused(
    bench: Bench, folder: Path, mark: str, sentence: str
) -> None:
    written(folder / mark)
    with pytest.raises(RefusedError, match=sentence):
        convert_folder(bench, folder)


def test_by_name_a_partition_that_is_a_table_is_refused(bench: Bench, folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "named"
    delta_inside(place / "p=1")
    columns = tuple(EntryColumn(name=name, type=type_) for name, type_ in (("id", "bigint"), ("p", "int")))
    entry = Entry(
        database="db", table="t", location=f"file:{place}", provider="parquet", table_type="MANAGED_TABLE",
        columns=columns[:1], partition_columns=columns[1:],
    )  # fmt: skip
    bench.metastore.create_database("db")
    bench.metastore.create(entry)
    bench.metastore.add_partition("db", "t", "p=1", f"file:{place}/p=1")
    with pytest.raises(RefusedError, match=r"db.t has 1 other table in its folder: p=1."):
        convert_folder(bench, place, name="db.t")


@pytest.mark.parametrize("where", ["hdfs://nn/w/t", "hdfs://nn/w/t/p=1", "hdfs://lake/w"])
def test_an_entry_that_has_the_same_files_is_seen_whatever_it_calls_the_storage(where: str) -> None:
    metastore = FakeMetastore()
    metastore.create_database("db")
    entry = Entry(
        database="db", table="other", location=where, provider="parquet", table_type="EXTERNAL_TABLE",
    )  # fmt: skip
    metastore.create(entry)
    with pytest.raises(RefusedError, match=r"db\.other has its files at"):
        refuse_owned(Convert(name="db.t", location="hdfs://nn:8020/w/t"), metastore)
    refuse_owned(Convert(name="db.t", location="hdfs://nn:8020/w/u/t"), FakeMetastore())


def test_partition_folders_called_metadata_are_no_table(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "by_metadata"
    parquet_file(folder / "metadata=v1.metadata.json" / "a.parquet")
    report = convert_folder(bench, folder, partitioned_by=(("metadata", "string"),))
    assert report.files == 1


def convert_folder(
    bench: Bench, folder: Path, *, name: str | None = None, partitioned_by: tuple[tuple[str, str], ...] = ()
) -> Report:
    location = canonical(str(folder))
    action = Convert(name=name, location=location, partitioned_by=partitioned_by)
    return convert(bench.context(location), action)


def written(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("1")
