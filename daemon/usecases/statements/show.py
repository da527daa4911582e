"""SHOW and DESCRIBE of what is managed, by the same reading as the commands that show it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final

import pyarrow as pa

from lakewarden.catalog.lineage.queries import Direction
from lakewarden.catalog.model.rows import GONE, HealthRow, RunRow, TableRow
from lakewarden.catalog.model.table_deletes import DeleteFiles
from lakewarden.catalog.policy.keys import POLICY_KEYS, format_value
from lakewarden.catalog.registry.governance import governed
from lakewarden.catalog.state.port import Run
from lakewarden.catalog.system.port import HEALTH
from lakewarden.catalog.units import about_bytes, count_of
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.lineage.edges import named_edges
from lakewarden.daemon.usecases.lineage.views import NamedEdge
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.daemon.usecases.runs.listing import runs_now
from lakewarden.daemon.usecases.statements.statement_answers import table_of
from lakewarden.daemon.usecases.tables import fleet
from lakewarden.jobs.sql.wildcards import Wildcard, fitting

__all__ = ["describe", "show_lineage", "show_rollbacks", "show_runs", "show_tables"]

_TABLE_COLUMNS: Final = (
    "name", "state", "owner", "location", "format", "version", "files", "small_files", "bytes", "rows",
    "findings",
)  # fmt: skip
_WILDCARDS: Final = {"*": Wildcard.MANY, "%": Wildcard.MANY}
_OF_ROW: Final = (
    "name", "table_id", "format", "location", "owner", "state", "state_reason", "source", "registered_at",
    "registered_by", "updated_at", "updated_by", "paused", "hold",
)  # fmt: skip
_OF_HEALTH: Final = (
    "version", "committed_at", "files", "bytes", "small_files", "rows", "tombstones", "tombstone_bytes",
    "oldest_tombstone_at", "last_vacuum_at", "last_compaction_at", "observed_at",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class _ShownStatement:
    """One thing that DESCRIBE MANAGED tells."""

    name: str
    value: str | None
    origin: str | None = None
    """The level that a policy comes from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _ShownRun:
    """One row of SHOW RUNS."""

    run_id: str
    name: str
    action: str
    state: str
    """The state of an unfinished run, or the outcome."""
    because: str
    message: str | None = None
    files: int | None = None
    """The result; bytes and seconds likewise."""
    bytes: int | None = None
    seconds: float | None = None
    committed_version: int | None = None
    queued_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _ShownRollback:
    """A plan or rollback."""

    rollback_id: str
    hash: str
    name: str | None
    """The table that it begins with."""
    state: str
    undo: bool
    """Whether the rollback is being undone."""
    tables: int
    actor: str | None
    recorded_at: datetime
    undo_until: datetime | None
    message: str | None


def show_tables(services: Services, pattern: str | None) -> pa.Table:
    """Every managed table with its health; with a pattern those whose name, with its database or without, is like it:
    `*` or `%` stands for anything, `|` for or, and case does not matter."""
    found = fleet(services.store).select(list(_TABLE_COLUMNS))
    if pattern is None:
        return found
    wanted = [fitting(_WILDCARDS.get(sign, sign) for sign in one.strip()) for one in pattern.split("|")]
    names = found.column("name").to_pylist()
    fits = [any(is_like(name) or is_like(name.rpartition(".")[2]) for is_like in wanted) for name in names]
    return found.filter(pa.array(fits, pa.bool_()))


def describe(services: Services, where: str) -> pa.Table:
    """All that is known and wished of one table: its row, its health, its findings, its policies."""
    row = services.registry.resolve(where, gone=True)
    return table_of(_ShownStatement, _told(services, row))


def show_runs(services: Services, where: str | None, limit: int) -> pa.Table:
    """What is queued and running, then what is finished, newest first."""
    table_id = None if where is None else services.registry.resolve(where, gone=True).table_id
    found = runs_now(services, table_id)
    rows = [*map(_unfinished, found.unfinished), *map(_finished, found.finished)]
    return table_of(_ShownRun, rows[:limit])


def show_lineage(services: Services, where: str) -> pa.Table:
    """The edges around a table: the newest between each two tables, as far as anything leads."""
    row = services.registry.resolve(where, gone=True)
    edges = named_edges(services.store, row, Direction.BOTH, versions=False)
    return table_of(NamedEdge, edges).drop_columns(["output_id", "input_id"])


def show_rollbacks(services: Services) -> pa.Table:
    """Every plan and rollback on record, newest first."""
    rows = [
        _ShownRollback(
            rollback_id=one.head.rollback_id,
            hash=one.head.plan_hash,
            name=one.head.name,
            state=one.head.state.value,
            undo=one.head.undo,
            tables=one.tables,
            actor=one.head.actor,
            recorded_at=one.head.recorded_at,
            undo_until=one.head.undo_until,
            message=one.head.message,
        )
        for one in rollbacks_of_services(services).journal.all()
    ]
    return table_of(_ShownRollback, reversed(rows))


def _told(services: Services, row: TableRow) -> Iterator[_ShownStatement]:
    yield from (_ShownStatement(name=name, value=_text(getattr(row, name))) for name in _OF_ROW)
    health = services.store.rows(HEALTH).get(row.table_id)
    if health is not None:
        yield from _told_of(health)
    if row.state not in GONE:
        policy = governed(services.registry, row.table_id).policy
        for key in POLICY_KEYS:
            value = format_value(key.key, getattr(policy.settings, key.field))
            yield _ShownStatement(name=key.key, value=value, origin=policy.origins.get(key.key, "default"))


def _told_of(health: HealthRow) -> Iterator[_ShownStatement]:
    yield from (_ShownStatement(name=name, value=_text(getattr(health, name))) for name in _OF_HEALTH)
    for one in health.deletes:
        yield _ShownStatement(name=f"deletes: {one.kind}", value=_deletes(one))
    for piled in fields(health.backlog):
        yield _ShownStatement(name=f"backlog: {piled.name}", value=_text(getattr(health.backlog, piled.name)))
    for finding in health.findings:
        yield _ShownStatement(
            name=f"finding: {finding.check}", value=f"{finding.severity}: {finding.message}"
        )


def _deletes(one: DeleteFiles) -> str:
    size = "" if one.bytes is None else f", {about_bytes(one.bytes)}"
    return f"{count_of(one.rows, 'row')} in {count_of(one.files, 'file')}{size}"


def _text(value: object) -> str | None:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return None if value is None else str(value)


def _unfinished(run: Run) -> _ShownRun:
    request = run.request
    return _ShownRun(
        run_id=request.run_id,
        name=request.name,
        action=request.action.value,
        state=run.state.value,
        because=request.because,
        queued_at=run.queued_at,
    )


def _finished(run: RunRow) -> _ShownRun:
    return _ShownRun(
        run_id=run.run_id,
        name=run.name,
        action=run.action.value,
        state=run.outcome.value,
        because=run.because,
        message=run.message,
        files=run.actual_files,
        bytes=run.actual_bytes,
        seconds=run.actual_seconds,
        committed_version=run.committed_version,
        queued_at=run.queued_at,
        finished_at=run.finished_at,
    )
