"""Small worlds for planner tests: one healthy managed table, changed by what the test says."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lakewarden.catalog.model.rows import (
    Action,
    Finding,
    HealthRow,
    Outcome,
    PolicySettings,
    RunRow,
    Severity,
    Source,
    TableRow,
)
from lakewarden.catalog.policy.scopes import govern, scopes_by_name
from lakewarden.catalog.state.port import Run, RunRequest, RunState
from lakewarden.jobs.actions.world import TableView

__all__ = ["DAY", "NOW", "finding", "health", "queued", "row", "run", "view"]

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def row(name: str = "db.t", **changes: Any) -> TableRow:
    """A table that lakewarden converted a week ago."""
    base = TableRow(
        row=1,
        table_id=f"id-{name}",
        name=name,
        location=f"file:///lake/{name.replace('.', '/')}",
        owner="ana",
        source=Source.CONVERT,
        registered_at=NOW - 7 * DAY,
        registered_by="ana",
        updated_at=NOW - 7 * DAY,
        updated_by="ana",
    )
    return replace(base, **changes)


def health(name: str = "db.t", **changes: Any) -> HealthRow:
    """A table in perfect health, written yesterday."""
    base = HealthRow(
        table_id=f"id-{name}",
        name=name,
        version=10,
        committed_at=NOW - DAY,
        files=100,
        bytes=100 * 2**27,
        small_files=0,
        rows=1_000_000,
        deletion_vectors=0,
        deleted_rows=0,
        partitions=1,
        files_without_statistics=0,
        tombstones=0,
        tombstone_bytes=0,
        commits_since_checkpoint=3,
        first_version=0,
        last_write_at=NOW - DAY,
        observed_at=NOW,
    )
    return replace(base, **changes)


def finding(check: str, message: str = "something is off") -> Finding:
    return Finding(check=check, severity=Severity.WARNING, message=message, since=NOW - DAY)


def view(
    name: str = "db.t",
    *,
    policy: PolicySettings | None = None,
    scopes: tuple[TableRow, ...] = (),
    row_changes: dict[str, Any] | None = None,
    **health_changes: Any,
) -> TableView:
    """The planner's view of one table."""
    one = row(name, policy=policy or PolicySettings(), **(row_changes or {}))
    return TableView(governed=govern(one, scopes_by_name(scopes)), health=health(name, **health_changes))


def run(
    action: Action, outcome: Outcome = Outcome.SUCCEEDED, *, ago: timedelta = DAY, **changes: Any
) -> RunRow:
    """A finished run on `db.t`."""
    base = RunRow(
        run_id="run-1",
        table_id="id-db.t",
        name="db.t",
        action=action,
        because="a test said so",
        requires_version=9,
        outcome=outcome,
        queued_at=NOW - ago,
        started_at=NOW - ago,
        finished_at=NOW - ago,
    )
    return replace(base, **changes)


def queued(action: Action, name: str = "db.t") -> Run:
    """An unfinished run of a table."""
    request = RunRequest(
        run_id="run-7",
        table_id=f"id-{name}",
        name=name,
        location=f"file:///lake/{name.replace('.', '/')}",
        action=action,
        payload="{}",
        because="a test said so",
    )
    return Run(request=request, state=RunState.QUEUED, queued_at=NOW)
