"""What the properties of an Iceberg table were while a version was head: its metadata files tell, as far as they are
there."""

from pathlib import Path

import pytest

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.storage.file_store import canonical
from support.builders.iceberg_tables import IcebergWriter

REMEMBERED = 3
"""So many files before it are named in each metadata file of the tests."""


def sets(table: IcebergWriter, note: str) -> None:
    """One commit that makes no snapshot."""
    table.properties["note"] = note
    table.publish()
    table.log = table.log[-REMEMBERED:]


@pytest.fixture
def table(tmp_path: Path) -> IcebergWriter:
    """Version 1, whose properties changed while it was head; then version 2, and many commits."""
    made = IcebergWriter(root=tmp_path / "t")
    made.publish()
    made.commit(add=(("a.parquet", 100),))
    sets(made, "while 1 was head")
    made.commit(add=(("b.parquet", 100),))
    for number in range(10):
        sets(made, f"{number}")
    return made


def told(table: IcebergWriter, version: int) -> tuple[str | None, str | None]:
    """The note when it was head at first, and at last."""
    reader, location = IcebergReader(), canonical(str(table.root))
    first = reader.first_properties(location, version=version)
    return first.get("note"), reader.properties(location, version=version).get("note")


def test_metadata_that_head_does_not_remember_any_more_tells_still(table: IcebergWriter) -> None:
    assert len(table.log) == REMEMBERED
    assert told(table, 1) == (None, "while 1 was head")
    assert told(table, 2) == ("while 1 was head", "9")


def test_the_first_time_is_the_first_whatever_was_head_in_between(table: IcebergWriter) -> None:
    one, two = (int(table.snapshots[place]["snapshot-id"]) for place in (0, 1))
    table.move_main(one)
    table.move_main(two)
    sets(table, "again")
    assert told(table, 2) == ("while 1 was head", "again")


@pytest.mark.parametrize("forgetful", [False, True])
def test_where_a_file_is_gone_nothing_is_concluded_from_the_others(
    table: IcebergWriter, forgetful: bool
) -> None:
    if forgetful:
        table.properties["write.metadata.delete-after-commit.enabled"] = "true"
        table.publish()
    (table.metadata / "v8.metadata.json").unlink()
    with pytest.raises(UnreadableError, match="the properties of version 1 any more") as no:
        told(table, 1)
    assert "v8.metadata.json is missing" in str(no.value)
    assert ("delete-after-commit" in no.value.hint) is forgetful


def test_what_was_there_from_the_first_file_on_may_have_been_otherwise_before(tmp_path: Path) -> None:
    made = IcebergWriter(root=tmp_path / "t")
    made.commit(add=(("a.parquet", 100),))
    sets(made, "x")
    with pytest.raises(UnreadableError, match="version 1 any more"):
        told(made, 1)
