"""Tables whose lineage went back in time with the system tables: nobody has read their logs for it since. Pure.

Until somebody has, nobody can tell what such a table was made from, and which versions its rollback needs there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from lakewarden.catalog.model.rows import RowKind, Source, TableRow, TableState

__all__ = [
    "LINEAGE_UNREAD",
    "is_given_up",
    "is_lineage_unread",
    "with_lineage_given_up",
    "with_lineage_read",
    "with_lineage_unread",
]

LINEAGE_UNREAD = "lineage.unread"
"""Row property: since when (ISO 8601, UTC) what `lakewarden.lineage` says of the table may lack something. Whoever
reads its log for it takes it away: a sweep, of tables that are gone as well, or the command that drops it."""

_GIVEN_UP = "lineage.given_up"
"""Row property of a table that is gone: for which of these moments its log could not be read, and will not be."""


def is_lineage_unread(properties: Mapping[str, str]) -> bool:
    """Whether a row's properties say so."""
    return LINEAGE_UNREAD in properties


def is_given_up(properties: Mapping[str, str]) -> bool:
    """Whether nobody tries to read the log any more, so that what was lost since is lost for good."""
    return is_lineage_unread(properties) and properties.get(_GIVEN_UP) == properties[LINEAGE_UNREAD]


def with_lineage_given_up(row: TableRow) -> TableRow:
    """The row of a table that is gone, as nobody will read its log."""
    return replace(row, properties={**row.properties, _GIVEN_UP: row.properties[LINEAGE_UNREAD]})


def with_lineage_unread(rows: Iterable[TableRow], *, now: datetime, actor: str) -> tuple[TableRow, ...]:
    """The rows of tables with logs, as lineage goes back. Changed rows are looked at by the next sweep; of tables that
    are gone, it reads the logs that are still there."""
    mark = {LINEAGE_UNREAD: now.isoformat()}
    return tuple(
        replace(row, properties={**row.properties, **mark}, updated_at=now, updated_by=actor)
        for row in rows
        if row.kind is RowKind.TABLE
        and row.source is not Source.SELF
        and row.state is not TableState.CONVERTING
    )


def with_lineage_read(row: TableRow) -> TableRow:
    """The row, as its lineage is on record."""
    ours = (LINEAGE_UNREAD, _GIVEN_UP)
    return replace(row, properties={key: told for key, told in row.properties.items() if key not in ours})
