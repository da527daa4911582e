"""Shallow clones among the managed tables: which read files of another one's folder, as far as sweeps have seen."""

from collections.abc import Iterable

import pyarrow.compute as pc

from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE, surely_reads_from
from lakewarden.catalog.model.rows import GONE, Source, TableRow
from lakewarden.catalog.system.port import Rows

__all__ = ["clones_of", "is_clone_of", "reaches"]


def reaches(tables: Rows[TableRow]) -> Iterable[tuple[str, str | None]]:
    """By `table_id` where a table's files lie elsewhere, as its row says; None where nobody has looked yet."""
    columns = tables.arrow(["table_id", "properties", "source"])
    columns = columns.filter(pc.not_equal(columns["source"], Source.SELF.value))  # they lie where they are
    pairs = zip(columns["table_id"].to_pylist(), columns["properties"].to_pylist(), strict=True)
    return ((table_id, dict(found or ()).get(READS_ELSEWHERE)) for table_id, found in pairs)


def clones_of(tables: Rows[TableRow], row: TableRow) -> tuple[TableRow, ...]:
    """The managed tables that surely read files of this one's folder."""
    found = (tables.get(table_id) for table_id, reach in reaches(tables) if reach)
    return tuple(one for one in found if one is not None and is_clone_of(one, row.table_id, row.location))


def is_clone_of(row: TableRow, table_id: str, location: str | None) -> bool:
    """Whether a managed table surely reads files of another one's folder."""
    if row.table_id == table_id or row.state in GONE:
        return False
    return location is not None and surely_reads_from(row, location)
