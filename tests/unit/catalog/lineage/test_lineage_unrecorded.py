"""Which end of a log is not on record yet: of the same log, or of another one at its place."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.lineage.unrecorded import Recorded, UnrecordedCommits, unrecorded
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.storage.file_store import canonical
from support.builders.delta_logs import LogWriter, add, remove
from support.builders.system_samples import table_row


def read(
    table: LogWriter, row: TableRow, recorded: Recorded, head_id: str | None = None
) -> UnrecordedCommits:
    return unrecorded(DeltaReader(), row, recorded=recorded, newest=table.head, head_id=head_id)


def versions(found: UnrecordedCommits) -> list[int]:
    return [one.version for one in found.commits]


@pytest.fixture
def table(tmp_path: Path) -> LogWriter:
    """Versions 0 to 3."""
    made = LogWriter(root=tmp_path / "t").create()
    for name in ("a", "b", "c"):
        made.commit(add(name))
    return made


def row_of(table: LogWriter, *format_ids: str) -> TableRow:
    return replace(table_row(1), location=canonical(str(table.root)), format_ids=format_ids)


def test_what_is_on_record_is_not_read_again(table: LogWriter) -> None:
    found = read(table, row_of(table, table.table_id), {table.table_id: 1})
    assert (versions(found), found.format_id, found.anew) == ([2, 3], table.table_id, False)
    everything = read(table, row_of(table), {})
    assert (versions(everything), everything.format_id, everything.anew) == ([0, 1, 2, 3], None, False)


@pytest.mark.parametrize("on_record", [2, 7], ids=["more versions than before", "fewer versions"])
def test_a_log_that_was_made_anew_is_read_whole(table: LogWriter, on_record: int) -> None:
    found = read(table, row_of(table, "of another"), {"of another": on_record}, head_id=table.table_id)
    assert (versions(found), found.format_id, found.anew) == ([0, 1, 2, 3], None, True)


def test_a_log_that_was_replaced_goes_on(table: LogWriter) -> None:
    first, table.table_id = table.table_id, "u2"
    table.commit(remove("a"), table.metadata(), operation="CREATE OR REPLACE TABLE")
    for seen in ((first,), (first, "u2")):  # the row may have been written before the lineage was
        found = read(table, row_of(table, *seen), {first: 3}, head_id="u2")
        assert (versions(found), found.format_id, found.anew) == ([4], first, False)


def test_what_came_after_a_replacement_goes_under_its_uuid_whatever_the_row_says(table: LogWriter) -> None:
    first, table.table_id = table.table_id, "u2"
    table.commit(remove("a"), table.metadata(), operation="CREATE OR REPLACE TABLE")
    table.commit(add("d"))
    found = read(table, row_of(table, first), {first: 3, "u2": 4}, head_id="u2")
    assert (versions(found), found.format_id) == ([5], "u2")


def test_what_is_on_record_of_a_dropped_table_says_nothing_of_the_one_that_took_its_place(
    table: LogWriter,
) -> None:
    old, new = "of another", table.table_id
    for seen in ((old,), (old, new)):
        nothing = read(table, row_of(table, *seen), {old: 3}, head_id=new)
        assert (versions(nothing), nothing.anew) == ([0, 1, 2, 3], True)
        some = read(table, row_of(table, *seen), {old: 2, new: 1}, head_id=new)
        assert (versions(some), some.format_id) == ([2, 3], new)


def test_of_a_log_whose_beginning_is_gone_the_newest_on_record_counts(table: LogWriter) -> None:
    first, table.table_id = table.table_id, "u2"
    table.commit(remove("a"), table.metadata(), operation="CREATE OR REPLACE TABLE")
    table.checkpoint()
    table.clean(before=2)
    found = read(table, row_of(table, first, "u2"), {first: 3}, head_id="u2")
    assert (versions(found), found.format_id) == ([4], first)
    unstamped = read(table, row_of(table, "u2"), {None: 3}, head_id="u2")
    assert (versions(unstamped), unstamped.format_id) == ([4], "u2")


def test_a_restore_that_does_not_say_where_it_went_is_looked_into(table: LogWriter) -> None:
    table.commit(remove("c"), operation="RESTORE")
    table.commit(add("c"), operation="RESTORE", operationParameters={"version": "3"})
    found = read(table, row_of(table, table.table_id), {table.table_id: 3})
    assert [one.restored for one in found.commits] == [2, 3]
