"""Files that somebody else reads by a name of the metastore's own are not converted, to whichever format."""

from pathlib import Path

import pytest

from lakewarden.catalog import failpoints
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import MetastoreAwayError, RefusedError
from lakewarden.catalog.formats.iceberg.observation import ICEBERG
from lakewarden.catalog.metastore.port import OUR_ENTRIES, Entry
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.executors.convert import convert
from lakewarden.jobs.executors.convert_checks import check_source
from support.builders.runs import Bench, parquet_file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One plain Parquet file in `lake/raw`, which nobody has in the metastore."""
    parquet_file(tmp_path / "lake" / "raw" / "a.parquet")
    return tmp_path / "lake" / "raw"


@pytest.fixture
def bench() -> Bench:
    found = Bench()
    found.metastore.create_database("db")
    return found


def entered(bench: Bench, table: str, folder: Path) -> str:
    bench.metastore.create(
        Entry(
            database="db", table=table, location=f"file:{folder}", provider="parquet", table_type="EXTERNAL_TABLE"
        )
    )  # fmt: skip
    return f"db.{table}"


def action(folder: Path, name: str | None = None) -> Convert:
    return Convert(name=name, location=canonical(str(folder)))


def checked(bench: Bench, asked: Convert, format_: TableFormat) -> int:
    found = check_source(
        asked,
        format_=format_,
        metastore=bench.metastore,
        storage=StorageOptions(),
        now=SystemClock().now(),
    )
    return len(found)


FORMATS = pytest.mark.parametrize("format_", [DELTA, ICEBERG])


@FORMATS
def test_by_its_path_a_table_of_the_metastore_is_refused_with_its_name(
    bench: Bench, folder: Path, format_: TableFormat
) -> None:
    entered(bench, "raw", folder)
    with pytest.raises(RefusedError, match=r"cannot be converted by its path: .* it is db\.raw") as refused:
        checked(bench, action(folder), format_)
    assert "Convert db.raw by its name" in refused.value.hint
    assert checked(bench, action(folder, "db.raw"), format_) == 1


@FORMATS
@pytest.mark.parametrize("where", [".", "inner", ".."], ids=["the same", "in it", "around it"])
@pytest.mark.parametrize("name", ["db.raw", None], ids=["by name", "by path"])
def test_files_of_another_entry_are_refused(
    bench: Bench, folder: Path, where: str, name: str | None, format_: TableFormat
) -> None:
    if name is not None:
        entered(bench, "raw", folder)
    entered(bench, "another", (folder / where).resolve())
    with pytest.raises(RefusedError, match=r"db\.another"):
        checked(bench, action(folder, name), format_)


@FORMATS
def test_entries_beside_it_and_those_of_a_conversion_do_not_matter(
    bench: Bench, folder: Path, format_: TableFormat
) -> None:
    entered(bench, "beside", folder.with_name("raw2"))
    entered(bench, f"{OUR_ENTRIES}converting_raw_0123456789ab", folder)
    assert checked(bench, action(folder), format_) == 1


def test_a_metastore_that_does_not_answer_is_no_leave_to_convert(bench: Bench, folder: Path) -> None:
    bench.metastore.down = True
    with pytest.raises(MetastoreAwayError):
        checked(bench, action(folder), DELTA)


def test_an_entry_that_comes_after_the_checks_stops_the_conversion(
    bench: Bench, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listener(reached: str) -> None:
        if reached == "convert.checked":
            entered(bench, "late", folder)

    monkeypatch.setattr(failpoints, "listener", listener)
    asked = action(folder)
    with pytest.raises(RefusedError, match=r"db\.late"):
        convert(bench.context(asked.location), asked)
    assert not (folder / "_delta_log").exists()
