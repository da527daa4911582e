"""What a streaming query has written is not converted: only its own notes tell which files are rows."""

import os
from pathlib import Path

import pytest

from lakewarden.catalog import failpoints
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError, RefusedError
from lakewarden.catalog.formats.iceberg.observation import ICEBERG
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.executors.convert import convert
from lakewarden.jobs.executors.convert_checks import check_source
from support.builders.runs import Bench, parquet_file

LONG_AGO = 1_600_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Parquet file of a partition that a query has committed, and one of an attempt that failed."""
    for name in ("committed", "failed"):
        parquet_file(tmp_path / "raw" / "p=1" / f"{name}.parquet")
    return tmp_path / "raw"


def noted(folder: Path, name: str) -> Path:
    note = folder / name
    note.parent.mkdir(parents=True)
    note.write_text("v1")
    os.utime(note, (LONG_AGO, LONG_AGO))
    return note


def action(folder: Path) -> Convert:
    return Convert(name=None, location=canonical(str(folder)), partitioned_by=(("p", "INT"),))


def checked(folder: Path, format_: TableFormat) -> int:
    found = check_source(
        action(folder), format_=format_, metastore=None, storage=StorageOptions(), now=SystemClock().now()
    )
    return len(found)


@pytest.mark.parametrize("format_", [DELTA, ICEBERG])
@pytest.mark.parametrize("where", ["", "p=1"], ids=["at the root", "in a partition"])
def test_a_folder_that_a_query_has_written_to_is_refused_with_the_way_out(
    folder: Path, where: str, format_: TableFormat
) -> None:
    noted(folder / where, "_spark_metadata/0")
    with pytest.raises(RefusedError, match=f"streaming queries write to {where or '.'}, and") as refused:
        checked(folder, format_)
    place = canonical(str(folder / where))
    assert f"USING {format_} AS SELECT * FROM parquet.`{place}`" in refused.value.hint


def test_a_query_that_begins_after_the_checks_stops_the_conversion(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listener(reached: str) -> None:
        if reached == "convert.checked":
            noted(folder, "_spark_metadata/0")

    monkeypatch.setattr(failpoints, "listener", listener)
    with pytest.raises(RefusedError, match="streaming queries"):
        convert(Bench().context(action(folder).location), action(folder))
    assert not (folder / "_delta_log").exists()


@pytest.mark.parametrize("format_", [DELTA, ICEBERG])
@pytest.mark.parametrize("name", ["__magic/job-1/tasks/1/a.pending", "__magic_job-1/tasks/1/a.pending"])
def test_uploads_that_wait_for_their_commit_are_waited_for(
    folder: Path, name: str, format_: TableFormat
) -> None:
    waits = noted(folder, name)
    assert checked(folder, format_) == 2, "a job that crashed long ago"
    os.utime(waits)
    with pytest.raises(ConflictError, match=name.partition("/")[0]):
        checked(folder, format_)
