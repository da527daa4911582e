"""Metastore entries as they are once a table was synced."""

from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.port import Entry, Metastore
from lakewarden.catalog.metastore.sync_plan import hadoop_location, plan_sync

__all__ = ["enlist", "new_entry"]


def new_entry(seen: Observation, *, database: str, table: str, table_id: str, location: str) -> Entry:
    """The entry of an external table at `location` (canonical) with everything a sync would write."""
    at = hadoop_location(location)
    bare = Entry(
        database=database,
        table=table,
        location=at,
        provider=None,
        table_type="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE"},
        serde_parameters={"path": at},
    )
    plan = plan_sync(seen, bare, table_id=table_id, location=location, strict=False, stale_share=1.0)
    assert plan.obstacle is None, plan.obstacle
    return plan.wanted


def enlist(
    metastore: Metastore, seen: Observation, *, database: str, table: str, table_id: str, location: str
) -> None:
    """Enter a table that the metastore does not know yet."""
    metastore.create_database(database)
    metastore.create(new_entry(seen, database=database, table=table, table_id=table_id, location=location))
