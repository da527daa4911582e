"""Expressions of dates and times, asked of Spark as they are compiled and of another database: the same values."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect
from support.two_databases.rehearsal import World, rehearsed
from support.two_databases.sides import Connection

__all__ = ["DATED", "dated_tables", "ours_and_theirs"]

_TYPES: Final = {
    "id": "int",
    "d": "date",
    "e": "date",
    "ts": "timestamp_ntz",
    "tz": "timestamp",
}
_SCHEMA: Final = tuple(ColumnType(name=name, type=kind) for name, kind in _TYPES.items())
_ROWS: Final = (
    (1, "2024-01-31", "2023-12-31", "2024-01-31 23:59:59", "2024-01-31 23:59:59"),
    (2, "2024-02-29", "2024-03-01", "2024-03-10 01:30:00", "2024-03-10 01:30:00"),
    (3, "2023-02-28", "2020-02-29", "2024-11-03 00:30:00", "2024-11-02 12:00:00"),
    (4, "2024-12-31", "2025-01-01", "2024-03-09 02:30:00", "2024-03-09 12:00:00"),
    (5, "1999-03-31", "1999-04-30", "1999-10-31 12:34:56", "1999-10-31 12:34:56"),
    (6, None, "2024-07-01", None, None),
)
DATED: Final = "dated"
"""The table: dates at the ends of months, times around the days on which clocks change in New York."""
_KINDS: Final = {"postgres": ("TIMESTAMP", "TIMESTAMPTZ"), "mysql": ("DATETIME", "TIMESTAMP NULL")}


def dated_tables(connection: Connection, dialect: str) -> None:
    """Make the table in the other database."""
    local, zoned = _KINDS[dialect]
    connection.execute(f"CREATE TABLE {DATED} (id INT, d DATE, e DATE, ts {local}, tz {zoned})".encode())
    for row in _ROWS:
        values = ", ".join("NULL" if one is None else f"'{one}'" for one in row)
        connection.execute(f"INSERT INTO {DATED} VALUES ({values})".encode())


def ours_and_theirs(
    spark: SparkSession, connection: Connection, dialect: Dialect, expressions: Sequence[str], kind: str
) -> tuple[Mapping[str, Sequence[str | None]], Mapping[str, Sequence[str | None]]]:
    """What each expression of this kind is for each row, here and there."""
    results = [f"r{number}" for number in range(len(expressions))]
    schema = (*_SCHEMA, *(ColumnType(name=name, type=kind) for name in results))
    sets = ", ".join(f"{name} = {one}" for name, one in zip(results, expressions, strict=True))
    draft = draft_of(f"UPDATE {DATED} SET {sets}", dialect)
    assert draft is not None
    (step,) = compiled(draft, {draft.tables[0]: schema}).steps
    rows = [(*row, *(None for _ in results)) for row in _ROWS]
    done = rehearsed(spark, step, World(schemas={DATED: schema}, rows={DATED: rows}))
    there = connection.execute(f"SELECT id, {', '.join(expressions)} FROM {DATED}".encode()).fetchall()
    ours = sorted((row[0], *row[len(_SCHEMA) :]) for row in done.rows)
    return _by_expression(expressions, ours), _by_expression(expressions, sorted(there))


def _by_expression(
    expressions: Sequence[str], rows: Sequence[Sequence[Any]]
) -> Mapping[str, Sequence[str | None]]:
    columns = zip(*(row[1:] for row in rows), strict=True)
    return {
        expression: [None if value is None else _form(value) for value in column]
        for expression, column in zip(expressions, columns, strict=True)
    }


def _form(value: Any) -> str:
    """A moment as this process reads it, which is how Spark gives it."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone().replace(tzinfo=None)
    return str(value)
