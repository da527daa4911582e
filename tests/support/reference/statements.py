"""docs/reference/statements.md: what becomes of each construct in each dialect, found out by compiling it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect, TableSchema
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import ChangeRows

__all__ = ["statements_page"]

_TYPES: Final = {
    "t": "id int, k int, a int, s string, v varchar(10), d date, e date, ts timestamp_ntz, tz timestamp, n decimal",
    "s": "k int, b int, c string",
    "u": "k int, e int",
    "w": "k int, a int",
}
_KEYS: Final = ("k",)
_FOUR: Final = (Dialect.POSTGRES, Dialect.MYSQL, Dialect.TSQL, Dialect.TERADATA)
_GENERAL: Final = ("A row with several matches", "Several rows with one key", "All of the tables are changed")
"""How notes begin that are about every statement of a kind."""
_HEAD: Final = """# Statements, by construct and dialect

Each construct is compiled as its dialect's, for tables t, s, u and w. A dialect that has no such form is left out.

* **same**: it does what the dialect's own server does. The tests compare what passes with real servers of PostgreSQL
  and MariaDB, with SQL Server and Teradata by their manuals ([SQL](../sql.md#which-expressions-pass)).
* **differs**: it does so but for what the note says, which EXPLAIN GOVERNED shows, too.
* **refused**: nothing runs. The error shows the place; what to write instead stands behind it.

| construct | dialect | statement | result |
|---|---|---|---|
"""
_ALL: Final = "all"
_CONSTRUCTS: Final = Path(__file__).with_name("statements.json")
"""By construct: a statement of each dialect, or one of all."""


def statements_page() -> str:
    """The page."""
    return _HEAD + "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    constructs = json.loads(_CONSTRUCTS.read_text(encoding="utf-8"))
    for construct, statements in constructs.items():
        for dialect in _FOUR:
            text = statements.get(dialect, statements.get(_ALL))
            if text is not None:
                cells = (construct, dialect, f"`{text}`", _result(text, dialect))
                yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _result(text: str, dialect: Dialect) -> str:
    try:
        statement = parse(text, dialect)
        assert isinstance(statement, ChangeRows), text
        schemas = {table: _schema(table.parts[-1]) for table in statement.draft.tables}
        notes = compiled(statement.draft, schemas, table_keys=_KEYS).notes
    except UsageError as error:
        said = str(error).splitlines()[0].partition(" Line ")[0]
        return f"refused: {said} {error.hint}"
    told = [note for note in notes if not note.startswith(_GENERAL)]
    return f"differs: {' '.join(told)}" if told else "same"


def _schema(table: str) -> TableSchema:
    pairs = (one.split(" ") for one in _TYPES[table].split(", "))
    return tuple(
        ColumnType(name=name, type="decimal(10,2)" if kind == "decimal" else kind) for name, kind in pairs
    )
