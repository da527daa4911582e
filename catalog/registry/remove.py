"""Drop, purge, undrop, rename: how a table leaves management, and how it comes back."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

from lakewarden.catalog.access import Actor, Deed, require
from lakewarden.catalog.aside import taken_in
from lakewarden.catalog.errors import PreconditionError, RefusedError
from lakewarden.catalog.identity import INDEX_COLUMNS, check_nesting
from lakewarden.catalog.model import Source, TableRow, TableState
from lakewarden.catalog.places import parse_name
from lakewarden.catalog.purging import PURGE_AFTER, PURGE_VERSION
from lakewarden.catalog.registry.desk import GONE, Desk, refuse_taken, row_of, without
from lakewarden.catalog.system.base import TABLES, Rows

__all__ = ["begin_purge", "drop", "purged", "rename", "undrop"]


def drop(desk: Desk, where: str, *, actor: Actor) -> TableRow:
    """Stop managing a table; its data and log stay as they are."""
    row = _not_ours(desk.resolve(where))
    reason = "dropped from management; files untouched"
    return desk.change_row(
        row,
        actor,
        Deed.DROP,
        lambda current: replace(current, state=TableState.DROPPED, state_reason=reason),
        because=f"drop {row.name}",
    )


def begin_purge(desk: Desk, where: str, *, actor: Actor, expected_version: int, grace: timedelta) -> TableRow:
    """Drop a table and, after a grace period in which `undrop` works, delete its files.

    `expected_version` is the version the dry run showed; another head raises `PreconditionError`, as does a hold.
    """
    row = _not_ours(desk.resolve(where))
    location = row.location or ""
    probe = desk.reader_at(location, row.name).probe(location, seen=expected_version)
    if probe.moved or probe.latest != expected_version:
        raise PreconditionError(
            f"{row.name} is no longer at version {expected_version}.",
            hint="Repeat the dry run and look again.",
        )
    due = desk.clock.now() + grace

    def purging(current: TableRow) -> TableRow:
        if current.hold is not None:
            raise PreconditionError(
                f"{current.name} is under legal hold: {current.hold}.", hint="Lift it first."
            )
        marks = {PURGE_AFTER: due.isoformat(), PURGE_VERSION: str(expected_version)}
        return replace(
            current,
            state=TableState.PURGING,
            state_reason=f"its files will be deleted after {due:%Y-%m-%d %H:%M} UTC",
            properties={**current.properties, **marks},
        )

    return desk.change_row(row, actor, Deed.DROP, purging, because=f"purge {row.name}")


def purged(desk: Desk, table_id: str, *, actor: Actor) -> TableRow:
    """The files are gone: keep the row as history. Repeating it changes nothing."""

    def gone(current: TableRow) -> TableRow:
        if current.state is not TableState.PURGING:
            return current
        return replace(current, state=TableState.PURGED, state_reason="its files were deleted")

    return desk.change_row(desk.get(table_id), actor, Deed.DROP, gone, because="purged")


def undrop(desk: Desk, where: str, *, actor: Actor) -> TableRow:
    """Take a dropped table back, as long as its files have not been purged."""
    row = desk.resolve(where, gone=True)
    if row.state is TableState.PURGED:
        raise PreconditionError(
            f"{row.name} was purged: its files are gone.", hint="Restore them from a backup."
        )
    if row.state not in GONE:
        return row
    location = row.location or ""
    seen = desk.reader_at(location, row.name).observe(location)

    def back(rows: Rows[TableRow]) -> Iterable[TableRow]:
        current = row_of(rows, row.table_id)
        require(actor, Deed.UNDROP, current)
        if current.state is TableState.PURGED:
            raise PreconditionError(
                f"{row.name} was purged just now.", hint="Restore its files from a backup."
            )
        refuse_taken(rows, current.name, except_for=current.table_id)
        check_nesting(without(rows.arrow(INDEX_COLUMNS), current.table_id), location)
        active = replace(taken_in(current), state=TableState.ACTIVE, state_reason=None)
        active = replace(active, properties=_unmarked(active.properties))
        return [desk.judge(rows, desk.touched(active, actor), seen)]

    desk.store.edit(TABLES, back, because=f"undrop {row.name}")
    return desk.get(row.table_id)


def rename(desk: Desk, where: str, new_name: str, *, actor: Actor) -> TableRow:
    """Give a managed table another name; the old one is remembered as an alias."""
    wanted = parse_name(new_name)
    if wanted is None:
        raise RefusedError(f"'{new_name}' is not a table name.", hint="Write db.table.")
    row = _not_ours(desk.resolve(where))

    def renamed(rows: Rows[TableRow]) -> Iterable[TableRow]:
        current = row_of(rows, row.table_id)
        require(actor, Deed.RENAME, current)
        refuse_taken(rows, wanted, except_for=row.table_id)
        aliases = tuple(dict.fromkeys((*current.aliases, current.name)))
        return [desk.touched(replace(current, name=wanted, aliases=aliases), actor)]

    desk.store.edit(TABLES, renamed, because=f"rename {row.name} to {wanted}")
    return desk.get(row.table_id)


def _unmarked(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key not in (PURGE_AFTER, PURGE_VERSION)}


def _not_ours(row: TableRow) -> TableRow:
    if row.source is Source.SELF:
        raise RefusedError(
            f"{row.name} is a system table.", hint="System tables stay managed under their names."
        )
    return row
