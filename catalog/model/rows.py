"""The words of docs/concepts.md as frozen values: rows of the system tables and what they are made of.

Each row type below is one system table; its fields are that table's columns, in order. `catalog/system/schema.py`
derives the stored schema from these declarations, so a column is added here and nowhere else. The enumerations are in
catalog/model/enums.py and offered here too.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from lakewarden.catalog.model.enums import (
    DELTA,
    GONE,
    PLACELESS,
    Action,
    Change,
    Confidence,
    MarkVerdict,
    Mode,
    OnRollback,
    Outcome,
    RollbackState,
    RollbackStep,
    RowKind,
    Severity,
    Source,
    TableFormat,
    TableState,
    Trigger,
)
from lakewarden.catalog.model.table_deletes import Backlog, DeleteFiles

__all__ = [
    "DELTA",
    "GONE",
    "NO_PARENT",
    "PLACELESS",
    "UNKNOWN_PARENT",
    "Action",
    "AuditRow",
    "Change",
    "Column",
    "ColumnChange",
    "Confidence",
    "Dependency",
    "Finding",
    "HealthRow",
    "LineageRow",
    "Mark",
    "MarkVerdict",
    "Mode",
    "OnRollback",
    "Outcome",
    "PolicySettings",
    "RollbackRow",
    "RollbackState",
    "RollbackStep",
    "RowKind",
    "RunRow",
    "SchemaRow",
    "Severity",
    "Source",
    "SystemRow",
    "TableFormat",
    "TableRow",
    "TableState",
    "Trigger",
]


NO_PARENT: Final = -1
"""In the place of a parent: the version was made from nothing."""
UNKNOWN_PARENT: Final = -2
"""In the place of a parent: there is one, and nobody can say which."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dependency:
    """A declared table-level edge to an upstream table (by `table_id`)."""

    upstream: str
    trigger: Trigger = Trigger.NONE
    on_rollback: OnRollback = OnRollback.PLAN


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """What an owner says of one version, with a note of why."""

    version: int
    verdict: MarkVerdict
    by: str
    at: datetime
    format_id: str | None = None
    """The table's UUID at that version (None: not known): it tells the version from one of the same number in a table
    made anew at the same place. Of a log that somebody put an older one back over, it holds the head that it had."""
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing a check found: the check's documented name, a sentence, and since when it holds (UTC)."""

    check: str
    severity: Severity
    message: str
    since: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftVersions:
    """A range of versions of a table that head showed until somebody moved it back by hand."""

    first: int
    last: int
    back_to: int
    """The newest version that both heads were made from."""
    format_id: str
    """The table's UUID."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column, leaf or struct field, of a table's schema."""

    id: int
    """Stable across renames: the format's own field id where it has one (column mapping), else one that lakewarden
    assigns and keeps in `lakewarden.schemas`."""
    path: str
    """The dotted name."""
    type: str
    nullable: bool = True
    comment: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnChange:
    """One change of one column between two schema versions."""

    column_id: int
    change: Change
    before: str | None = None
    """A readable value."""
    after: str | None = None
    """Likewise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicySettings:
    """What somebody asked for at one level (defaults, namespace or table). None means: not asked at this level.

    Keys users write (`vacuum.retention`) map to these fields;
    see catalog/policy/effective.py for units, defaults, floors.
    Durations are whole seconds, sizes bytes, shares fractions of 1.
    """

    mode: Mode | None = None
    rollback_promise_seconds: int | None = None
    rollback_trust_plans: bool | None = None
    vacuum_enabled: bool | None = None
    vacuum_retention_seconds: int | None = None
    vacuum_full_every_seconds: int | None = None
    vacuum_max_share: float | None = None
    compaction_enabled: bool | None = None
    compaction_target_bytes: int | None = None
    compaction_min_small_files: int | None = None
    compaction_quiet_seconds: int | None = None
    compaction_beside_writers: bool | None = None
    compaction_deleted_share: float | None = None
    statistics_enabled: bool | None = None
    statistics_stale_share: float | None = None
    log_enabled: bool | None = None
    log_checkpoint_commits: int | None = None
    log_retention_seconds: int | None = None
    metastore_sync: bool | None = None
    quiet_hours: str | None = None
    access_closed: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """One row of `lakewarden.tables`: a managed table, or a scope carrying a pause, a hold or a policy. Row 0 is
    `lakewarden.tables` itself."""

    row: int
    table_id: str
    kind: RowKind = RowKind.TABLE
    name: str
    format: TableFormat | None = None
    location: str | None = None
    owner: str | None = None
    state: TableState = TableState.ACTIVE
    state_reason: str | None = None
    source: Source
    registered_at: datetime
    registered_by: str
    updated_at: datetime
    updated_by: str
    policy: PolicySettings = field(default_factory=PolicySettings)
    dependencies: tuple[Dependency, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    format_ids: tuple[str, ...] = ()
    """The history of format UUIDs, newest last."""
    aliases: tuple[str, ...] = ()
    """Former names and locations."""
    paused: str | None = None
    """The reason; None means it is not."""
    hold: str | None = None
    """Likewise."""
    marks: tuple[Mark, ...] = ()
    """By version, at most one each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HealthRow:
    """One row of `lakewarden.health`: what the last sweep that saw a change found. Sizes in bytes, times UTC. Times
    at which anyone did something are the newest, read from the log, not from our own memory."""

    table_id: str
    name: str
    version: int | None = None
    head: str | None = None
    """The state of head that was read (`Observation.head`); None in rows older than this column."""
    committed_at: datetime | None = None
    files: int | None = None
    bytes: int | None = None
    small_files: int | None = None
    rows: int | None = None
    """None where the log does not carry the counts."""
    deletion_vectors: int | None = None
    deleted_rows: int | None = None
    partitions: int | None = None
    files_without_statistics: int | None = None
    tombstones: int | None = None
    tombstone_bytes: int | None = None
    oldest_tombstone_at: datetime | None = None
    """The oldest removed file that no vacuum has dealt with yet."""
    commits_since_checkpoint: int | None = None
    schema_hash: str | None = None
    """Changes exactly when the schema does."""
    first_version: int | None = None
    last_write_at: datetime | None = None
    last_vacuum_at: datetime | None = None
    last_compaction_at: datetime | None = None
    last_statistics_at: datetime | None = None
    """By ourselves."""
    unsupported: tuple[str, ...] = ()
    """Protocol features that keep us from acting."""
    findings: tuple[Finding, ...] = ()
    checked_at: datetime | None = None
    """The last daily check."""
    observed_at: datetime
    """The last read."""
    left_behind: tuple[LeftVersions, ...] = ()
    """Versions that a head moved back by hand no longer goes back to."""
    deletes: tuple[DeleteFiles, ...] = ()
    """By kind."""
    stored_rows: int | None = None
    """Rows of its data files, deleted ones among them."""
    backlog: Backlog = field(default_factory=Backlog)


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageRow:
    """One version edge: (input table, input version) -> (output table, output version)."""

    output_id: str
    output_version: int
    output_parent: int | None = None
    """The version that the output was made from, `NO_PARENT` for a table's first; None in older rows."""
    input_id: str
    """The id of a table, or the location of what is not managed; catalog/lineage/edges.py has two more values, for
    "nothing was read" and "not known"."""
    input_version: int | None = None
    operation: str
    run_id: str | None = None
    """With confidence `stream`, the query's id."""
    confidence: Confidence
    recorded_at: datetime
    from_version: int | None = None
    """Only the changes after it were read."""
    output_format_id: str | None = None
    """The UUID tells versions of a recreated table from those of its predecessor; None where the writer did not say."""
    input_format_id: str | None = None
    """Likewise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaRow:
    """One schema version of a table, with its columns by stable id and what changed since the one before."""

    table_id: str
    version: int
    schema_id: int
    columns: tuple[Column, ...]
    changes: tuple[ColumnChange, ...] = ()
    changed_by: str | None = None
    changed_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRow:
    """One finished run. Predicted and actual cost in files, bytes and seconds."""

    run_id: str
    table_id: str
    name: str
    action: Action
    because: str
    requires_version: int | None = None
    committed_version: int | None = None
    outcome: Outcome
    error_class: str | None = None
    message: str | None = None
    hint: str | None = None
    """What a person can do about a failure."""
    attempt: int = 1
    predicted_files: int | None = None
    predicted_bytes: int | None = None
    predicted_seconds: float | None = None
    actual_files: int | None = None
    actual_bytes: int | None = None
    actual_seconds: float | None = None
    payload: str | None = None
    """The action as it was decided (jobs/actions/registry.py, JSON)."""
    details: str | None = None
    """What its executor adds (JSON)."""
    worker: str | None = None
    queued_at: datetime
    started_at: datetime | None = None
    finished_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackRow:
    """One step of a rollback's journal. Step 0 is the rollback as a whole: its state, its plan, who asked for it."""

    rollback_id: str
    plan_hash: str
    step: int
    table_id: str
    from_version: int
    to_version: int
    state: RollbackState
    new_version: int | None = None
    """What the step committed; None: nothing."""
    recorded_at: datetime
    kind: RollbackStep = RollbackStep.RESTORE
    wave: int = 0
    """Counts from the roots."""
    name: str | None = None
    location: str | None = None
    payload: str | None = None
    """JSON: the whole plan in step 0, what the step needs in the others, so that resuming and undoing need nothing
    else."""
    message: str | None = None
    """What stopped it."""
    actor: str | None = None
    undo: bool = False
    """The steps are being taken back."""
    undo_until: datetime | None = None
    """The end of the undo window."""
    format_id: str | None = None
    """The table's UUID at the version it comes from, None where it is not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditRow:
    """One governed call: actor, call, object, origin, and whether the call was allowed (or why not)."""

    audit_id: str
    at: datetime
    actor: str
    what: str
    on: str
    origin: str
    allowed: bool
    why: str | None = None


SystemRow = TableRow | HealthRow | LineageRow | SchemaRow | RunRow | RollbackRow | AuditRow
