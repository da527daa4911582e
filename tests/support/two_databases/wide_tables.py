"""The tables of changes over many types and odd names: their columns on both sides, and random rows for them."""

import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

from lakewarden.jobs.sql.compile.values import ColumnType, TableSchema
from support.two_databases.sides import Rows

__all__ = ["KEYED", "KINDS", "MYSQL_TYPES", "SCHEMAS", "TYPES", "created", "name", "ticked", "wide_rows"]

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
    "timestamp": "TIMESTAMP WITH TIME ZONE",
}
MYSQL_TYPES: Final = {
    **TYPES,
    "double": "DOUBLE",
    "float": "FLOAT",
    "decimal(9,2)": "DECIMAL(9,2)",
    "timestamp_ntz": "DATETIME(6)",
    "timestamp": "DATETIME(6)",
}
_TEXTS: Final = ("x", "y", "", "X", "it's", "x", "X", "x ", " x", "10", "a%b", "_", "\\", "中", "😀")
_COLUMNS: Final = {
    "t": {
        "id": "int", "k": "int", "a": "int", "Big": "bigint", "s": "string", "d": "double",
        "m": "decimal(9,2)",
        "Day": "date", "at": "timestamp_ntz", "b": "boolean", "select": "int", "o`d\"d; --": "string",
        "z": "timestamp",
    },
    "s": {"k": "int", "b": "int", "c": "string", "n": "double", "m": "decimal(9,2)", "Day": "date",
        "from": "int", "ch": "char(4)", "r": "float"},
    "u": {"k": "int", "e": "int", "Flag": "boolean", "s": "string", "z": "timestamp"},
    "p": {"k": "int", "j": "int", "a": "int", "s": "string", "d": "double", "m": "decimal(9,2)",
        "Day": "date"},
}  # fmt: skip
SCHEMAS: Final[Mapping[str, TableSchema]] = {
    table: tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())
    for table, columns in _COLUMNS.items()
}
KEYED: Final = "p"
KINDS: Final = {
    "int": "int", "bigint": "int", "string": "text", "double": "double", "decimal(9,2)": "decimal",
    "date": "date", "timestamp_ntz": "time", "boolean": "flag", "char(4)": "char", "float": "real",
    "timestamp": "instant",
}  # fmt: skip


def name(text: str) -> str:
    """A name as PostgreSQL reads it."""
    return (
        text
        if text.islower() and text not in ("select", "from") and text.isalnum()
        else '"' + text.replace('"', '""') + '"'
    )


def created(table: str, *, mysql: bool = False) -> str:
    """The statement that makes a table in PostgreSQL, or in MySQL: p has a key, k, and nothing else has one."""
    if mysql:
        listed = [f"{ticked(one.name)} {MYSQL_TYPES[one.type]} NULL" for one in SCHEMAS[table]]
        listed.append("place BIGINT INVISIBLE AUTO_INCREMENT PRIMARY KEY")
    else:
        listed = [f"{name(one.name)} {TYPES[one.type]}" for one in SCHEMAS[table]]
    return f"CREATE TABLE {table} ({', '.join(listed)}{', UNIQUE (k)' if table == KEYED else ''})"


def wide_rows(chance: random.Random, *, odd: bool = False) -> Mapping[str, Rows]:
    """Few rows, so that keys meet: NULLs, and rows that are there twice, among them; at times none. `odd` numbers
    are NaN and the like, which not every database has."""
    found: dict[str, Rows] = {}
    for table, columns in SCHEMAS.items():
        count = 0 if chance.random() < 0.08 else chance.randint(1, 7)
        rows = [tuple(_value(chance, one.type, odd=odd) for one in columns) for _ in range(count)]
        if table == KEYED:
            found[table] = list({row[0] if row[0] is not None else object(): row for row in rows}.values())
        else:
            found[table] = [*rows, *chance.sample(rows, k=min(count, chance.randint(0, 2)))]
    return found


def ticked(text: str) -> str:
    """A name as MySQL reads it, whatever it is."""
    return "`" + text.replace("`", "``") + "`"


def _value(chance: random.Random, kind: str, *, odd: bool) -> object:
    if chance.random() < 0.15:
        return None
    match KINDS[kind]:
        case "int":
            return chance.randint(0, 5)
        case "text":
            return chance.choice(_TEXTS)
        case "char":
            return chance.choice(("x", "X", " x", "it's", "ab", ""))
        case "double" | "real":
            number = chance.randint(-8, 8) / 4
            return (
                chance.choice((float("nan"), float("inf"), -0.0))
                if odd and chance.random() < 0.15
                else number
            )
        case "decimal":
            return (
                Decimal(chance.randint(-300, 300)) / 100
                if chance.random() < 0.5
                else Decimal(chance.randint(-2, 5))
            )
        case "date":
            return date(2024, 2, 28) + timedelta(days=chance.randint(0, 3))
        case "time":
            # not in the hour that is there twice, of which Spark takes the first and PostgreSQL the second
            begin = chance.choice(("2024-02-28 23:59:58", "2024-03-10 02:30:00"))
            return datetime.fromisoformat(begin) + timedelta(
                seconds=chance.randint(0, 3), microseconds=chance.choice((0, 1))
            )
        case "instant":
            begin = chance.choice(("2024-02-29 04:59:58", "2024-03-10 07:30:00", "2024-11-03 06:30:00"))
            return datetime.fromisoformat(begin).replace(tzinfo=UTC) + timedelta(seconds=chance.randint(0, 3))
        case _:
            return chance.random() < 0.5
