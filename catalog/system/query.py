"""SELECT on the system tables without a JVM: Spark's SQL on the outside, DataFusion (inside deltalake) on the inside.

The statement is parsed and rebuilt before it runs, so nothing but queries over the seven tables gets through,
in Spark's notation: `policy.mode`, `findings[0].check`, `properties['x']`, `explode(findings)`, `VERSION AS OF 42`,
`TIMESTAMP AS OF '2026-11-21T08:00:00Z'`. Every table is read at one version.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import sqlglot
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from lakewarden.catalog.bounds import MOST_DIGITS, as_whole
from lakewarden.catalog.clock import from_millis
from lakewarden.catalog.errors import (
    LakewardenError,
    NotAllowedError,
    NotFoundError,
    UnreadableError,
    UsageError,
)
from lakewarden.catalog.system.codec import aligned
from lakewarden.catalog.system.handles import answering, no_version, open_at
from lakewarden.catalog.system.nested import nested_within_reason
from lakewarden.catalog.system.port import SYSTEM_TABLES, SystemStore
from lakewarden.catalog.system.schema import BUCKET, row_schema
from lakewarden.catalog.units import did_you_mean

__all__ = ["QueryResult", "opened", "query"]

_DATABASE = "lakewarden"
_TABLES = {str(table.name): table for table in SYSTEM_TABLES}
_EXAMPLE = "Try: SELECT name, state, policy.mode FROM lakewarden.tables ORDER BY row"
_SHOWS_COLUMNS = "SELECT * FROM ... LIMIT 1 shows the columns."


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryResult:
    """A result as it comes: each of the tables has this schema."""

    schema: pa.Schema
    tables: Iterator[pa.Table]


def query(store: SystemStore, sql: str) -> pa.Table:
    """The result of one SELECT (or WITH ... SELECT). Raises `UsageError` or `NotAllowedError` for anything else."""
    answer = opened(store, sql)
    return pa.concat_tables([answer.schema.empty_table(), *answer.tables])


@nested_within_reason()
def opened(store: SystemStore, sql: str) -> QueryResult:
    """The same, without waiting for all of it. Raises as `query` does, some of it from `tables`."""
    tree = _parsed(sql)
    for select in list(tree.find_all(exp.Select)):
        _name_outputs(select)
    for column in tree.find_all(exp.Column):
        _drop_database(column)
    for dot in list(tree.find_all(exp.Dot)):
        _field_of_expression(dot)
    builder = QueryBuilder()
    for number, table in enumerate(list(_system_tables(tree))):
        handle = _handle(store, table)
        builder.register(f"t{number}", handle)
        table.replace(_source(table, handle, f"t{number}"))
    return _answer(builder, tree)


def _parsed(sql: str) -> exp.Query:
    try:
        statements = [one for one in sqlglot.parse(sql, dialect="spark") if one is not None]
    except SqlglotError as error:
        raise UsageError("The statement is not valid SQL.", hint=_EXAMPLE) from error
    if len(statements) != 1:
        raise UsageError("Give exactly one statement.", hint=_EXAMPLE)
    tree = statements[0]
    if not isinstance(tree, exp.Query) or tree.find(exp.Into, exp.Lock):
        raise NotAllowedError(
            "Only SELECT is answered here.",
            hint="Policies and owners: UPDATE lakewarden.tables SET ...; the rest has its own command.",
        )
    return normalize_identifiers(tree, dialect="spark")


def _system_tables(tree: exp.Query) -> Iterator[exp.Table]:
    shared = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        if isinstance(table.this, exp.Identifier) and not table.catalog:
            if table.db.lower() == _DATABASE and name in _TABLES:
                yield table
                continue
            if not table.db and name in shared:
                continue
        here = f"Here: {', '.join(f'{_DATABASE}.{one}' for one in _TABLES)}. Data is read with Spark."
        is_ours = table.db.lower() == _DATABASE and not table.catalog
        named = table.copy()
        named.set("alias", None)
        raise NotAllowedError(
            f"{named.sql('spark')} is not a system table.",
            hint=did_you_mean(name, _TABLES, otherwise=here) if is_ours else here,
        )


def _handle(store: SystemStore, table: exp.Table) -> DeltaTable:
    known = _TABLES[table.name.lower()]
    asked = table.args.get("version")
    if asked is None:
        return open_at(store.location(known), store.storage(), name=known.name)
    value = asked.expression
    if not isinstance(value, exp.Literal) or asked.args.get("kind") != "AS OF":
        raise UsageError("Time travel is VERSION AS OF n or TIMESTAMP AS OF 'time'.")
    if asked.this == "VERSION":
        version = as_whole(value.this, digits=MOST_DIGITS)
        if version is None:
            raise UsageError(f"{value.this} is not a version.", hint="VERSION AS OF takes a whole number.")
        # delta-rs looks the longer for a version that is not there the higher it is, and takes no number of 20 digits.
        if version > open_at(store.location(known), store.storage(), name=known.name).version():
            raise no_version(known.name, version)
        return open_at(store.location(known), store.storage(), name=known.name, version=version)
    moment = _moment(value.this)
    handle = open_at(store.location(known), store.storage(), name=known.name)
    with answering(known.name):
        handle.load_as_version(moment)
        committed_ms = handle.history(1)[0]["timestamp"]
    if from_millis(committed_ms) > moment:  # delta-rs gives the oldest version for any older time
        raise NotFoundError(
            f"lakewarden.{known.name} has no version as old as {value.this}.",
            hint="Versions are kept for the audit window.",
        )
    return handle


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"'{text}' is not a time.", hint="Write 2026-11-21T08:00:00Z; UTC is assumed."
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _source(table: exp.Table, handle: DeltaTable, registered: str) -> exp.Subquery:
    """The registered table under the name it was asked for, with today's columns in order,
    less the partition column."""
    present = {field.name for field in handle.schema().fields} - {BUCKET}
    columns = [
        exp.column(name, quoted=True) if name in present else exp.alias_(exp.null(), name, quoted=True)
        for name in row_schema(_TABLES[table.name.lower()]).names
    ]
    inner = exp.select(*columns).from_(exp.table_(registered))
    return inner.subquery(alias=table.alias or table.name.lower(), copy=False)


def _name_outputs(select: exp.Select) -> None:
    """Name what has no name as Spark does: `policy.mode` becomes `mode`, an expression its text."""
    for projection in list(select.expressions):
        if isinstance(projection, exp.Dot):
            name = projection.expression.name
        elif isinstance(projection, exp.Column):
            name = projection.name
        else:
            name = projection.sql("spark").lower()
        if not isinstance(projection, exp.Alias) and not projection.is_star:
            projection.replace(exp.alias_(projection.copy(), name, quoted=True))


def _drop_database(column: exp.Column) -> None:
    parts = column.parts
    if len(parts) > 2 and parts[0].name.lower() == _DATABASE:
        column.set("catalog" if len(parts) == 4 else "db", None)


def _field_of_expression(dot: exp.Dot) -> None:
    if not isinstance(dot.this, exp.Identifier | exp.Column | exp.Star):
        dot.replace(exp.func("get_field", dot.this.copy(), exp.Literal.string(dot.expression.name)))


def _answer(builder: QueryBuilder, tree: exp.Query) -> QueryResult:
    with _in_our_words():
        found = pa.RecordBatchReader.from_stream(builder.execute(tree.sql("postgres")))
    schema = pa.schema([(field.name, _plain(field.type)) for field in found.schema])
    return QueryResult(schema=schema, tables=_tables(found, schema))


def _tables(found: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.Table]:
    with _in_our_words():
        for batch in found:
            yield aligned(pa.Table.from_batches([batch]), schema)


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except DeltaError as error:
        raise _explained(str(error)) from error
    except MemoryError:
        raise
    except pa.ArrowException as error:
        raise _failed(str(error)) from error


def _failed(message: str) -> LakewardenError:
    """A sentence of our own for what came up while rows were read."""
    if "Parquet error" in message or "Object Store error" in message:
        return UnreadableError(
            "A file of a system table cannot be read.", hint="`lakewarden system verify` says which."
        )
    return UsageError(
        "The statement fails on a value that it meets.",
        hint="Look for a text that is converted to a number or a time, and for a division by zero.",
    )


def _explained(message: str) -> UsageError:
    """A sentence of our own for what DataFusion refused."""
    if missing := re.search(r"No field named ([^\s]+?)\.?\s", message + " "):
        name = missing[1].replace('"', "").rpartition(".")[2]
        valid = message.partition("Valid fields are ")[2].rstrip(". \n").split(", ")
        columns = {one.rpartition(".")[2] for one in valid} - {BUCKET}
        hint = did_you_mean(name, columns, otherwise=_SHOWS_COLUMNS)
        return UsageError(f"There is no column {name}.", hint=hint)
    if inside := re.search(r"Field (\S+) not found in struct", message):
        return UsageError(f"There is no field {inside[1]}.", hint=_SHOWS_COLUMNS)
    if function := re.search(r"Invalid function '([^']+)'", message):
        return UsageError(f"There is no function {function[1]} here.", hint=_EXAMPLE)
    if "coerce" in message or "type" in message.lower():
        return UsageError(
            "Values of types that do not go together are compared or combined.",
            hint="Sizes are bytes, durations seconds, times TIMESTAMP '2026-11-21 08:00:00'.",
        )
    return UsageError("The system tables cannot answer this statement.", hint=_EXAMPLE)


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type as the row types have it: no views, no large variants."""
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind
