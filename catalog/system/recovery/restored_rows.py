"""A table that goes back in time must not bring back deletions, locks and claims of that day. Pure.

A backup, and a log whose end was cut off, speak of a world that has gone on. Nothing in it may act by itself again.
Agreed deletions are called off, waiting conversions are forgotten, properties owed to dropped tables stay as they are,
and rollbacks under way wait for a person. Work is paused until somebody has looked: a legal hold or a pause set since
then is lost with the rest. Each table's log is read for lineage again before anything is deleted by what derived tables
need.

`because` says how it went back, as in "restored from the backup of 2026-11-22 13:00 UTC".
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.model.pending_purge import PURGING_KEYS
from lakewarden.catalog.model.rows import RollbackRow, RollbackState, RowKind, Source, TableRow, TableState
from lakewarden.catalog.model.unread_lineage import with_lineage_unread
from lakewarden.catalog.policy.original_properties import forgotten, is_leaving

__all__ = ["RestoredRows", "everything_paused", "restored_rollbacks", "restored_tables"]

_EVERYTHING: Final = "*"
_UNDER_WAY: Final = (RollbackState.INTENT, RollbackState.UNDOING)


@dataclass(frozen=True, kw_only=True, slots=True)
class RestoredRows:
    """Rows of `lakewarden.tables` as they come back: those that change, and those that do not come back at all."""

    changed: tuple[TableRow, ...]
    gone: tuple[TableRow, ...]


def restored_tables(rows: Iterable[TableRow], *, because: str, now: datetime, actor: str) -> RestoredRows:
    """The rows that cannot come back as they were."""
    kept = tuple(rows)
    called_off = tuple(
        replace(
            row,
            state=TableState.DROPPED,
            state_reason=f"{because}, which waited to purge it; its files were not touched",
            properties={key: value for key, value in row.properties.items() if key not in PURGING_KEYS},
            updated_at=now,
            updated_by=actor,
        )
        for row in kept
        if row.state is TableState.PURGING
    )
    stay = tuple(
        replace(
            forgotten(row, pending_only=True),
            state_reason=f"{because}, which waited to give its properties back; to have "
            "that done, undrop it and drop it again",
            updated_at=now,
            updated_by=actor,
        )
        for row in kept
        if is_leaving(row)
    )
    pause = everything_paused(kept, because=because, now=now, actor=actor)
    waiting = tuple(row for row in kept if row.state is TableState.CONVERTING)
    settled = {row.table_id: row for row in (*called_off, *stay)}
    unread = with_lineage_unread((settled.get(row.table_id, row) for row in kept), now=now, actor=actor)
    changed = {**settled, **{row.table_id: row for row in (*unread, *pause)}}
    return RestoredRows(changed=tuple(changed.values()), gone=waiting)


def everything_paused(
    rows: Iterable[TableRow], *, because: str, now: datetime, actor: str
) -> tuple[TableRow, ...]:
    """The scope row that pauses everything; none where it is paused already."""
    kept = tuple(rows)
    reason = f"{because}: look at holds, pauses and policies, then `lakewarden resume`"
    scope = next((row for row in kept if row.kind is RowKind.SCOPE and row.name == _EVERYTHING), None)
    if scope is not None:
        held = scope.paused is not None
        return () if held else (replace(scope, paused=reason, updated_at=now, updated_by=actor),)
    made = TableRow(
        row=max((row.row for row in kept), default=-1) + 1,
        table_id=uuid.uuid5(uuid.NAMESPACE_URL, f"lakewarden:scope:{_EVERYTHING}").hex,
        kind=RowKind.SCOPE,
        name=_EVERYTHING,
        source=Source.REGISTER,
        registered_at=now,
        registered_by=actor,
        updated_at=now,
        updated_by=actor,
        paused=reason,
    )
    return (made,)


def restored_rollbacks(
    rows: Iterable[RollbackRow], *, because: str, now: datetime
) -> tuple[RollbackRow, ...]:
    """The head rows of rollbacks that were under way then:
    they wait for a person, whatever has become of them since."""
    message = (
        f"It was {because}, where it was under way. Look at its tables' histories, then resume or undo it."
    )
    return tuple(
        replace(row, state=RollbackState.CONFLICT, message=message, recorded_at=now)
        for row in rows
        if row.step == 0 and row.state in _UNDER_WAY
    )
