"""Tables that a rollback sets aside because no version of them is clean, and how they come back. No data is touched."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.catalog.formats.outer_tables import Above
from lakewarden.catalog.model.identity import check_nesting
from lakewarden.catalog.model.pending_quarantine import Quarantine, quarantined, released
from lakewarden.catalog.model.rows import GONE, TableRow, TableState
from lakewarden.catalog.policy.access import Actor, Permission
from lakewarden.catalog.registry.checked_rows import ATTEMPTS, StaleDecision
from lakewarden.catalog.registry.service import Registry, places_of, refuse_taken, row_of
from lakewarden.catalog.system.port import TABLES, Rows, SystemStore
from lakewarden.catalog.units import sentence

__all__ = ["is_aside", "release", "set_aside", "take_in"]


def set_aside(
    store: SystemStore,
    clock: Clock,
    table_id: str,
    state: TableState,
    *,
    rollback_id: str,
    actor: str,
    permit: Callable[[], None] = lambda: None,
) -> None:
    """Quarantine a table, or drop it from management, for a rollback. Repeating it changes nothing. `permit`
    is asked before every try, once the row is known that is to be changed: it raises what speaks against it by then.

    Raises `ConflictError` if another rollback set it aside, it was dropped in the meantime, or others change its row
    again and again.
    """
    because = f"{state} by rollback {rollback_id}"
    for _ in range(ATTEMPTS):
        seen = row_of(store.rows(TABLES), table_id)
        permit()  # after the row: who takes the rollback away writes the journal first, then touches the row
        change = partial(_aside, seen=seen, rollback_id=rollback_id, state=state, clock=clock, actor=actor)
        try:
            store.edit(TABLES, change, because=because, run_id=rollback_id)
        except StaleDecision:
            continue
        return
    raise ConflictError(
        f"Others changed the row of {seen.name} again and again.", hint="Nothing was changed; repeat it."
    )


def is_aside(store: SystemStore, table_id: str, *, rollback_id: str) -> bool:
    """Whether this rollback has set the table aside."""
    before = Quarantine.of(row_of(store.rows(TABLES), table_id))
    return before is not None and before.rollback_id == rollback_id


def take_in(
    store: SystemStore,
    clock: Clock,
    table_id: str,
    *,
    rollback_id: str,
    actor: str,
    above: Above,
    begun: bool = False,
) -> None:
    """Undo `set_aside`: the table gets the state that it had. One that came back otherwise is left alone. If the
    quarantine may have `begun` unseen, the row is written all the same: a process that was stopped right before writing
    it finds the row changed. `above` tells which table lies around a dropped one now.

    Raises `PreconditionError` if its files are being deleted, its name is taken, or its place is.
    """

    now = row_of(store.rows(TABLES), table_id)
    outer = above(now.location or "") if now.state in GONE else None

    def changed(rows: Rows[TableRow]) -> Iterable[TableRow]:
        row = row_of(rows, table_id)
        before = Quarantine.of(row)
        if before is None or before.rollback_id != rollback_id:
            return [_touched(row, clock, actor)] if begun else []
        if row.state in (TableState.PURGING, TableState.PURGED):
            raise PreconditionError(
                sentence(f"{row.name} is {row.state}: {row.state_reason}"),
                hint="`lakewarden tables undrop` stops that.",
            )
        back = released(row)
        if row.state in GONE and back.state not in GONE:
            refuse_taken(rows.find(name=row.name), except_for=table_id)
            check_nesting(places_of(rows), row.location or "", outer=outer, but=table_id)
        return [_touched(back, clock, actor)]

    store.edit(TABLES, changed, because=f"undo of rollback {rollback_id}", run_id=rollback_id)


def release(registry: Registry, where: str, *, actor: Actor) -> TableRow:
    """An owner says that a table is good again that a rollback had quarantined; validation judges it from now on."""
    row = registry.resolve(where)
    if Quarantine.of(row) is None:
        raise PreconditionError(
            f"{row.name} was not quarantined by a rollback.",
            hint="`lakewarden tables show` says what is the matter.",
        )
    because = f"{actor.name} says {row.name} is good"
    return registry.change_row(row, actor, Permission.ROLLBACK, released, because=because)


def _aside(
    rows: Rows[TableRow], *, seen: TableRow, rollback_id: str, state: TableState, clock: Clock, actor: str
) -> Iterable[TableRow]:
    """The row set aside. Raises `StaleDecision` if it is not the one any more that the permit was asked for."""
    row = row_of(rows, seen.table_id)
    if row != seen:
        raise StaleDecision
    before = Quarantine.of(row)
    if before is not None and before.rollback_id == rollback_id:
        return []
    if before is not None or row.state in GONE:
        raise ConflictError(
            f"{row.name} is {row.state} by now: {row.state_reason}", hint="Look at it, then plan again."
        )
    return [_touched(quarantined(row, rollback_id, state), clock, actor)]


def _touched(row: TableRow, clock: Clock, actor: str) -> TableRow:
    return replace(row, updated_at=clock.now(), updated_by=actor)
