"""What can be wrong with a system table: the values that `verify` gives and `repair` plans by."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lakewarden.catalog.system.port import SystemTable

__all__ = ["Damage", "Problem"]


class Damage(StrEnum):
    """What can be wrong with a system table."""

    TABLE_MISSING = "table_missing"
    LOG_BROKEN = "log_broken"
    CHECKPOINT_BROKEN = "checkpoint_broken"
    FILE_MISSING = "file_missing"
    FILE_UNREADABLE = "file_unreadable"
    ROW_DUPLICATE = "row_duplicate"
    ROW_MISPLACED = "row_misplaced"
    ROW_UNREADABLE = "row_unreadable"
    SELF_MISSING = "self_missing"
    PROPERTIES = "properties"
    SCHEMA_OLD = "schema_old"
    OLDER = "older"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing that is wrong with a system table."""

    table: SystemTable[Any]
    damage: Damage
    """A checkpoint alone is `checkpoint_broken` if sound commits tell all that it told; else the log is."""
    message: str
    path: str | None = None
    """The file concerned, relative to the table."""
    rows: int | None = None
    """How many rows, if known."""
    covered_by: int | None = None
    """The sound checkpoint after the damage from which the newest version can be read all the same, if there is one."""
