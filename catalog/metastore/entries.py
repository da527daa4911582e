"""Entries for tables that the metastore does not know yet: the system tables, and whatever an owner asks for."""

from lakewarden.catalog.errors import ConflictError, RefusedError
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.port import Entry, Metastore
from lakewarden.catalog.metastore.sync_plan import SyncPlan, hadoop_location, plan_sync

__all__ = ["ANY_SHARE", "enlist", "new_entry"]

ANY_SHARE = 1.0
"""For tables without a policy of their own: only statistics off by more than their whole mislead."""


def new_entry(
    seen: Observation, *, database: str, table: str, table_id: str, location: str, owner: str | None = None
) -> Entry:
    """The entry of an external table at `location` (canonical), with everything a sync would write.

    Raises `RefusedError` for a format whose entries are not ours to write.
    """
    at = hadoop_location(location)
    bare = Entry(
        database=database,
        table=table,
        location=at,
        provider=None,
        table_type="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE"},
        serde_parameters={"path": at},
        owner=owner,
    )
    plan = plan_sync(seen, bare, table_id=table_id, location=location, strict=False, stale_share=ANY_SHARE)
    _refuse_obstacle(plan)
    return plan.wanted


def enlist(
    metastore: Metastore,
    seen: Observation,
    *,
    database: str,
    table: str,
    table_id: str,
    location: str,
    owner: str | None = None,
) -> bool:
    """Make sure that `database.table` is in the metastore and agrees with what was observed at `location`.

    Returns whether anything had to be changed; repeating it changes nothing. Raises `RefusedError` when the name
    belongs to another table there or its format is not ours to enter, `UnavailableError` while the metastore does
    not answer.
    """
    metastore.create_database(database)
    current = metastore.get(database, table)
    if current is None:
        entry = new_entry(
            seen, database=database, table=table, table_id=table_id, location=location, owner=owner
        )
        try:
            metastore.create(entry)
        except ConflictError:
            current = metastore.get(database, table)  # somebody was quicker: look at what they made
        if current is None:
            return True
    plan = plan_sync(seen, current, table_id=table_id, location=location, strict=False, stale_share=ANY_SHARE)
    _refuse_obstacle(plan)
    if plan.changes:
        metastore.replace(plan.wanted, expected=current)
    return bool(plan.changes)


def _refuse_obstacle(plan: SyncPlan) -> None:
    if plan.obstacle is not None:
        raise RefusedError(plan.obstacle.message, hint=plan.obstacle.hint)
