"""The rows that describe the system tables themselves: row 0 is `lakewarden.tables`, rows 1 to 6 are the others."""

import uuid
from datetime import datetime
from typing import Final

from lakewarden.catalog.model.rows import DELTA, Mode, PolicySettings, Source, TableRow
from lakewarden.catalog.system.port import SYSTEM_TABLES, SystemStore, SystemTableName
from lakewarden.catalog.system.schema import LAYOUTS

__all__ = ["ADMINS", "SYSTEM_TABLE_IDS", "system_rows", "system_table_id"]

ADMINS: Final = "admins"
"""Property of row 0: who may do everything, by name, separated by commas. `init` records who ran it."""
_NAMESPACE = uuid.UUID(
    "1a4e3a2d-6c61-6b65-8a72-64656e000000"
)  # version-5 ids of everything lakewarden calls itself


def system_table_id(name: SystemTableName) -> str:
    """The `table_id` of a system table: the same in every store, so that creating one again changes nothing."""
    return uuid.uuid5(_NAMESPACE, f"lakewarden.{name}").hex


SYSTEM_TABLE_IDS: Final = frozenset(system_table_id(table.name) for table in SYSTEM_TABLES)
"""The ids of all seven."""


def system_rows(store: SystemStore, *, now: datetime, actor: str) -> tuple[TableRow, ...]:
    """The first seven rows of `lakewarden.tables`. Their retention is the audit window: time travel is the trail.
    Row 0 says that `actor` is an admin."""
    return tuple(
        TableRow(
            row=number,
            table_id=system_table_id(table.name),
            name=f"lakewarden.{table.name}",
            format=DELTA,
            location=store.location(table),
            owner=actor,
            source=Source.SELF,
            registered_at=now,
            registered_by=actor,
            updated_at=now,
            updated_by=actor,
            policy=_policy(table.name),
            properties={ADMINS: actor} if number == 0 else {},
        )
        for number, table in enumerate(SYSTEM_TABLES)
    )


def _policy(name: SystemTableName) -> PolicySettings:
    seconds = int(LAYOUTS[name].audit_window.total_seconds())
    return PolicySettings(
        mode=Mode.MANAGE,
        # The past of a system table is read, never restored: undoing is a new edit.
        rollback_promise_seconds=0,
        vacuum_retention_seconds=seconds,
        log_retention_seconds=seconds,
    )
