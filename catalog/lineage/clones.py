"""Shallow clones among the managed tables: which read files of another one's folder, as far as sweeps have seen."""

from collections.abc import Iterable, Mapping

import pyarrow.compute as pc

from lakewarden.catalog.formats.files_elsewhere import LEADS_ELSEWHERE, READS_ELSEWHERE, surely_reads_from
from lakewarden.catalog.model.rows import GONE, Source, TableRow
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.system.port import Rows

__all__ = ["clones_at", "clones_of", "is_clone_of", "reaches"]


def reaches(tables: Rows[TableRow]) -> Iterable[tuple[str, str | None]]:
    """By `table_id` where a table's files lie elsewhere, as its row says; None where nobody has looked yet."""
    columns = tables.arrow(["table_id", "properties", "source"])
    columns = columns.filter(pc.not_equal(columns["source"], Source.SELF.value))  # they lie where they are
    pairs = zip(columns["table_id"].to_pylist(), columns["properties"].to_pylist(), strict=True)
    return ((table_id, _reach(dict(found or ()))) for table_id, found in pairs)


def _reach(properties: Mapping[str, str]) -> str | None:
    named = properties.get(READS_ELSEWHERE)
    return None if named is None else named + properties.get(LEADS_ELSEWHERE, "")


def clones_at(tables: Rows[TableRow], location: str) -> tuple[TableRow, ...]:
    """The managed tables that surely read files of the folder at a location, which is another table's."""
    found, now = (tables.get(table_id) for table_id, reach in reaches(tables) if reach), Moment()
    return tuple(one for one in found if one is not None and _reads(one, location, now))


def clones_of(tables: Rows[TableRow], row: TableRow) -> tuple[TableRow, ...]:
    """The managed tables that surely read files of this one's folder."""
    if row.location is None:
        return ()
    return tuple(one for one in clones_at(tables, row.location) if one.table_id != row.table_id)


def is_clone_of(row: TableRow, table_id: str, location: str | None, now: Moment) -> bool:
    """Whether a managed table surely reads files from another table's folder `now`."""
    return row.table_id != table_id and location is not None and _reads(row, location, now)


def _reads(row: TableRow, location: str, now: Moment) -> bool:
    return row.state not in GONE and surely_reads_from(row, location, now)
