"""The tables of changes over many types and odd names: their columns on both sides, and random rows for them."""

import random
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

from lakewarden.jobs.sql.compile.values import ColumnType, TableSchema
from support.two_databases.random_changes import TEXTS
from support.two_databases.sides import Rows

__all__ = ["KINDS", "SCHEMAS", "TYPES", "created", "name", "wide_rows"]

TYPES: Final = {
    "int": "INT",
    "bigint": "BIGINT",
    "string": "TEXT",
    "double": "DOUBLE PRECISION",
    "decimal(9,2)": "NUMERIC(9,2)",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
    "boolean": "BOOLEAN",
    "char(4)": "CHAR(4)",
    "float": "REAL",
}
_COLUMNS: Final = {
    "t": {
        "id": "int", "k": "int", "a": "int", "Big": "bigint", "s": "string", "d": "double",
        "m": "decimal(9,2)",
        "Day": "date", "at": "timestamp_ntz", "b": "boolean", "select": "int", "o`d\"d; --": "string",
    },
    "s": {"k": "int", "b": "int", "c": "string", "n": "double", "m": "decimal(9,2)", "Day": "date",
        "from": "int", "ch": "char(4)", "r": "float"},
    "u": {"k": "int", "e": "int", "Flag": "boolean", "s": "string"},
}  # fmt: skip
SCHEMAS: Final[Mapping[str, TableSchema]] = {
    table: tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())
    for table, columns in _COLUMNS.items()
}
KINDS: Final = {
    "int": "int", "bigint": "int", "string": "text", "double": "double", "decimal(9,2)": "decimal",
    "date": "date", "timestamp_ntz": "time", "boolean": "flag", "char(4)": "char", "float": "real",
}  # fmt: skip


def name(text: str) -> str:
    """A name as PostgreSQL reads it."""
    return (
        text
        if text.islower() and text not in ("select", "from") and text.isalnum()
        else '"' + text.replace('"', '""') + '"'
    )


def created(table: str) -> str:
    """The statement that makes a table in PostgreSQL."""
    columns = (f"{name(one.name)} {TYPES[one.type]}" for one in SCHEMAS[table])
    return f"CREATE TABLE {table} ({', '.join(columns)})"


def wide_rows(chance: random.Random) -> Mapping[str, Rows]:
    """Few rows, so that keys meet: NULLs, and rows that are there twice, among them; at times none."""
    found: dict[str, Rows] = {}
    for table, columns in SCHEMAS.items():
        count = 0 if chance.random() < 0.08 else chance.randint(1, 7)
        rows = [tuple(_value(chance, one.type) for one in columns) for _ in range(count)]
        found[table] = [*rows, *chance.sample(rows, k=min(count, chance.randint(0, 2)))]
    return found


def _value(chance: random.Random, kind: str) -> object:
    if chance.random() < 0.15:
        return None
    match KINDS[kind]:
        case "int":
            return chance.randint(0, 5)
        case "text":
            return chance.choice(TEXTS[:-1])
        case "char":
            return chance.choice(("x", "X", " x", "it's", "ab", ""))
        case "double" | "real":
            return chance.randint(-8, 8) / 4
        case "decimal":
            return (
                Decimal(chance.randint(-300, 300)) / 100
                if chance.random() < 0.5
                else Decimal(chance.randint(-2, 5))
            )
        case "date":
            return date(2024, 2, 28) + timedelta(days=chance.randint(0, 3))
        case "time":
            return datetime.fromisoformat("2024-02-28 23:59:58") + timedelta(
                seconds=chance.randint(0, 3), microseconds=chance.choice((0, 1))
            )
        case _:
            return chance.random() < 0.5
