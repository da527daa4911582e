"""What the product sees of a random fleet: commits as a log reader gives them, rows of `lakewarden.lineage`."""

import random
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.edges import rows_of
from lakewarden.catalog.lineage.versions import Version, history_of
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, RecordVerdict
from lakewarden.catalog.model.rows import Confidence, Dependency, LineageRow
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.jobs.rollback.plan.facts import TableFacts
from support.builders.commits import counted
from support.histories.fleets import CONTENT, Event, Fleet, Kind, Read, Told

__all__ = ["commit_of", "facts_of", "histories_of", "lineage_of", "rows_table"]

NOW = datetime(2026, 1, 1, tzinfo=UTC)
_ENGINE: dict[Kind, tuple[str, dict[str, str]]] = {
    Kind.CREATE: ("CREATE TABLE AS SELECT", {}),
    Kind.APPEND: ("WRITE", {"mode": "Append", "partitionBy": "[]"}),
    Kind.MERGE: ("MERGE", {}),
    Kind.UPDATE: ("UPDATE", {"predicate": '["(id = 1)"]'}),
    Kind.DELETE: ("DELETE", {"predicate": '["(id = 1)"]'}),
    Kind.PARTIAL: ("WRITE", {"mode": "Overwrite", "predicate": '["(day = 1)"]'}),
    Kind.OVERWRITE: ("WRITE", {"mode": "Overwrite", "partitionBy": "[]"}),
    Kind.REPLACE: ("CREATE OR REPLACE TABLE AS SELECT", {}),
    Kind.OPTIMIZE: ("OPTIMIZE", {}),
    Kind.VACUUM: ("VACUUM END", {}),
    Kind.PROPERTIES: ("SET TBLPROPERTIES", {"properties": '{"team":"sales","lakewarden.owner":"ana"}'}),
    Kind.OURS: ("SET TBLPROPERTIES", {"properties": '{"delta.logRetentionDuration":"interval 9 days"}'}),
    Kind.SCHEMA: ("ADD COLUMNS", {}),
    Kind.RESTORE: ("RESTORE", {}),
}
_QUIET = (Kind.OPTIMIZE, Kind.VACUUM, Kind.PROPERTIES, Kind.OURS, Kind.SCHEMA)
_METADATA = (Kind.CREATE, Kind.REPLACE, Kind.PROPERTIES, Kind.OURS, Kind.SCHEMA, Kind.RESTORE)


def commit_of(fleet: Fleet, event: Event) -> Commit:
    """One event as the log tells it."""
    operation, parameters = _ENGINE[event.kind]
    if event.target is not None:
        parameters = {"version": str(event.target), "timestamp": "null"}
    told = event.told is Told.COMMIT and event.kind in CONTENT
    record = record_of(fleet, event) if told else None
    return counted(
        version=event.place[2],
        committed_at=NOW,
        operation=operation,
        parameters=parameters,
        data_change=event.kind not in _QUIET and bool(event.added or event.hit),
        added_files=len(event.added),
        removed_files=len(event.hit),
        blind_append=event.kind is Kind.APPEND and not event.reads_self,
        run_id=event.run_id,
        lineage=record,
        lineage_verdict=RecordVerdict.ABSENT if record is None else RecordVerdict.COMPLETE,
        format_id=event.format_id if event.kind in _METADATA else None,
    )


def record_of(fleet: Fleet, event: Event) -> LineageRecord:
    """What a governed writer records of an event."""
    kind = Kind.REPLACE if event.kind is Kind.CREATE else event.kind
    return LineageRecord(
        run_id=event.run_id,
        operation=Operation(kind.value),
        user="ana",
        inputs=tuple(_input(fleet, one) for one in event.reads),
        reads_self=event.reads_self,
    )


def _input(fleet: Fleet, read: Read) -> LineageInput:
    table, _, version = read.place
    return LineageInput(
        table_id=table,
        location=f"file:///w/{table}",
        format="delta",
        version=version,
        from_version=read.after,
        format_id=fleet.at[read.place].format_id,
    )


def histories_of(
    fleet: Fleet, cut: dict[str, int], dropped: frozenset[str] = frozenset()
) -> dict[str, tuple[Version, ...]]:
    """The logs of the current lives; versions below `cut` are cleaned away, and what only they told with
    them. `dropped` tables have none any more."""
    histories = {}
    for table in fleet.lives:
        left = fleet.current(table)[cut.get(table, 0) :]
        commits = (commit_of(fleet, event) for event in left)
        whole = history_of(commits, head_id=fleet.head(table).format_id)
        histories[table] = () if table in dropped else whole
    return histories


def lineage_of(fleet: Fleet, chance: random.Random, cut: dict[str, int]) -> list[LineageRow]:
    """The rows that were harvested: all of former lives and of logs that were cleaned, some of the others."""
    rows: list[LineageRow] = []
    for event in fleet.events:
        table, life, version = event.place
        whole = life == fleet.lives[table] and table not in cut
        if whole and event.told in (Told.COMMIT, Told.NOTHING) and chance.random() < 0.5:
            continue
        before = fleet.at[table, life, version - 1].format_id if version else None
        (one,) = history_of([commit_of(fleet, event)], format_id=before)
        confidence = Confidence.COMMITTED
        if event.told in (Told.STREAM, Told.HINT):
            inputs = tuple(_input(fleet, read) for read in event.reads)
            one = replace(one, inputs=inputs, reads_self=event.reads_self, known=True, user="stream")
            confidence = Confidence.STREAM if event.told is Told.STREAM else Confidence.HINT
        rows.extend(rows_of(table, one, at=NOW, confidence=confidence))
    return rows


def rows_table(rows: list[LineageRow]) -> pa.Table:
    """Rows as the system table hands them out."""
    return codec(LINEAGE).encode(rows)


def facts_of(fleet: Fleet, dropped: frozenset[str] = frozenset()) -> dict[str, TableFacts]:
    """Facts of every table: it declares what it reads without telling, and knows which appends are whole."""
    return {
        table: TableFacts(
            table_id=table,
            name=f"db.{table}_renamed",
            location=f"file:///w/{table}",
            gone=table in dropped,
            dependencies=tuple(Dependency(upstream=one) for one in sorted(_untold(fleet, table))),
            intact=frozenset(
                event.place[2]
                for event in fleet.current(table)
                if event.added and set(event.added) <= set(fleet.files[fleet.head(table).place])
            ),
        )
        for table in fleet.lives
    }


def _untold(fleet: Fleet, table: str) -> set[str]:
    return {
        read.place[0]
        for event in fleet.events
        if event.place[0] == table and event.told in (Told.NOTHING, Told.HINT)
        for read in event.reads
    } - {table}
