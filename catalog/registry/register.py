"""Register and adopt: manage a table that exists already."""

from collections.abc import Iterable
from dataclasses import replace

from lakewarden.catalog.errors import PreconditionError, RefusedError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.files_elsewhere import with_reach
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.metastore.lookup import resolve
from lakewarden.catalog.model.identity import (
    INDEX_COLUMNS,
    Copy,
    Known,
    Moved,
    check_nesting,
    identify,
    locations_with,
)
from lakewarden.catalog.model.rows import Source, TableFormat, TableRow, TableState
from lakewarden.catalog.policy.access import Actor, Deed, require
from lakewarden.catalog.registry.service import Desk, Registered, free_name, known, row_of, wanted_name
from lakewarden.catalog.storage.absence import is_surely_gone
from lakewarden.catalog.system.port import TABLES, Rows
from lakewarden.catalog.units import sentence

__all__ = ["register"]


def register(
    desk: Desk,
    where: str,
    *,
    actor: Actor,
    name: str | None = None,
    owner: str | None = None,
    copy: bool = False,
    moved: bool = False,
    source: Source = Source.REGISTER,
) -> Registered:
    """Manage the table at a path or metastore name, observing only until a policy asks for more.

    Repeating it changes nothing; a table whose UUID is known and whose old place is gone has moved and keeps its row. Where
    the old place cannot be seen at all (its disk may be away), a move is followed only if `moved` says so.
    Raises `RefusedError` for what cannot be a row: nothing there, no table, nested in or around a managed table, a
    second live location with a known UUID unless `copy`.
    """
    place = resolve(where, desk.metastore)
    reader = desk.reader_at(place.location, place.name)
    seen = reader.observe(place.location)
    format_id = seen.format_id if isinstance(seen, Observation) else None

    def change(rows: Rows[TableRow]) -> Iterable[TableRow]:
        index = rows.arrow(INDEX_COLUMNS)
        twins = [twin["location"] for twin in locations_with(index, format_id)]
        alive = [twin for twin in twins if reader.is_table(twin)]
        match identify(index, place.location, format_id, alive=alive):
            case Known(table_id=table_id, state=state):
                return known(rows, table_id, state)
            case Moved(table_id=table_id) if not copy:
                return [_moved(desk, row_of(rows, table_id), place.location, actor, told=moved)]
            case Copy(name=twin, location=other) if not copy:
                raise RefusedError(
                    f"{place.location} carries the same table UUID as {twin} at {other}.",
                    hint="If it is a copy that shall live its own life, repeat with --copy.",
                )
        check_nesting(index, place.location)
        row = desk.new_row(
            rows,
            name=wanted_name(name, place) or free_name(rows, place.location),
            location=place.location,
            owner=owner,
            source=source,
            actor=actor,
        )
        require(actor, Deed.REGISTER, row)
        return [desk.judge(rows, _as_read(row, reader.format, seen), seen)]

    done = desk.store.edit(TABLES, change, because=f"register {where}")
    reach("registry.row")
    row = desk.resolve(place.location)
    health = desk.record_health(row, seen)
    reach("registry.health")
    written = [one for one in done.rows if one.table_id == row.table_id]
    moved_here = any(one.aliases for one in written)  # a new row has none, a moved one its old place
    return Registered(row=row, health=health, created=bool(written), moved=moved_here)


def _moved(desk: Desk, row: TableRow, location: str, actor: Actor, *, told: bool) -> TableRow:
    require(actor, Deed.REGISTER, row)
    if row.state is TableState.PURGING:
        raise PreconditionError(
            sentence(f"{location} is {row.name}, which was dropped; {row.state_reason}"),
            hint=f"`lakewarden tables undrop {row.table_id}` first, then register it here.",
        )
    old = row.location or ""
    if not told and not is_surely_gone(old, desk.storage(old)):
        raise RefusedError(
            f"{location} carries the same table UUID as {row.name} at {old}, which cannot be seen: its disk may be away.",
            hint="If the table has moved here for good, repeat with --moved; if it is a copy, with --copy.",
        )
    aliases = tuple(dict.fromkeys((*row.aliases, row.location or "")))
    return desk.touched(replace(row, location=location, aliases=aliases), actor)


def _as_read(row: TableRow, format_: TableFormat, seen: Observation | LogProblem) -> TableRow:
    """The row with what the table's log says of it: format, UUID, and where else its files lie."""
    if isinstance(seen, LogProblem):
        return replace(row, format=format_)
    properties = with_reach(row.properties, row.location or "", seen.elsewhere)
    return replace(row, format=format_, format_ids=(seen.format_id,), properties=properties)
