"""What a compiled step would make of its table, asked of Spark by queries: nothing is written.

A MERGE is judged as Delta does it: of its clauses the first counts whose condition holds, and a row with several
matches that any clause is for is an error, unless all that can become of it is that it is deleted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lakewarden.jobs.sql.compile.reading import outer_tokens
from lakewarden.jobs.sql.compile.values import SqlStep, TableSchema, quoted
from support.two_databases.sides import Rows

__all__ = ["Rehearsed", "SeveralMatchesError", "World", "parts_of", "rehearsed"]

_ROW = "lakewarden_row"
_VERBS = ("UPDATE", "DELETE", "INSERT")


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


def rehearsed(spark: SparkSession, step: SqlStep, world: World) -> Rehearsed:
    """What the step would do. Raises `SeveralMatchesError`, or Spark's own error."""
    name = step.target.parts[-1].lower()
    parts = parts_of(step.sql)
    known = [one.name.lower() for one in world.schemas[name]]
    rows: dict[int, tuple[Any, ...]] = dict(enumerate(tuple(row) for row in world.rows[name]))
    gone, changed, added = set[int](), dict[int, tuple[Any, ...]](), list[tuple[Any, ...]]()
    seen = set[int]()
    for row, clause, values in _answers(spark, world, name, parts):
        if row is None:
            given = dict(zip((column for column, _ in clause.sets), values, strict=True))
            added.append(tuple(given.get(column) for column in known))
            continue
        if row in seen and not parts.deletes_alone:
            raise SeveralMatchesError(str(rows[row]))
        seen.add(row)
        if clause.verb == "DELETE":
            gone.add(row)
            continue
        new = list(rows[row])
        for (column, _), value in zip(clause.sets, values, strict=True):
            new[known.index(column)] = value
        changed[row] = tuple(new)
    kept = [changed.get(number, row) for number, row in rows.items() if number not in gone]
    return Rehearsed(rows=[*kept, *added], affected=len(gone) + len(changed) + len(added))


@dataclass(frozen=True, kw_only=True)
class _When:
    """A clause of a MERGE, for rows that satisfy `condition`, if there is one. `sets` are columns and their values."""

    verb: str
    condition: str = ""
    sets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """A step's text taken apart: clauses for rows that match, for rows of the source that match nothing, and for rows
    of the target that nothing matches."""

    target: str
    source: str
    on: str
    both: tuple[_When, ...] = ()
    added: tuple[_When, ...] = ()
    alone: tuple[_When, ...] = ()

    @property
    def alias(self) -> str:
        """What the target is called."""
        name, _, alias = self.target.partition(" AS ")
        return alias or name

    @property
    def deletes_alone(self) -> bool:
        """Whether all that can become of a row that matches is that it is deleted: then it may match several times."""
        return self.both == (_When(verb="DELETE"),)


def parts_of(sql: str) -> _Parts:
    outer = outer_tokens(sql)
    words = [token.text.upper() for token in outer]

    def cut(begin: int, end: int | None) -> str:
        """The text between two words."""
        return sql[outer[begin].end + 1 : None if end is None else outer[end].start].strip()

    if words[0] != "MERGE":
        where = words.index("WHERE") if "WHERE" in words else None
        set_ = words.index("SET") if words[0] == "UPDATE" else None
        return _Parts(
            target=cut(0 if set_ is not None else 1, set_ if set_ is not None else where),
            source="(SELECT 1) AS `lakewarden_one`",
            on="TRUE" if where is None else cut(where, None),
            both=(_When(verb=words[0], sets=() if set_ is None else _assignments(cut(set_, where))),),
        )
    using, on = words.index("USING"), words.index("ON", words.index("USING"))
    whens = [n for n in range(len(words)) if _begins_clause(words[n:])]
    found: dict[int, list[_When]] = {1: [], 2: [], 4: []}  # by the words after WHEN
    for place, end in zip(whens, [*whens[1:], None], strict=True):
        size = 1 if words[place + 1] == "MATCHED" else 4 if words[place + 3] == "BY" else 2
        then = next(n for n in range(place, len(words)) if words[n] == "THEN" and words[n + 1] in _VERBS)
        sets: tuple[tuple[str, str], ...] = ()
        if words[then + 1] == "UPDATE":
            sets = _assignments(cut(words.index("SET", then), end))
        elif words[then + 1] == "INSERT":
            values = words.index("VALUES", then)
            names = [_name(one) for one in _listed(cut(then + 1, values))]
            sets = tuple(zip(names, _listed(cut(values, end)), strict=True))
        condition = cut(place + size + 1, then) if words[place + size + 1] == "AND" else ""
        found[size].append(_When(verb=words[then + 1], condition=condition, sets=sets))
    return _Parts(
        target=sql[outer[1].end + 1 : outer[using].start].strip(),
        source=cut(using, on),
        on=cut(on, whens[0]),
        both=tuple(found[1]),
        added=tuple(found[2]),
        alone=tuple(found[4]),
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
    """The last part of a name without its backticks, in lower case."""
    return outer_tokens(text)[-1].text.replace("``", "`").lower()


def _answers(
    spark: SparkSession, world: World, name: str, parts: _Parts
) -> Iterator[tuple[int | None, _When, tuple[Any, ...]]]:
    """A row for each match, or each row without one: which row of the target it is, the clause that it is for, and the
    clause's values."""
    types = {one.name.lower(): one.type for one in world.schemas[name]}
    target = f"`{_ROW}s` AS {parts.alias}"
    row = f"{parts.alias}.`{_ROW}`"
    for clauses, first, tables in (
        (parts.both, row, f"{target} JOIN {parts.source} ON {parts.on}"),
        (parts.added, "CAST(NULL AS INT)", f"{parts.source} LEFT ANTI JOIN {target} ON {parts.on}"),
        (parts.alone, row, f"{target} LEFT ANTI JOIN {parts.source} ON {parts.on}"),
    ):
        if not clauses:
            continue
        turns = [f"WHEN ({clause.condition or 'TRUE'}) THEN" for clause in clauses]
        which = " ".join(f"{turn} {number}" for number, turn in enumerate(turns))
        values = [
            f"CASE {' '.join(f'{turn} NULL' for turn in turns[:number])} {turns[number]} "
            f"CAST({value} AS {types[column]}) END AS `v{number}_{n}`"
            for number, clause in enumerate(clauses)
            for n, (column, value) in enumerate(clause.sets)
        ]
        query = f"SELECT {', '.join([first, f'CASE {which} END', *values])} FROM {tables}"
        for place, number, *given in spark.sql(f"{_tables(world, name)} {query}").collect():
            if number is not None:
                start = sum(len(one.sets) for one in clauses[:number])
                clause = clauses[number]
                yield place, clause, tuple(given[start : start + len(clause.sets)])


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
