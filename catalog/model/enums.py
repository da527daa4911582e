"""The fixed words that rows of the system tables use: formats, states, kinds, outcomes. Pure."""

from enum import StrEnum
from typing import Final, TypeAlias

__all__ = [
    "DELTA",
    "GONE",
    "PLACELESS",
    "Action",
    "Change",
    "Confidence",
    "MarkVerdict",
    "Mode",
    "OnRollback",
    "Outcome",
    "RollbackState",
    "RollbackStep",
    "RowKind",
    "RowsWrite",
    "Severity",
    "Source",
    "TableFormat",
    "TableState",
    "Trigger",
]


TableFormat: TypeAlias = str
"""A table's format by its name, as `lakewarden.tables` keeps it. Which there are, catalog/formats/registry.py says."""

DELTA: Final = "delta"
"""The format of our own tables, and of those that lakewarden converts."""


class RowKind(StrEnum):
    """What a row of `lakewarden.tables` speaks of: one table, or a scope (`*`, `db.*`) with its pause,
    hold and policy."""

    TABLE = "table"
    SCOPE = "scope"


class RowsWrite(StrEnum):
    """How rows that change are written. `table`: as the format's own properties of the table say. `rewrite`: files
    anew, without the old rows. `position`: where the old rows are. `vector`: the same in bitmaps, one for each file.
    `equality`: of an upsert, the keys of what is replaced and deleted beside the new rows; nothing of the table is
    read. `auto`: as is decided from what is known of the table."""

    TABLE = "table"
    REWRITE = "rewrite"
    POSITION = "position"
    VECTOR = "vector"
    EQUALITY = "equality"
    AUTO = "auto"


class TableState(StrEnum):
    """Life of a managed table.

    converting -> active <-> quarantined; active | quarantined -> dropped -> (undrop) active | (purge) purging
    -> purged.
    """

    CONVERTING = "converting"
    ACTIVE = "active"
    QUARANTINED = "quarantined"
    DROPPED = "dropped"
    PURGING = "purging"
    PURGED = "purged"


GONE: Final = (TableState.DROPPED, TableState.PURGING, TableState.PURGED)
"""The states of a table that has left the catalog, or is leaving."""
PLACELESS: Final = (TableState.DROPPED, TableState.PURGED)
"""The states in which a row no longer claims its folder; a table that is being purged does until its files are gone."""


class Source(StrEnum):
    """How a row came to be."""

    SELF = "self"
    CONVERT = "convert"
    REGISTER = "register"
    DISCOVER = "discover"


class Mode(StrEnum):
    """Whether the daemon may change a table or only look at it."""

    OBSERVE = "observe"
    MANAGE = "manage"


class Severity(StrEnum):
    """How bad a finding is: `error` quarantines, `warning` asks for attention, `info` is worth knowing."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Trigger(StrEnum):
    """When a declared dependency fires."""

    ON_COMMIT = "on_commit"
    ON_SCHEDULE = "on_schedule"
    NONE = "none"


class OnRollback(StrEnum):
    """What an upstream rollback does to the table that declares the dependency."""

    BLOCK = "block"
    PLAN = "plan"
    CASCADE = "cascade"


class MarkVerdict(StrEnum):
    """What an owner says of a version: `bad` is to be undone, `clean` depends on nothing that is undone."""

    BAD = "bad"
    CLEAN = "clean"


class Confidence(StrEnum):
    """Where a lineage edge is known from: the writer's own commit, a stream's checkpoint, the executed plan that a
    listener saw, something weaker, or what an owner declared."""

    COMMITTED = "committed"
    STREAM = "stream"
    PLAN = "plan"
    HINT = "hint"
    DECLARED = "declared"


class Action(StrEnum):
    """The kinds of work a run can be. Payloads are the typed values in jobs/actions."""

    CONVERT = "convert"
    VACUUM = "vacuum"
    COMPACT = "compact"
    STATISTICS = "statistics"
    LOG_CARE = "log_care"
    METADATA_CARE = "metadata_care"
    SYNC = "sync"
    PROPERTIES = "properties"
    PURGE = "purge"
    ROLLBACK = "rollback"


class RollbackState(StrEnum):
    """How far a rollback as a whole (step 0), or one of its steps, has come.

    planned -> intent -> done -> (undo) undoing -> compensated. `conflict`: somebody else wrote to a table, nothing of
    theirs was touched, and a person decides. A rollback that is `compensated` left every table as it was before; steps
    of it that were never done are `planned` again.
    """

    PLANNED = "planned"
    INTENT = "intent"
    DONE = "done"
    CONFLICT = "conflict"
    UNDOING = "undoing"
    COMPENSATED = "compensated"


class RollbackStep(StrEnum):
    """What a row of `lakewarden.rollbacks` is: the plan as a whole, or what is done to one table.

    `properties` and `reapply` follow the restore of their table: what it must not rewind, and the lost appends that are
    added again. `drop` and `quarantine` set a table aside that has no clean version (`to_version` -1); its data stays.
    `change` is no rollback's: what a statement over several tables changes in one of them, made on `from_version`.
    """

    PLAN = "plan"
    RESTORE = "restore"
    PROPERTIES = "properties"
    REMOVE_FILES = "remove_files"
    REAPPLY = "reapply"
    DROP = "drop"
    QUARANTINE = "quarantine"
    CHANGE = "change"


class Outcome(StrEnum):
    """How a finished run ended (`runs.outcome`)."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABANDONED = "abandoned"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class Change(StrEnum):
    """What a schema version did to a column."""

    ADD = "add"
    DROP = "drop"
    RENAME = "rename"
    MOVE = "move"
    TYPE = "type"
    NULLABILITY = "nullability"
