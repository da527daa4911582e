"""What a compiled step would make of its table, asked of Spark by queries: nothing is written.

A MERGE is judged as Delta does it: a row with several matches is an error, unless all that can become of it is that it
is deleted; what several rows of the source match is asked in the same query that finds the new values.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lakewarden.jobs.sql.compile.reading import outer_tokens
from lakewarden.jobs.sql.compile.values import Step, TableSchema, quoted
from support.two_databases.sides import Rows

__all__ = ["Rehearsed", "SeveralMatchesError", "World", "rehearsed"]

_ROW = "lakewarden_row"


class SeveralMatchesError(Exception):
    """A row of the target has several matches: Delta would refuse."""


@dataclass(frozen=True, kw_only=True)
class World:
    """The tables that a statement is about, with their rows."""

    schemas: Mapping[str, TableSchema]
    rows: Mapping[str, Rows]


@dataclass(frozen=True, kw_only=True)
class Rehearsed:
    """What the table would hold, and how many rows the step would have changed."""

    rows: Rows
    affected: int


def rehearsed(spark: SparkSession, step: Step, world: World) -> Rehearsed:
    """What the step would do. Raises `SeveralMatchesError`, or Spark's own error."""
    name = step.target.parts[-1].lower()
    parts = _parts(step.sql)
    columns = [one.name for one in world.schemas[name]]
    known = [column.lower() for column in columns]
    rows: dict[int, tuple[Any, ...]] = dict(enumerate(tuple(row) for row in world.rows[name]))
    gone, changed, added = set[int](), dict[int, tuple[Any, ...]](), list[tuple[Any, ...]]()
    targets = [known.index(column.lower()) for column in parts.set_columns]
    if parts.sets is not None:
        for row, *values in _asked(
            spark, world, name, parts, [world.schemas[name][one].type for one in targets]
        ):
            if row in changed or row in gone:
                if parts.set_columns or parts.limited:
                    raise SeveralMatchesError(str(rows[row]))
                continue
            if not parts.set_columns:
                gone.add(row)
                continue
            new = list(rows[row])
            for place, value in zip(targets, values, strict=True):
                new[place] = value
            changed[row] = tuple(new)
    for values in _new_rows(spark, world, name, parts):
        given = dict(zip((column.lower() for column in parts.insert_columns), values, strict=True))
        added.append(tuple(given.get(column) for column in known))
    kept = [changed.get(number, row) for number, row in rows.items() if number not in gone]
    return Rehearsed(rows=[*kept, *added], affected=len(gone) + len(changed) + len(added))


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """A step's text taken apart. `sets` is None where nothing becomes of rows that match, and they match for nothing if
    `limited` does not hold; rows of the source are added if `inserted` holds."""

    target: str
    source: str
    on: str
    limited: str
    sets: tuple[tuple[str, str], ...] | None
    inserts: tuple[tuple[str, str], ...]
    inserted: str = ""

    @property
    def alias(self) -> str:
        """What the target is called."""
        name, _, alias = self.target.partition(" AS ")
        return alias or name

    @property
    def set_columns(self) -> list[str]:
        """The columns that are set, none where rows are deleted."""
        return [column for column, _ in self.sets or ()]

    @property
    def insert_columns(self) -> list[str]:
        """The columns of added rows."""
        return [column for column, _ in self.inserts]


def _parts(sql: str) -> _Parts:
    outer = outer_tokens(sql)
    words = [token.text.upper() for token in outer]

    def cut(begin: int, end: int | None) -> str:
        """The text between two words."""
        return sql[outer[begin].end + 1 : None if end is None else outer[end].start].strip()

    if words[0] == "MERGE":
        using, on = words.index("USING"), words.index("ON", words.index("USING"))
        whens = [n for n, word in enumerate(words) if _begins_clause(words[n:])]
        sets, limited, inserted = None, "", ""
        inserts: tuple[tuple[str, str], ...] = ()
        for place, end in zip(whens, [*whens[1:], None], strict=True):
            then = words.index("THEN", place)
            if words[place + 1] == "NOT":
                values = words.index("VALUES", then)
                names, given = _listed(cut(then + 1, values)), _listed(cut(values, end))
                inserts = tuple(zip((_name(one) for one in names), given, strict=True))
                inserted = cut(place + 3, then) if words[place + 3] == "AND" else ""
                continue
            limited = cut(place + 2, then) if words[place + 2] == "AND" else ""
            deletes = words[then + 1] == "DELETE"
            sets = () if deletes else _assignments(cut(words.index("SET", then), end))
        return _Parts(
            target=sql[outer[1].end + 1 : outer[using].start].strip(),
            source=cut(using, on),
            on=cut(on, whens[0]),
            limited=limited,
            sets=sets,
            inserts=inserts,
            inserted=inserted,
        )
    where = words.index("WHERE") if "WHERE" in words else None
    set_ = words.index("SET") if words[0] == "UPDATE" else None
    return _Parts(
        target=cut(0 if set_ is not None else 1, set_ if set_ is not None else where),
        source="(SELECT 1) AS `lakewarden_one`",
        on="TRUE" if where is None else cut(where, None),
        limited="",
        sets=() if set_ is None else _assignments(cut(set_, where)),
        inserts=(),
    )


def _begins_clause(words: Sequence[str]) -> bool:
    """Whether a clause of a MERGE begins here, and not a case of an expression."""
    return words[:2] == ["WHEN", "MATCHED"] or words[:3] == ["WHEN", "NOT", "MATCHED"]


def _listed(text: str) -> list[str]:
    """What stands between commas in parentheses."""
    return _split(text.strip()[1:-1])


def _split(text: str) -> list[str]:
    commas = [token.start for token in outer_tokens(text) if token.text == ","]
    ends = [*commas, len(text)]
    return [
        text[begin:end].strip() for begin, end in zip([0, *(one + 1 for one in commas)], ends, strict=True)
    ]


def _assignments(text: str) -> tuple[tuple[str, str], ...]:
    found = []
    for one in _split(text):
        equals = next(token.start for token in outer_tokens(one) if token.text == "=")
        found.append((_name(one[:equals]), one[equals + 1 :].strip()))
    return tuple(found)


def _name(text: str) -> str:
    """The last part of a name without its backticks."""
    return outer_tokens(text)[-1].text.replace("``", "`")


def _asked(spark: SparkSession, world: World, name: str, parts: _Parts, types: Sequence[str]) -> list[Any]:
    """A row for each match: which row of the target it is, and the values that it gets."""
    values = [f"CAST({value} AS {kind})" for (_, value), kind in zip(parts.sets or (), types, strict=True)]
    query = (
        f"SELECT {parts.alias}.`{_ROW}`{''.join(f', {value} AS `v{n}`' for n, value in enumerate(values))}"
        f" FROM `{_ROW}s` AS {parts.alias} JOIN {parts.source} ON {parts.on}"
        f"{f' WHERE {parts.limited}' if parts.limited else ''}"
    )
    return list(spark.sql(f"{_tables(world, name)} {query}").collect())


def _new_rows(spark: SparkSession, world: World, name: str, parts: _Parts) -> list[Any]:
    if not parts.inserts:
        return []
    types = {one.name.lower(): one.type for one in world.schemas[name]}
    values = ", ".join(
        f"CAST({value} AS {types[column.lower()]}) AS `v{n}`"
        for n, (column, value) in enumerate(parts.inserts)
    )
    where = f" WHERE {parts.inserted}" if parts.inserted else ""
    query = (
        f"SELECT {values} FROM {parts.source} LEFT ANTI JOIN `{_ROW}s` AS {parts.alias} ON {parts.on}{where}"
    )
    return list(spark.sql(f"{_tables(world, name)} {query}").collect())


def _tables(world: World, target: str) -> str:
    """The tables as queries before the statement; the target once more, with the number of each row."""
    ctes = [
        f"{quoted(name)} AS ({_relation(world.schemas[name], [(*row,) for row in rows])})"
        for name, rows in world.rows.items()
    ]
    numbered = [(number, *row) for number, row in enumerate(world.rows[target])]
    ctes.append(f"`{_ROW}s` AS ({_relation(world.schemas[target], numbered, number=True)})")
    return f"WITH {', '.join(ctes)}"


def _relation(schema: TableSchema, rows: Iterable[tuple[object, ...]], *, number: bool = False) -> str:
    names = [*([_ROW] if number else []), *(one.name for one in schema)]
    types = [*(["int"] if number else []), *(one.type for one in schema)]
    casts = ", ".join(
        f"{_cast(quoted(name), kind)} AS {quoted(name)}" for name, kind in zip(names, types, strict=True)
    )
    listed = [*(f"({', '.join(_literal(value) for value in row)})" for row in rows)]
    nothing = f"({', '.join(['NULL'] * len(names))})"
    columns = ", ".join(quoted(name) for name in names)
    empty = "" if listed else " WHERE false"
    return f"SELECT {casts} FROM VALUES {', '.join(listed or [nothing])} AS `rows`({columns}){empty}"


def _cast(value: str, kind: str) -> str:
    """A value as a table would give it: a CHAR with blanks at its end, which a cast puts nowhere."""
    if not kind.startswith("char("):
        return f"CAST({value} AS {kind})"
    return f"RPAD(CAST({value} AS STRING), {kind.removeprefix('char(').rstrip(')')}, ' ')"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
