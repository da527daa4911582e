"""Creating the system tables and bringing older ones up to date: both may be repeated and may stop anywhere.

A migration adds the columns that the row types have and the table has not (metadata only, no file is touched), then
raises `lakewarden.schema_version`. A daemon that knows only the older version meets the newer one at its next read or
commit and steps down (`OutdatedError`).

`lakewarden.tables` comes first, because whatever a process does begins with it: from then on no older one begins
anything that the other tables would refuse half-way. It is marked until the others have followed, so that none of
today's begins anything either.
"""

from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.log_names import commit_path
from lakewarden.catalog.storage.file_store import StorageOptions, local_path, open_store
from lakewarden.catalog.storage.secret_files import current
from lakewarden.catalog.system.commits import Note, properties
from lakewarden.catalog.system.handles import answering, has_log, open_at
from lakewarden.catalog.system.port import SystemTable
from lakewarden.catalog.system.schema import (
    BUCKET,
    SCHEMA_VERSION,
    UNDER_WAY,
    UPGRADE_PROPERTY,
    VERSION_PROPERTY,
    kept_properties,
    stored_schema,
    table_properties,
)
from lakewarden.catalog.system.snapshot import take_snapshot

__all__ = ["create_table", "end_upgrade", "upgrade"]


def create_table(table: SystemTable[Any], location: str, options: StorageOptions, note: Note) -> None:
    """Create an empty system table unless it is there. Raises `UnreadableError` where a damaged log is."""
    files = open_store(location, options)
    if files.exists(commit_path(0)):
        return
    if has_log(files):
        open_at(location, options, name=table.name)  # its log begins with a checkpoint, or it is no log
        return
    path = local_path(location)
    if path is not None:
        path.mkdir(parents=True, exist_ok=True)
    try:
        with answering(table.name):
            DeltaTable.create(
                location,
                stored_schema(table),
                mode="ignore",
                partition_by=[BUCKET],
                name=f"lakewarden.{table.name}",
                description=(table.row_type.__doc__ or "").partition("\n")[0],
                configuration=table_properties(table),
                storage_options=current(options) or None,
                commit_properties=properties(note),
                raise_if_key_not_exists=False,
            )
    except ConflictError:
        return  # somebody else created it at the same moment


def upgrade(
    table: SystemTable[Any],
    location: str,
    options: StorageOptions,
    note: Note,
    *,
    others_follow: bool = False,
) -> bool:
    """Bring one system table to today's schema; True if anything was to be done. `others_follow`: it is marked, and
    nobody writes to it before `end_upgrade`. Raises `OutdatedError`, `NotFoundError` where it is not there,
    `ConflictError` when somebody else commits meanwhile: then it may simply be repeated."""
    handle = open_at(location, options, name=table.name)
    snapshot = take_snapshot(handle, table.name)
    if snapshot.schema_version >= SCHEMA_VERSION:
        return False
    with answering(table.name):
        wanted = stored_schema(table)
        if not pa.schema(handle.schema().to_arrow()).equals(wanted):
            fields = list(Schema.from_arrow(wanted.remove(wanted.get_field_index(BUCKET))).fields)
            handle.alter.add_columns(fields, commit_properties=properties(note))
        reach(f"system.upgrade.{table.name}")
        handle = open_at(location, options, name=table.name)
        handle.alter.set_table_properties(
            {
                **kept_properties(table),
                **({UPGRADE_PROPERTY: UNDER_WAY} if others_follow else {}),
                VERSION_PROPERTY: str(SCHEMA_VERSION),
            },
            raise_if_not_exists=False,
            commit_properties=properties(note),
        )
    return True


def end_upgrade(table: SystemTable[Any], location: str, options: StorageOptions, note: Note) -> None:
    """All seven are of today's schema: take the mark of an upgrade off the table that was the first. Raises what
    `upgrade` raises."""
    handle = open_at(location, options, name=table.name)
    if not take_snapshot(handle, table.name).upgrading:
        return
    with answering(table.name):
        handle.alter.set_table_properties(
            {UPGRADE_PROPERTY: "done"}, raise_if_not_exists=False, commit_properties=properties(note)
        )
