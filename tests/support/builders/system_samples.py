"""Rows of every system table, made by number: equal numbers make equal rows."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from lakewarden.catalog.model.rows import (
    DELTA,
    Action,
    AuditRow,
    Change,
    Column,
    ColumnChange,
    Confidence,
    Dependency,
    Finding,
    HealthRow,
    LineageRow,
    Mark,
    MarkVerdict,
    Outcome,
    PolicySettings,
    RollbackRow,
    RollbackState,
    RollbackStep,
    RunRow,
    SchemaRow,
    Severity,
    Source,
    SystemRow,
    TableRow,
    Trigger,
)
from lakewarden.catalog.system.port import SystemTable, SystemTableName
from lakewarden.catalog.system.schema import stored_schema, table_properties

NOW = datetime(2026, 11, 21, 8, 30, 15, 123456, tzinfo=UTC)


def table_row(number: int, *, owner: str = "ana") -> TableRow:
    """A registered table; some have policies, dependencies, properties."""
    return TableRow(
        row=number,
        table_id=f"table-{number:06d}",
        name=f"db{number % 7}.t{number}",
        format=DELTA,
        location=f"file:///warehouse/db{number % 7}/t{number}",
        owner=owner,
        source=Source.REGISTER,
        registered_at=NOW,
        registered_by="ana",
        updated_at=NOW + timedelta(microseconds=number),
        updated_by="ana",
        policy=PolicySettings(vacuum_retention_seconds=86_400 * number) if number % 2 else PolicySettings(),
        dependencies=(Dependency(upstream="table-000000", trigger=Trigger.ON_COMMIT),)
        if number % 3 == 0
        else (),
        properties={"note": 'a "quoted"\nline', "größe": "1"} if number % 5 == 0 else {},
        format_ids=(f"uuid-{number}", f"uuid-{number}-b"),
        paused="maintenance" if number % 4 == 0 else None,
        marks=(
            Mark(version=3, verdict=MarkVerdict.BAD, by="ana", at=NOW, format_id="u1", note="half a file"),
            Mark(version=5, verdict=MarkVerdict.CLEAN, by="bo", at=NOW),
        )[: number % 3],
    )


def health_row(number: int) -> HealthRow:
    """Health with and without findings."""
    findings = (
        Finding(check="log.contiguous", severity=Severity.ERROR, message="version 3 is missing", since=NOW),
        Finding(check="owner.set", severity=Severity.INFO, message="nobody", since=NOW),
    )
    return HealthRow(
        table_id=f"table-{number:06d}",
        name=f"db.t{number}",
        version=number,
        committed_at=NOW,
        files=3,
        bytes=1 << 40,
        unsupported=("variantType",) if number % 2 else (),
        findings=findings[: number % 3],
        observed_at=NOW,
    )


def sample(table: SystemTable[Any], number: int) -> Any:
    """Row `number` of a system table."""
    makers: dict[SystemTableName, SystemRow] = {
        SystemTableName.TABLES: table_row(number),
        SystemTableName.HEALTH: health_row(number),
        SystemTableName.LINEAGE: LineageRow(
            output_id=f"table-{number:06d}",
            output_version=7,
            input_id="table-000000",
            input_version=None if number % 2 else number,
            operation="append",
            confidence=Confidence.COMMITTED,
            recorded_at=NOW,
        ),
        SystemTableName.SCHEMAS: SchemaRow(
            table_id=f"table-{number:06d}",
            version=number,
            schema_id=1,
            columns=(
                Column(id=1, path="a", type="bigint"),
                Column(id=2, path="b.c", type="string", comment="ü"),
            ),
            changes=(ColumnChange(column_id=2, change=Change.ADD, after="string"),),
            changed_at=NOW,
        ),
        SystemTableName.RUNS: RunRow(
            run_id=f"run-{number:06d}",
            table_id="table-000001",
            name="db.t1",
            action=Action.VACUUM,
            because="12 files are old",
            outcome=Outcome.SUCCEEDED,
            predicted_seconds=0.25,
            queued_at=NOW,
            finished_at=NOW + timedelta(seconds=number),
        ),
        SystemTableName.ROLLBACKS: RollbackRow(
            rollback_id="rollback-1",
            plan_hash="abc",
            step=number,
            table_id="table-000001",
            from_version=9,
            to_version=7,
            state=RollbackState.PLANNED,
            recorded_at=NOW,
            kind=RollbackStep.PROPERTIES if number % 2 else RollbackStep.RESTORE,
            payload='{"a": 1}' if number % 3 else None,
            undo_until=NOW + timedelta(days=7) if number % 4 else None,
            format_id="u1" if number % 3 else None,
        ),
        SystemTableName.AUDIT: AuditRow(
            audit_id=f"audit-{number:06d}",
            at=NOW,
            actor="ana",
            what="policy",
            on="db.t1",
            origin="cli",
            allowed=bool(number % 2),
        ),
    }
    return makers[table.name]


def make_older(folder: Path, table: SystemTable[Any], *, without: set[str], version: int = 0) -> None:
    """Put an empty table of an older schema version, less some columns, where today's one was."""
    shutil.rmtree(folder / table.name)
    columns = pa.schema([column for column in stored_schema(table) if column.name not in without])
    DeltaTable.create(
        str(folder / table.name),
        columns,
        partition_by=["bucket"],
        configuration={**table_properties(table), "lakewarden.schema_version": str(version)},
        raise_if_key_not_exists=False,
    )
