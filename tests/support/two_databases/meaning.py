"""What a statement means: its compiled steps rehearsed by Spark's queries, and the same asked of the other database.

A write of a Delta table costs four times as much as a query; the meaning of a statement shows in the rows alone. What
Delta makes of a step is for the tests that run a few statements of each kind.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import SparkSession

from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.merges.reading import merge_draft
from lakewarden.jobs.sql.compile.reading import Draft, draft_of
from lakewarden.jobs.sql.compile.upserts.reading import is_upsert, upsert_draft
from lakewarden.jobs.sql.compile.values import (
    ColumnType,
    Dialect,
    MatchPolicy,
    Step,
    StepKind,
    TableName,
    TableSchema,
)
from support.two_databases.rehearsal import Rehearsed, World, rehearsed
from support.two_databases.sides import COLUMNS, DOUBLE, INT, ROWS, TEXT, Connection

__all__ = ["WORLD", "meaning", "theirs"]

_TYPES: Final = {INT: "int", TEXT: "string", DOUBLE: "double"}
WORLD: Final = World(
    schemas={
        table: tuple(ColumnType(name=name, type=_TYPES[kind]) for name, kind in columns.items())
        for table, columns in COLUMNS.items()
    },
    rows=ROWS,
)
"""The three tables of `sides`, with the rows that tests begin with."""


def meaning(
    spark: SparkSession,
    statement: str,
    dialect: Dialect | None,
    *,
    world: World = WORLD,
    keys: Sequence[str] = (),
    policy: MatchPolicy | None = None,
) -> Mapping[str, Rehearsed]:
    """What each table that the statement changes would hold, and how many of its rows would have changed."""
    draft = _draft(statement, dialect)
    if draft is None:  # Spark and Delta run it as it stands
        words = statement.split()
        verb = StepKind(words[0].lower())
        target = TableName(parts=(words[1 if verb is StepKind.UPDATE else 2],))
        steps: Sequence[Step] = [Step(kind=verb, target=target, sql=statement, because="")]
    else:
        schemas: dict[TableName, TableSchema] = {one: world.schemas[one.parts[-1]] for one in draft.tables}
        steps = compiled(draft, schemas, policy, tuple(keys)).steps
    return {step.target.parts[-1]: rehearsed(spark, step, world) for step in steps}


def _draft(statement: str, dialect: Dialect | None) -> Draft | None:
    if is_upsert(statement):
        return upsert_draft(statement, dialect)
    if "MERGE INTO" in statement.upper():
        return merge_draft(statement, dialect)
    return draft_of(statement, dialect)


def theirs(connection: Connection, statement: str, *tables: str) -> tuple[int, Mapping[str, list[object]]]:
    """How many rows the other database says that it has changed, and what these tables hold then; nothing stays."""
    connection.execute(b"BEGIN")
    try:
        affected = connection.execute(statement.encode()).rowcount
        return affected, {
            one: sorted(map(tuple, connection.execute(f"SELECT * FROM {one}".encode()).fetchall()), key=repr)
            for one in tables
        }
    finally:
        connection.execute(b"ROLLBACK")
