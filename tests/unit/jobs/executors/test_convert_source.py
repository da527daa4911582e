"""What is converted is what lay there when somebody decided on it, file by file; anything else is refused and said."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lakewarden.catalog.errors import RevokedError
from lakewarden.catalog.model.pending_conversion import Conversion, SourceFiles
from lakewarden.catalog.storage.file_store import canonical, open_store
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.executors.convert import convert
from lakewarden.jobs.runs.parquet_folder import data_files, source_of
from lakewarden.jobs.runs.port import Report
from support.builders.runs import Bench, parquet_file

ASKED = "is not what it was when its conversion was asked for: "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two plain Parquet files, an hour old."""
    place = tmp_path / "raw"
    for number in range(2):
        parquet_file(place / f"{number}.parquet")
        os.utime(place / f"{number}.parquet", (1_700_000_000, 1_700_000_000))
    return place


def seen(folder: Path) -> SourceFiles:
    return source_of(data_files(open_store(canonical(str(folder))).list("", recursive=True)))


def converted(folder: Path, source: SourceFiles | None) -> Report:
    bench, location = Bench(), canonical(str(folder))
    return convert(bench.context(location), Convert(name=None, location=location, source=source))


def added(folder: Path) -> None:
    parquet_file(folder / "late.parquet")


def taken_away(folder: Path) -> None:
    (folder / "1.parquet").unlink()


def written_anew(folder: Path) -> None:
    """The same rows in a file of the same size, at another time."""
    parquet_file(folder / "1.parquet")


def replaced(folder: Path) -> None:
    """Another folder at its place, with files of the same names, sizes and times but for one."""
    shutil.rmtree(folder)
    for name in ("0", "2"):
        parquet_file(folder / f"{name}.parquet")
        os.utime(folder / f"{name}.parquet", (1_700_000_000, 1_700_000_000))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(added,
            r"it held 2 files \(.*\) then and holds 3 files \(.*\) now; written since: late.parquet",
            id="added"),
        pytest.param(taken_away, r"it held 2 files \(.*\) then and holds 1 file \(.*\) now\.$",
            id="taken away"),
        pytest.param(written_anew,
            r"its 2 files \(.*\) are not the ones that it held then; written since: 1.parquet",
            id="written anew"),
        pytest.param(replaced, r"its 2 files \(.*\) are not the ones that it held then\.$", id="replaced"),
    ],
)  # fmt: skip
def test_a_folder_that_is_another_one_by_now_is_not_converted(
    folder: Path, change: Callable[[Path], None], sentence: str
) -> None:
    source = seen(folder)
    change(folder)
    with pytest.raises(RevokedError, match=ASKED + sentence) as refused:
        converted(folder, source)
    assert "ask for the conversion again" in refused.value.hint
    assert not (folder / "_delta_log").exists()


def test_what_is_no_data_does_not_matter(folder: Path) -> None:
    source = seen(folder)
    for name in ("_SUCCESS", "_temporary", ".notes"):
        (folder / name).write_text("")
    assert converted(folder, source).files == 2


def test_a_row_of_an_older_lakewarden_says_nothing_of_its_files(folder: Path) -> None:
    added(folder)
    assert converted(folder, None).files == 3


def test_an_interrupted_conversion_goes_on_whatever_came_since(folder: Path) -> None:
    source = seen(folder)
    converted(folder, source)
    added(folder)
    assert converted(folder, source).files == 2


@pytest.mark.parametrize("text", ["", "1 2 3", "one 2 3 digest", "-1 2 3 digest", "1 2 3 digest more"])
def test_a_row_that_says_nothing_sensible_pins_nothing(text: str) -> None:
    assert SourceFiles.of_text(text) is None


def test_a_row_keeps_what_was_seen(folder: Path) -> None:
    source = seen(folder)
    kept = Conversion(location="file:///raw", source=source).as_properties()
    assert SourceFiles.of_text(kept["convert.source"]) == source
    assert Conversion.without(kept) == {}
