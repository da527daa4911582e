"""Entries for the system tables in the Hive metastore, so that any Spark session reads `lakewarden.tables` by name."""

from lakewarden.catalog.errors import ConflictError, RefusedError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.port import Entry, Metastore
from lakewarden.catalog.metastore.sync_plan import hadoop_location, plan_sync
from lakewarden.catalog.model.rows import Source, TableRow
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services

__all__ = ["enlist_system_tables"]


def enlist_system_tables(services: Services) -> int:
    """Make or mend the seven entries; returns how many were changed. Repeating it changes nothing.

    Raises `UnavailableError` while the metastore does not answer, `RefusedError` where a name is taken by another
    table. Without a metastore there is nothing to do.
    """
    metastore = services.metastore
    if metastore is None:
        return 0
    rows = [row for row in services.store.rows(TABLES).all() if row.source is Source.SELF]
    metastore.create_database("lakewarden")
    return sum(_enlist(services, metastore, row) for row in rows)


def _enlist(services: Services, metastore: Metastore, row: TableRow) -> bool:
    location = row.location or ""
    database, _, table = row.name.partition(".")
    seen = services.desk.reader_at(location, row.name).observe(location)
    if not isinstance(seen, Observation):
        return False  # the sweep says so; an entry would not make it readable
    entry = metastore.get(database, table)
    plan = plan_sync(
        seen,
        entry or _blank(database, table, row),
        table_id=row.table_id,
        location=location,
        strict=metastore.strict_columns(),
        stale_share=1.0,
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
