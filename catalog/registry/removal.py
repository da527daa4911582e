"""Drop, purge, undrop, rename: how a table leaves management, and how it comes back."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from lakewarden.catalog.errors import ConflictError, PreconditionError, RefusedError
from lakewarden.catalog.formats.outer_tables import require_no_outer
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.lineage.clones import clones_of
from lakewarden.catalog.metastore.known_tables import with_entry
from lakewarden.catalog.metastore.lookup import parse_name, refuse_closed
from lakewarden.catalog.model.identity import RegisteredPlaces, check_nesting
from lakewarden.catalog.model.left_by_users import without_leaving
from lakewarden.catalog.model.pending_purge import (
    MARKER,
    PURGE_AFTER,
    PURGE_DELETED,
    PURGE_HEAD,
    PURGE_HEAD_FILE,
    PURGE_OTHERS,
    PURGE_UNKNOWN,
    PURGE_VERSION,
    PURGING_KEYS,
    how_to_stop,
)
from lakewarden.catalog.model.pending_quarantine import released
from lakewarden.catalog.model.rows import GONE, PLACELESS, RowKind, Source, TableRow, TableState
from lakewarden.catalog.policy.access import Actor, Permission, require
from lakewarden.catalog.policy.carried_promises import carried, with_promises
from lakewarden.catalog.policy.original_properties import OriginalProperty, forgotten
from lakewarden.catalog.policy.scopes import govern, scopes_by_name
from lakewarden.catalog.registry.checked_rows import Unchecked, write_checked
from lakewarden.catalog.registry.owed_properties import dropped
from lakewarden.catalog.registry.purge_mark import Begun
from lakewarden.catalog.registry.service import Registry, governed_in, places_of, refuse_taken, row_of
from lakewarden.catalog.registry.shared_folders import other_at
from lakewarden.catalog.storage.file_store import open_store
from lakewarden.catalog.system.port import TABLES, Rows

__all__ = ["begin_purge", "check_drop", "drop", "purged", "rename", "stop_purge", "undrop"]

_PURGED: Final = "its files were deleted"


def drop(registry: Registry, where: str, *, actor: Actor, owed: Iterable[OriginalProperty] = ()) -> TableRow:
    """Stop managing a table; its data and log stay as they are. What it is `owed` is given back by a run of its own.

    A table under legal hold leaves only by an admin: nobody else may take it where the hold does not reach.
    """
    row, kept = _not_ours(registry.resolve(where)), tuple(owed)

    def gone(rows: Rows[TableRow]) -> Iterable[TableRow]:
        current = row_of(rows, row.table_id)
        require(actor, Permission.DROP, current)
        if not actor.admin:
            _refuse_held(rows, current)
        return [registry.touched(dropped(current, kept, registry.clock.now()), actor)]

    registry.store.edit(TABLES, gone, because=f"drop {row.name}")
    return registry.get(row.table_id)


def check_drop(registry: Registry, row: TableRow, *, actor: Actor, purge: bool) -> None:
    """Raise what `drop` (`begin_purge`) would raise now, whatever the table itself is like: for dry runs.
    Changes nothing."""
    rows = registry.store.rows(TABLES)
    current = _not_ours(row_of(rows, row.table_id))
    require(actor, Permission.DROP, current)
    if purge or not actor.admin:
        _refuse_held(rows, current)
    if purge:
        _refuse_cloned(rows, current)
        _refuse_another(rows, current)
        _refuse_outer(registry, current)


def begin_purge(
    registry: Registry,
    where: str,
    *,
    actor: Actor,
    expected_version: int,
    grace: timedelta,
    unknown: str | None = None,
    others: str | None = None,
) -> TableRow:
    """Drop a table and, after a grace period in which `undrop` works, delete its files.

    `expected_version` is the version the dry run showed, `unknown` the token of the files in the folder that
    the log does not name and that may go along (None: there are none), `others` the other installations that manage or
    hold the table.
    Another head raises `PreconditionError`, as does a hold, or a managed shallow clone.
    """
    row = _not_ours(registry.resolve(where))
    location = row.location or ""
    told = None if registry.heads is None else registry.heads(location)
    head_file = None if told is None else told.file
    seen = registry.reader_at(location, row.name).observe(location)
    if not isinstance(seen, Observation) or seen.version != expected_version:
        raise PreconditionError(
            f"{row.name} is no longer at version {expected_version}.",
            hint="Repeat the dry run and look again.",
        )
    if row.format_ids and seen.format_id not in row.format_ids:
        raise PreconditionError(
            f"Another table is at the place of {row.name} than the one that was last seen there.",
            hint="`lakewarden tables validate` looks at it; then repeat the dry run.",
        )
    _refuse_outer(registry, row)
    due = registry.clock.now() + grace
    marks = {
        PURGE_AFTER: due.isoformat(),
        PURGE_VERSION: str(expected_version),
        PURGE_HEAD: seen.head,
        **({} if head_file is None else {PURGE_HEAD_FILE: head_file}),
        **({} if unknown is None else {PURGE_UNKNOWN: unknown}),
        **({} if others is None else {PURGE_OTHERS: others}),
    }

    def purging(rows: Rows[TableRow]) -> Iterable[TableRow]:
        current = row_of(rows, row.table_id)
        require(actor, Permission.DROP, current)
        _refuse_held(rows, current)
        _refuse_cloned(rows, current)
        _refuse_another(rows, current)
        going = replace(
            current,
            state=TableState.PURGING,
            state_reason=f"its files will be deleted after {due:%Y-%m-%d %H:%M} UTC",
            properties={**_unmarked(current.properties), **marks},
        )
        return [registry.touched(going, actor)]

    registry.store.edit(TABLES, purging, because=f"purge {row.name}")
    return registry.get(row.table_id)


def _refuse_another(rows: Rows[TableRow], row: TableRow) -> None:
    other = other_at(rows, row)
    if other is not None:
        raise PreconditionError(
            f"The place of {row.name} leads to the folder of {other.name} by now: its files are not deleted.",
            hint="Remove the link or the mount; or drop it without --purge.",
        )


def _refuse_outer(registry: Registry, row: TableRow) -> None:
    hint = "Move one of them, or drop it without --purge."
    require_no_outer(registry.outer(), row.location or "", name=row.name, hint=hint)


def _refuse_held(rows: Rows[TableRow], row: TableRow) -> None:
    held = governed_in(rows, row).hold
    if held is not None:
        raise PreconditionError(f"{row.name} is under legal hold: {held}.", hint="An admin can lift it.")


def _refuse_cloned(rows: Rows[TableRow], row: TableRow) -> None:
    """What a sweep has seen; whether there are others is looked at before anything is deleted."""
    clone = next(iter(clones_of(rows, row)), None)
    if clone is not None:
        raise PreconditionError(
            f"{clone.name} reads files of {row.name}: it is a shallow clone of it.",
            hint=f"Purge {clone.name} first, or replace it by a copy in full.",
        )


def purged(
    registry: Registry, table_id: str, *, actor: Actor, is_for: Callable[[TableRow], bool] = lambda row: True
) -> TableRow:
    """The files are gone: keep the row as history, unless it waits for another purge by now (`is_for` says).
    Repeating it changes nothing."""

    def gone(current: TableRow) -> TableRow:
        if current.state is not TableState.PURGING or not is_for(current):
            return current
        return replace(current, state=TableState.PURGED, state_reason=_PURGED)

    return registry.change_row(registry.get(table_id), actor, Permission.DROP, gone, because="purged")


def stop_purge(registry: Registry, table_id: str, *, actor: Actor) -> TableRow:
    """Take back that a table's files are to be deleted, however far that is:
    it stays dropped, and what is left of it stays.
    Where an attempt has deleted the last of them, it is purged. A worker that is at it stops before its next batch."""

    def stopped(row: TableRow) -> TableRow:
        if row.state is not TableState.PURGING:
            raise PreconditionError(f"{row.name} does not wait to be purged any more: it is {row.state}.")
        if PURGE_DELETED in row.properties:
            return replace(row, state=TableState.PURGED, state_reason=_PURGED)
        return replace(
            row,
            state=TableState.DROPPED,
            state_reason="dropped from management; its deletion was stopped, what is left of its files stays",
            properties=_unmarked(row.properties),
        )

    done = registry.change_row(
        registry.get(table_id), actor, Permission.DROP, stopped, because="purge stopped"
    )
    location = done.location or ""
    store = open_store(location, registry.storage(location))
    if Begun.at(store, table_id) is not None:
        store.delete(MARKER)
    return done


def undrop(registry: Registry, where: str, *, actor: Actor) -> TableRow:
    """Take a dropped table back, as long as its files have not been purged."""
    row = registry.resolve(where, gone=True)
    if row.state is TableState.PURGED or PURGE_DELETED in row.properties:
        raise PreconditionError(
            f"{row.name} was purged: its files are gone.", hint="Restore them from a backup."
        )
    if row.state not in GONE:
        return row
    location = row.location or ""
    _refuse_begun(registry, row)
    seen = registry.reader_at(location, row.name).observe(location)

    at, outer = registry.clock.now(), registry.outer()(location)

    def back(rows: Rows[TableRow]) -> Iterator[Unchecked]:
        current = row_of(rows, row.table_id)
        require(actor, Permission.UNDROP, current)
        if current.state is TableState.PURGED or PURGE_DELETED in current.properties:
            raise PreconditionError(
                f"{row.name} was purged just now.", hint="Restore its files from a backup."
            )
        refuse_taken(rows.find(name=current.name), except_for=current.table_id)
        places = places_of(rows)
        _refuse_taken_place(places, current)
        check_nesting(places, location, outer=outer, but=current.table_id)
        active = replace(released(current), state=TableState.ACTIVE, state_reason=None)
        active = forgotten(replace(active, properties=_unmarked(active.properties)), pending_only=True)
        yield Unchecked(row=registry.touched(active, actor, at=at), seen=seen)

    write_checked(registry, lambda _: back, because=f"undrop {row.name}")
    try:
        # A worker puts up its mark, then asks once more whether it may, then deletes: without a mark by now,
        # it may not.
        _refuse_begun(registry, row)
    except PreconditionError:
        registry.store.edit(
            TABLES, lambda rows: _as_before(rows, row), because=f"{row.name} cannot be undropped"
        )
        raise
    return registry.get(row.table_id)


def _refuse_taken_place(places: RegisteredPlaces, row: TableRow) -> None:
    """Raise `RefusedError` where another managed table is at the place of one that was dropped."""
    for one in places.at(row.location or ""):
        if one.table_id != row.table_id and one.state not in PLACELESS:
            raise RefusedError(
                f"Another table is at {row.location} by now: {one.name}.",
                hint=f"`lakewarden tables show {one.name}`; move one of the two, then undrop.",
            )


def _refuse_begun(registry: Registry, row: TableRow) -> None:
    location = row.location or ""
    store = open_store(location, registry.storage(location))
    if row.state is TableState.PURGING and Begun.may_be_at(store, row.table_id):
        raise PreconditionError(
            f"The deletion of {row.name} has begun: some of its files may be gone.",
            hint="`lakewarden jobs list` shows how far it is; restore the rest from a backup. "
            + how_to_stop(row.table_id),
        )


def _as_before(rows: Rows[TableRow], row: TableRow) -> Iterable[TableRow]:
    """The row as it was, but for what somebody else has asked for since it came back: a hold, a policy."""
    current = row_of(rows, row.table_id)
    if current.state in GONE:
        return []
    marks = {key: value for key, value in row.properties.items() if key in PURGING_KEYS}
    properties = {**current.properties, **marks}
    return [replace(current, state=row.state, state_reason=row.state_reason, properties=properties)]


def rename(
    registry: Registry, where: str, new_name: str, *, actor: Actor, entered: str | None = None
) -> TableRow:
    """Give a managed table another name; the old one is remembered as an alias. What its namespace promised of it, the
    new one does not shorten.

    `entered`: its users have renamed it so in the metastore, which had it under this name. Raises `ConflictError` where
    the row has another one by now.
    """
    wanted = parse_name(new_name)
    if wanted is None:
        raise RefusedError(f"'{new_name}' is not a table name.", hint="Write db.table.")
    refuse_closed(wanted)
    row = _not_ours(registry.resolve(where))

    def renamed(rows: Rows[TableRow]) -> Iterable[TableRow]:
        current = row_of(rows, row.table_id)
        require(actor, Permission.RENAME, current)
        if entered is not None and current.name != entered:
            raise ConflictError(f"{entered} is called {current.name} by now.")
        refuse_taken(rows.find(name=wanted), except_for=row.table_id)
        named = _carried(rows, current, wanted)
        return [registry.touched(named if entered is None else with_entry(named, wanted), actor)]

    kept = carried(row.policy, _carried(registry.store.rows(TABLES), row, wanted).policy)
    registry.store.edit(
        TABLES,
        renamed,
        because=f"rename {row.name} to {wanted}{'' if kept is None else f', with {kept} as before'}",
    )
    return registry.get(row.table_id)


def _carried(rows: Rows[TableRow], before: TableRow, name: str) -> TableRow:
    """The row under another name with every hold and pause that it was under, and what was promised of it: a rename
    escapes none."""
    aliases = tuple(dict.fromkeys((*before.aliases, before.name)))
    after, scopes = replace(before, name=name, aliases=aliases), scopes_by_name(rows.find(kind=RowKind.SCOPE))
    old, new = govern(before, scopes), govern(after, scopes)
    held = after.hold if new.hold is not None else old.hold
    paused = after.paused if new.paused is not None else old.paused
    return with_promises(replace(after, hold=held, paused=paused), old.policy, scopes)


def _unmarked(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in without_leaving(properties).items() if key not in PURGING_KEYS}


def _not_ours(row: TableRow) -> TableRow:
    if row.source is Source.SELF:
        raise RefusedError(
            f"{row.name} is a system table.", hint="System tables stay managed under their names."
        )
    return row
