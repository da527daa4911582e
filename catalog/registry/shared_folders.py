"""Two managed tables of which one's place leads to the other's folder by now: a link or a mount came after its row."""

from lakewarden.catalog.model.rows import GONE, RowKind, TableRow
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.system.port import Rows

__all__ = ["other_at"]


def other_at(tables: Rows[TableRow], row: TableRow) -> TableRow | None:
    """The managed table in, at or around the folder that a row's location leads to now, if that folder has changed
    since the row was written. Raises `UnavailableError` if it cannot be told."""
    if row.location is None:
        return None
    now = Moment(strict=True)
    here = now.place(row.location)
    if here.spelling == row.location:
        return None
    others = (one for one in tables.find(kind=RowKind.TABLE) if one.table_id != row.table_id)
    return next(
        (
            one
            for one in others
            if one.state not in GONE and one.location is not None and now.place(one.location).overlaps(here)
        ),
        None,
    )
