"""Which end of a log is not on record yet: of the same log, or of another one at its place."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.lineage.unrecorded import Unrecorded, unrecorded
from lakewarden.catalog.model import TableRow
from lakewarden.catalog.storage import canonical
from support.delta_logs import LogWriter, add, remove
from support.system_samples import table_row


def read(table: LogWriter, row: TableRow, on_record: int | None, head_id: str | None = None) -> Unrecorded:
    return unrecorded(DeltaReader(), row, on_record=on_record, head=table.head, head_id=head_id)


def versions(found: Unrecorded) -> list[int]:
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
    found = read(table, row_of(table, table.table_id), on_record=1)
    assert (versions(found), found.format_id, found.anew) == ([2, 3], table.table_id, False)
    everything = read(table, row_of(table), on_record=None)
    assert (versions(everything), everything.format_id, everything.anew) == ([0, 1, 2, 3], None, False)


@pytest.mark.parametrize("on_record", [2, 7], ids=["more versions than before", "fewer versions"])
def test_a_log_that_was_made_anew_is_read_whole(table: LogWriter, on_record: int) -> None:
    found = read(table, row_of(table, "of another"), on_record, head_id=table.table_id)
    assert (versions(found), found.format_id, found.anew) == ([0, 1, 2, 3], None, True)


def test_a_log_that_was_replaced_goes_on(table: LogWriter) -> None:
    first, table.table_id = table.table_id, "u2"
    table.commit(remove("a"), table.metadata(), operation="CREATE OR REPLACE TABLE")
    found = read(table, row_of(table, first), on_record=3, head_id="u2")
    assert (versions(found), found.format_id, found.anew) == ([4], first, False)


def test_a_restore_that_does_not_say_where_it_went_is_looked_into(table: LogWriter) -> None:
    table.commit(remove("c"), operation="RESTORE")
    table.commit(add("c"), operation="RESTORE", operationParameters={"version": "3"})
    found = read(table, row_of(table, table.table_id), on_record=3)
    assert [one.restored for one in found.commits] == [2, None]
