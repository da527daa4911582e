"""From what the log says to a row of `lakewarden.health`. Pure."""

import hashlib
import json
from dataclasses import replace
from datetime import datetime

from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.pending_quarantine import Quarantine
from lakewarden.catalog.model.rows import Column, Finding, HealthRow, Severity, TableRow, TableState
from lakewarden.catalog.policy.effective import EffectivePolicy

__all__ = ["health_of", "schema_hash", "small_file_limit", "with_verdict"]


def small_file_limit(policy: EffectivePolicy) -> int:
    """Files below this many bytes are small: half of the compaction target."""
    return (policy.settings.compaction_target_bytes or 0) // 2


def schema_hash(columns: tuple[Column, ...]) -> str:
    """A short hash that changes exactly when a column's id, path, type, nullability or comment does."""
    text = json.dumps([[c.id, c.path, c.type, c.nullable, c.comment] for c in columns], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def health_of(
    row: TableRow,
    policy: EffectivePolicy,
    seen: Observation | LogProblem,
    findings: tuple[Finding, ...],
    *,
    now: datetime,
    before: HealthRow | None = None,
) -> HealthRow:
    """The health row for a table that was just read; `before` lends what a log does not tell (our own statistics)."""
    kept = (before.last_statistics_at, before.checked_at) if before else (None, None)
    left_behind = before.left_behind if before else ()
    if isinstance(seen, LogProblem):
        return HealthRow(
            table_id=row.table_id,
            name=row.name,
            version=before.version if before else None,
            head=before.head if before else None,
            findings=findings,
            last_statistics_at=kept[0],
            checked_at=kept[1],
            observed_at=now,
            left_behind=left_behind,
        )
    return HealthRow(
        table_id=row.table_id,
        name=row.name,
        version=seen.version,
        head=seen.head,
        committed_at=seen.committed_at,
        files=seen.files,
        bytes=seen.bytes,
        small_files=seen.sizes.below(small_file_limit(policy)),
        rows=seen.rows,
        deletion_vectors=seen.deletion_vectors,
        deleted_rows=seen.deleted_rows,
        partitions=seen.partitions,
        files_without_statistics=seen.files_without_statistics,
        tombstones=seen.tombstones,
        tombstone_bytes=seen.tombstone_bytes,
        oldest_tombstone_at=seen.oldest_tombstone_at,
        commits_since_checkpoint=seen.commits_since_checkpoint,
        schema_hash=schema_hash(seen.schema),
        first_version=seen.first_version,
        last_write_at=seen.last_write_at,
        last_vacuum_at=seen.last_vacuum_at,
        last_compaction_at=seen.last_compaction_at,
        last_statistics_at=kept[0],
        unsupported=seen.capabilities.unsupported,
        findings=findings,
        checked_at=kept[1],
        observed_at=now,
        left_behind=left_behind,
        deletes=seen.deletes,
        stored_rows=seen.stored_rows,
        backlog=seen.backlog,
    )


def with_verdict(row: TableRow, findings: tuple[Finding, ...]) -> TableRow:
    """The row as validation leaves it: an error quarantines a table, none releases it. Other states stay."""
    if row.state not in (TableState.ACTIVE, TableState.QUARANTINED):
        return row
    errors = [finding.message for finding in findings if finding.severity is Severity.ERROR]
    aside = Quarantine.of(row)
    if aside is not None:  # files can be sound and rows bad: the rollback's undo, or an owner, ends this
        errors = [aside.why, *errors]
    state = TableState.QUARANTINED if errors else TableState.ACTIVE
    return replace(row, state=state, state_reason=" ".join(errors) or None)
