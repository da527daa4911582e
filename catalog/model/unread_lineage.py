"""Tables whose lineage went back in time with the system tables: nobody has read their logs for it since. Pure.

Until somebody has, nobody can tell what such a table was made from, and which versions its rollback needs there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from lakewarden.catalog.model.rows import RowKind, Source, TableRow, TableState

__all__ = [
    "LINEAGE_UNREAD",
    "awaits_lineage",
    "is_lineage_unread",
    "with_lineage_read",
    "with_lineage_unread",
]

LINEAGE_UNREAD = "lineage.unread"
"""Row property: since when (ISO 8601, UTC) what `lakewarden.lineage` says of the table may lack something. The first
look at the table takes it away."""

_LOOKED_AT = (TableState.ACTIVE, TableState.QUARANTINED)
"""States in which the sweep looks at a table."""


def is_lineage_unread(properties: Mapping[str, str]) -> bool:
    """Whether a row's properties say so."""
    return LINEAGE_UNREAD in properties


def awaits_lineage(row: TableRow) -> bool:
    """Whether a sweep is still to read a table's log for it. In other states nobody looks, so nobody waits."""
    return row.state in _LOOKED_AT and is_lineage_unread(row.properties)


def with_lineage_unread(rows: Iterable[TableRow], *, now: datetime, actor: str) -> tuple[TableRow, ...]:
    """The rows of tables with logs, as lineage goes back. Changed rows are looked at by the next sweep; those of tables
    that are dropped when these come back."""
    mark = {LINEAGE_UNREAD: now.isoformat()}
    return tuple(
        replace(row, properties={**row.properties, **mark}, updated_at=now, updated_by=actor)
        for row in rows
        if row.kind is RowKind.TABLE
        and row.source is not Source.SELF
        and row.state not in (TableState.CONVERTING, TableState.PURGED)
    )


def with_lineage_read(row: TableRow) -> TableRow:
    """The row, as its lineage is on record."""
    return replace(
        row, properties={key: told for key, told in row.properties.items() if key != LINEAGE_UNREAD}
    )
