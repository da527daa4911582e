"""What a statement means: its compiled steps rehearsed by Spark's queries, and the same asked of the other database.

A write of a Delta table costs four times as much as a query; the meaning of a statement shows in the rows alone. What
Delta makes of a step is for the tests that run a few statements of each kind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.merges.merge_drafts import merge_draft
from lakewarden.jobs.sql.compile.reading import Draft, draft_of
from lakewarden.jobs.sql.compile.upserts.upsert_drafts import is_upsert, upsert_draft
from lakewarden.jobs.sql.compile.values import (
    ColumnType,
    Dialect,
    MatchPolicy,
    SqlStep,
    StepKind,
    TableName,
    TableSchema,
)
from support.two_databases.rehearsal import World, rehearsed
from support.two_databases.sides import COLUMNS, DOUBLE, INT, ROWS, TEXT, Connection, Rows

__all__ = ["WORLD", "Meaning", "meaning", "theirs"]

_TYPES: Final = {INT: "int", TEXT: "string", DOUBLE: "double"}
WORLD: Final = World(
    schemas={
        table: tuple(ColumnType(name=name, type=_TYPES[kind]) for name, kind in columns.items())
        for table, columns in COLUMNS.items()
    },
    rows=ROWS,
)
"""The three tables of `sides`, with the rows that tests begin with."""


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a statement does: how many rows it changes, and what these tables hold then, in an order."""

    affected: int
    tables: Mapping[str, Sequence[tuple[object, ...]]]


def meaning(
    spark: SparkSession,
    statement: str,
    dialect: Dialect | None,
    *,
    world: World = WORLD,
    keys: Sequence[str] = (),
    policy: MatchPolicy | None = None,
) -> Meaning:
    """What the statement would do to the tables that it changes."""
    draft = _draft(statement, dialect)
    if draft is None:  # Spark and Delta run it as it stands
        words = statement.split()
        verb = StepKind(words[0].lower())
        target = TableName(parts=(words[1 if verb is StepKind.UPDATE else 2],))
        steps: Sequence[SqlStep] = [SqlStep(kind=verb, target=target, sql=statement, because="")]
    else:
        schemas: dict[TableName, TableSchema] = {one: world.schemas[one.parts[-1]] for one in draft.tables}
        steps = compiled(draft, schemas, policy, tuple(keys)).steps
    done = {step.target.parts[-1]: rehearsed(spark, step, world) for step in steps}
    return Meaning(
        affected=sum(one.affected for one in done.values()),
        tables={table: _in_order(one.rows) for table, one in done.items()},
    )


def _draft(statement: str, dialect: Dialect | None) -> Draft | None:
    if is_upsert(statement):
        return upsert_draft(statement, dialect)
    if "MERGE INTO" in statement.upper():
        return merge_draft(statement, dialect)
    return draft_of(statement, dialect)


def theirs(connection: Connection, statement: str, *tables: str) -> Meaning:
    """What the other database makes of these tables; nothing stays."""
    connection.execute(b"BEGIN")
    try:
        affected = connection.execute(statement.encode()).rowcount
        held = {one: connection.execute(f"SELECT * FROM {one}".encode()).fetchall() for one in tables}
        return Meaning(affected=affected, tables={one: _in_order(rows) for one, rows in held.items()})
    finally:
        connection.execute(b"ROLLBACK")


def _in_order(rows: Rows) -> Sequence[tuple[object, ...]]:
    return sorted(map(tuple, rows), key=repr)
