"""Entries for the system tables in the Hive metastore, so that any Spark session reads `lakewarden.tables` by name."""

from collections.abc import Iterator
from dataclasses import replace

from lakewarden.catalog.errors import ConflictError, RefusedError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.entry_obstacles import Obstacle, obstacle_in
from lakewarden.catalog.metastore.lookup import SYSTEM
from lakewarden.catalog.metastore.ownership import is_of_another
from lakewarden.catalog.metastore.parameters import INSTALLATION
from lakewarden.catalog.metastore.port import Entry, Metastore
from lakewarden.catalog.metastore.sync_plan import hadoop_location, plan_sync
from lakewarden.catalog.model.rows import Source, TableRow
from lakewarden.catalog.system.own_rows import system_table_id
from lakewarden.catalog.system.port import SYSTEM_TABLES, TABLES
from lakewarden.daemon.installation.services import Services

__all__ = ["enlist_system_tables", "entries_of_others", "refuse_entries_of_others"]


def entries_of_others(services: Services, installation: str | None) -> Iterator[Obstacle]:
    """What stands in the metastore under the names of our system tables, and is not ours: here `installation`, or an
    installation that is not there yet (None). Raises `UnavailableError` while the metastore does not answer."""
    for table in SYSTEM_TABLES if services.metastore is not None else ():
        entry = None if services.metastore is None else services.metastore.get(SYSTEM, table.name)
        if entry is not None:
            location = services.store.location(table)
            found = obstacle_in(entry, system_table_id(table.name), location, installation)
            if found is not None:
                yield found


def refuse_entries_of_others(services: Services) -> None:
    """Raise `RefusedError` before there is anything of an installation whose names in the metastore are taken."""
    installation = services.store.installation() if services.store.exists() else None
    found = next(entries_of_others(services, installation), None)
    if found is not None:
        raise RefusedError(found.message, hint=found.hint)


def enlist_system_tables(services: Services, *, take_over: bool = False) -> int:
    """Make or mend the seven entries; returns how many were changed. Repeating it changes nothing. `take_over`: also
    those of another installation, which are then ours.

    Raises `UnavailableError` while the metastore does not answer, `RefusedError` where a name is taken by another
    table. Without a metastore there is nothing to do.
    """
    metastore = services.metastore
    if metastore is None:
        return 0
    rows = [row for row in services.store.rows(TABLES).all() if row.source is Source.SELF]
    metastore.create_database(SYSTEM)
    return sum(_enlist(services, metastore, row, take_over=take_over) for row in rows)


def _enlist(services: Services, metastore: Metastore, row: TableRow, *, take_over: bool) -> bool:
    location = row.location or ""
    database, _, table = row.name.partition(".")
    seen = services.registry.reader_at(location, row.name).observe(location)
    if not isinstance(seen, Observation):
        return False  # the sweep says so; an entry would not make it readable
    entry, installation = metastore.get(database, table), services.store.installation()
    base = entry or _blank(database, table, row)
    if take_over and is_of_another(base, installation):
        base = replace(base, parameters={**base.parameters, INSTALLATION: installation})
    plan = plan_sync(
        seen,
        base,
        table_id=row.table_id,
        location=location,
        strict=metastore.strict_columns(),
        stale_share=1.0,
        installation=installation,
    )
    if plan.obstacle is not None:
        raise RefusedError(plan.obstacle.message, hint=plan.obstacle.hint)
    try:
        if entry is None:
            metastore.create(plan.wanted)
        elif plan.changes:
            metastore.replace(plan.wanted, expected=entry)
    except ConflictError:
        return False  # somebody else enlists them just now
    reach("enlist.entry")
    return entry is None or bool(plan.changes)


def _blank(database: str, table: str, row: TableRow) -> Entry:
    return Entry(
        database=database,
        table=table,
        location=hadoop_location(row.location or ""),
        provider=None,
        table_type="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE"},
        owner=row.owner,
    )
