"""Where a RESTORE went that does not say it: found by the files, on logs of every shape."""

from pathlib import Path

import pytest

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.storage.file_store import canonical
from support.builders.delta_logs import LogWriter, add, remove, vector


@pytest.fixture
def table(tmp_path: Path) -> LogWriter:
    """Version 1 has the file a, version 2 b too, version 3 only c."""
    made = LogWriter(root=tmp_path / "t").create()
    made.commit(add("a"))
    made.commit(add("b"))
    made.commit(remove("a"), remove("b"), add("c"))
    return made


def restored(table: LogWriter) -> int | None:
    return DeltaReader().restored(canonical(str(table.root)), version=table.head)


def test_the_version_with_the_same_files_is_found(table: LogWriter) -> None:
    table.commit(remove("c"), add("a"), operation="RESTORE")
    assert restored(table) == 1
    table.commit(remove("a"), operation="RESTORE")
    assert restored(table) == 0, "there were none at first"


def test_of_several_it_is_the_newest(table: LogWriter) -> None:
    table.commit(add("c", rows=None), operation="COMPUTE STATS")
    table.commit(remove("c"), add("a"), add("b"), operation="RESTORE")
    table.commit(remove("a"), remove("b"), add("c"), operation="RESTORE")
    assert restored(table) == 4, "the same file added once more is no other file"


def test_a_deletion_vector_makes_it_another_file(table: LogWriter) -> None:
    first, second = vector("one", 3), vector("two", 4)
    table.commit(remove("c"), add("c", deletion_vector=first))
    table.commit(remove("c", deletion_vector=first), add("c", deletion_vector=second))
    table.commit(remove("c", deletion_vector=second), add("c", deletion_vector=first), operation="RESTORE")
    assert restored(table) == 4
    table.commit(remove("c", deletion_vector=first), add("c"), operation="RESTORE")
    assert restored(table) == 3


def test_the_metadata_decides_between_versions_with_the_same_files(table: LogWriter) -> None:
    before = table.metadata()
    table.properties = {"a": "1"}
    table.commit(table.metadata(), operation="SET TBLPROPERTIES")
    table.commit(remove("c"), add("d"))
    table.commit(remove("d"), add("c"), before, operation="RESTORE")
    assert restored(table) == 3


@pytest.mark.parametrize("kind", ["classic", "parts", "v2-parquet", "v2-json"])
def test_a_log_that_was_cleaned_tells_as_far_as_it_goes(table: LogWriter, kind: str) -> None:
    table.checkpoint(kind)
    table.commit(remove("c"), add("a"), operation="RESTORE")
    table.commit(remove("a"), add("c"), operation="RESTORE")
    assert restored(table) == 3
    table.clean(4)
    assert restored(table) == 3
    table.commit(remove("c"), add("a"), add("b"), operation="RESTORE")
    assert restored(table) is None


def test_a_version_that_cannot_be_rebuilt_tells_nothing(table: LogWriter) -> None:
    table.checkpoint()
    table.clean(4)
    assert restored(table) is None, "no version before it is there"
    (table.log / f"{table.head:020d}.checkpoint.parquet").unlink()
    assert restored(table) is None
