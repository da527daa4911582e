"""How the row of a dropped table records that its original properties are still owed, or given back."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.model.rows import TableRow, TableState
from lakewarden.catalog.policy.original_properties import (
    OriginalProperty,
    forgotten,
    is_leaving,
    kept_of,
    leaving,
    remembering,
)
from lakewarden.catalog.registry.service import Registry, row_of
from lakewarden.catalog.system.port import TABLES, Rows

__all__ = ["dropped", "given_back", "said_of"]

_DROPPED: Final = "dropped from management; files untouched"
_PROPERTIES: Final = "; properties "


def dropped(row: TableRow, owed: Iterable[OriginalProperty], now: datetime) -> TableRow:
    """The row of a table that leaves. `owed`: what was found out about its properties besides what the row remembers.

    Whatever is remembered makes it wait for a run that gives it back: a run of ours may be about to set it again.
    """
    gone = replace(row, state=TableState.DROPPED, state_reason=_DROPPED)
    known = {one.name: one for one in (*owed, *kept_of(row))}
    return leaving(gone, known.values(), now.isoformat()) if known else gone


def given_back(
    registry: Registry, table_id: str, sentence: str, *, is_for: Callable[[TableRow], bool]
) -> TableRow:
    """A dropped table has its properties back: its row forgets about them, unless it waits after another drop by now
    (`is_for` says). Repeating it changes nothing."""

    def changed(rows: Rows[TableRow]) -> Iterable[TableRow]:
        row = row_of(rows, table_id)
        if not is_leaving(row) or not is_for(row):
            return []
        reason = f"{_DROPPED}{_PROPERTIES}{sentence}"
        now = registry.clock.now()
        return [replace(remembering(forgotten(row), now), state_reason=reason, updated_at=now)]

    registry.store.edit(TABLES, changed, because="properties given back")
    return registry.get(table_id)


def said_of(row: TableRow) -> str | None:
    """The note in a dropped table's row about the properties given back; None if it says nothing."""
    _, found, sentence = (row.state_reason or "").partition(_PROPERTIES)
    return sentence if found else None
