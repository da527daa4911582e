"""Files as a log names them, found again in the folder."""

from pathlib import Path

import pytest

from lakewarden.catalog.storage.file_store import canonical, open_store
from lakewarden.jobs.runs.table_files import existing, relative_to


@pytest.mark.parametrize(
    ("location", "path", "expected"),
    [
        pytest.param("file:///lake/t", "p=1/f", "p=1/f", id="relative"),
        pytest.param("file:///lake/t", "p=a%3Ab/f: x", "p=a%3Ab/f: x", id="relative with a colon"),
        pytest.param("file:///lake/a%20b", "/lake/a b/p=%41/f", "p=%41/f", id="absolute, inside"),
        pytest.param("file:///lake/a%20b", "file:/lake/a b/f", "f", id="URI, inside"),
        pytest.param("file:///lake/t", "file:///lake/t2/f", None, id="URI of a neighbour"),
        pytest.param("file:///lake/t", "/lake/source/f", None, id="absolute, elsewhere"),
        pytest.param("file:///lake/t", "s3://lake/t/f", None, id="another storage"),
        pytest.param(
            "s3://bucket/t", "s3a://bucket/t/p=%41/f", "p=%41/f", id="the same under another scheme"
        ),
        pytest.param("hdfs://host:9000/t", "hdfs://host:9000/t/f", "f", id="HDFS, inside"),
        pytest.param("hdfs://host:9000/t", "hdfs://other:9000/t/f", None, id="HDFS, another host"),
        pytest.param("hdfs://host:9000/t", "/t/f", None, id="absolute, storage unknown"),
    ],
)
def test_paths_of_the_log_are_told_apart_from_foreign_ones(
    location: str, path: str, expected: str | None
) -> None:
    assert relative_to(location, path) == expected


@pytest.mark.parametrize("count", [3, 20], ids=["looked up one by one", "listed"])
def test_only_what_is_there_is_found(tmp_path: Path, count: int) -> None:
    (tmp_path / "p=ü x").mkdir()
    (tmp_path / "empty").mkdir()
    names = [f"p=ü x/{i}" for i in range(count)]
    for name in names:
        (tmp_path / name).write_bytes(b"123")
    store = open_store(canonical(str(tmp_path)))
    found = existing(store, [*names, "empty", "p=ü x/gone", "no folder/f", "gone"])
    assert {entry.path for entry in found} == {*names, "empty"}
    assert {entry.path for entry in found if entry.is_dir} == {"empty"}
    assert {entry.size_bytes for entry in found if not entry.is_dir} == {3}
