"""EXPLAIN GOVERNED: what a statement would be run as, by the logs of its tables alone where there is no session."""

from dataclasses import dataclass

import pyarrow as pa

from lakewarden.catalog.errors import NotFoundError, RefusedError, UsageError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.metastore.lookup import resolve
from lakewarden.daemon.installation.services import Services
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.values import (
    ColumnType,
    Compiled,
    MatchPolicy,
    TableName,
    TableSchema,
    keys_in,
)
from lakewarden.jobs.sql.statements import ChangeRows, Explain, Unmanaged

__all__ = ["StatementExplanation", "explain", "explanation_of", "plain_explanation", "steps_table"]

_FORMATS = ("delta", "parquet")


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementExplanation:
    """What would be run."""

    dialect: str
    target: str | None
    matches: str
    steps: tuple[str, ...]
    """Plain statements for Spark."""
    because: tuple[str, ...]
    """Of each step, why it has this form."""
    notes: tuple[str, ...] = ()


def explain(services: Services, asked: Explain, policy: MatchPolicy) -> StatementExplanation:
    """What a session would run, without one. Raises `RefusedError` where only a session knows the columns of a table,
    `UsageError` for a statement that is wrong."""
    if not isinstance(asked.statement, ChangeRows):
        return plain_explanation(asked.statement)
    draft = asked.statement.draft
    seen = {table: _observed(services, table) for table in draft.tables}
    schemas = {table: _columns(one) for table, one in seen.items()}
    return explanation_of(compiled(draft, schemas, policy, keys_in(seen[draft.tables[0]].properties)))


def explanation_of(done: Compiled) -> StatementExplanation:
    """A compiled statement for people and programs."""
    return StatementExplanation(
        dialect=done.dialect.value,
        target=", ".join(str(step.target) for step in done.steps),
        matches=str(done.matches),
        steps=tuple(step.sql for step in done.steps),
        because=tuple(step.because for step in done.steps),
        notes=done.notes,
    )


def plain_explanation(statement: Unmanaged) -> StatementExplanation:
    """A statement that Spark runs as it is."""
    text = statement.sql.strip().rstrip(";")
    if not text:
        raise UsageError("There is nothing to explain.", hint="Write EXPLAIN GOVERNED UPDATE ...")
    because = ("Spark runs it as it is.",)
    return StatementExplanation(
        dialect="spark", target=None, matches="error", steps=(text,), because=because, notes=statement.notes
    )


def steps_table(done: StatementExplanation) -> pa.Table:
    """One row per step."""
    numbers = range(1, len(done.steps) + 1)
    return pa.table(
        {
            "step": pa.array(numbers, pa.int32()),
            "statement": pa.array(done.steps, pa.string()),
            "because": pa.array(done.because, pa.string()),
            "notes": pa.array([" ".join(done.notes)] * len(done.steps), pa.string()),
        }
    )


def _observed(services: Services, table: TableName) -> Observation:
    """What the newest version of the table's log says."""
    location = _location(services, table)
    reader = services.registry.reader_at(location, str(table))
    seen = reader.observe(location)
    if isinstance(seen, LogProblem):
        raise RefusedError(
            f"The columns of {table} cannot be read: {seen.message}",
            hint="`lakewarden tables validate` says more.",
        )
    return seen


def _columns(seen: Observation) -> TableSchema:
    columns: list[ColumnType] = []
    for column in seen.schema:  # fields of structs follow them, as `struct.field`
        if not columns or not column.path.startswith(f"{columns[-1].name}."):
            columns.append(ColumnType(name=column.path, type=column.type))
    return tuple(columns)


def _location(services: Services, table: TableName) -> str:
    if len(table.parts) == 2 and table.parts[0].lower() in _FORMATS:
        return resolve(table.parts[1], None).location
    name = ".".join(("default", *table.parts)[-2:])
    try:
        managed = services.registry.resolve(name).location
    except NotFoundError:
        managed = None
    return managed or resolve(name, services.metastore).location
