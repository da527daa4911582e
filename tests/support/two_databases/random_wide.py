"""Random changes of PostgreSQL's dialect over tables of many types and odd names; a seed makes one.

Wider than `random_changes`: decimals, dates, timestamps, booleans; names that are words of SQL or hold quotes; targets
and sources that take each other's names; rows compared with rows, queries in queries, ANY and ALL, sets of queries.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from lakewarden.jobs.sql.compile.values import Dialect
from support.two_databases.sides import Rows
from support.two_databases.wide_tables import KINDS, SCHEMAS, TYPES, name, wide_rows

__all__ = ["WideChange", "random_wide_change"]

_ALIASES: Final = ("t", "t", "t", "x", "s", "Odd", 'a"b`c', "source", "target", "matches")


@dataclass(frozen=True, kw_only=True)
class WideChange:
    """A statement in its parts; `alias` is what the target is called, `by` a column of its sources, if it has any.

    With `pairs` what is set is written as one row; with `asked_of`, which follows its values, as a row of a query.
    """

    rows: Mapping[str, Rows]
    ctes: str
    alias: str
    sources: str
    sets: Mapping[str, str]
    where: str
    by: str
    pairs: bool = field(default=False)
    asked_of: str = field(default="")

    @property
    def text(self) -> str:
        """As a person writes it."""
        before, where = self.ctes, f" WHERE {self.where}" if self.where else ""
        target = "t" if self.alias == "t" else f"t AS {name(self.alias)}"
        if not self.sets:
            return f"{before}DELETE FROM {target}{f' USING {self.sources}' if self.sources else ''}{where}"
        listed = ", ".join(f"{name(column)} = {value}" for column, value in self.values.items())
        if self.asked_of:
            row = f"SELECT {', '.join(self.sets.values())} {self.asked_of}"
            listed = f"({', '.join(map(name, self.sets))}) = ({row})"
        elif self.pairs and len(self.sets) > 1:
            listed = f"({', '.join(map(name, self.sets))}) = ({', '.join(self.sets.values())})"
        return f"{before}UPDATE {target} SET {listed}{f' FROM {self.sources}' if self.sources else ''}{where}"

    @property
    def values(self) -> Mapping[str, str]:
        """What each column is set to, alone."""
        if not self.asked_of:
            return self.sets
        return {column: f"(SELECT {value} {self.asked_of})" for column, value in self.sets.items()}

    @property
    def asked(self) -> tuple[str, Dialect]:
        """What we are asked, and in whose words."""
        return self.text, Dialect.POSTGRES

    @property
    def changed(self) -> tuple[str, ...]:
        """The tables that it changes."""
        return ("t",)

    @property
    def matches(self) -> str:
        """The query for all matches: where the row of the target is, its new values, and what `by` says."""
        types = {one.name: TYPES[one.type] for one in SCHEMAS["t"]}
        alias = name(self.alias)
        values = [f"CAST({value} AS {types[column]})" for column, value in self.values.items()]
        sources = f", {self.sources}" if self.sources else ""
        where = f" WHERE {self.where}" if self.where else ""
        return (
            f"{self.ctes}SELECT {', '.join([f'{alias}.ctid', *values, self.by or '1'])} "
            f"FROM t AS {alias}{sources}{where}"
        )


def random_wide_change(seed: int) -> WideChange:
    """One statement and the tables it is about."""
    chance = random.Random(f"wide {seed}")
    maker = _Maker(chance, chance.choice(_ALIASES))
    ctes, sources = maker.sources()
    where = maker.condition(3) if chance.random() < 0.9 else ""
    if sources and chance.random() < 0.85:
        where = f"{maker.link()} AND ({where})" if where else maker.link()
    sets: dict[str, str] = {}
    asked_of = ""
    if chance.random() < 0.1:
        sets, asked_of = maker.row()
    elif chance.random() < 0.7:
        for column in chance.sample(SCHEMAS["t"], k=chance.choice((1, 1, 2, 3))):
            sets[column.name] = maker.value(KINDS[column.type], 2)
    return WideChange(
        rows=wide_rows(chance, odd=True),
        ctes=ctes,
        alias=maker.target,
        sources=sources,
        sets=sets,
        where=where,
        by=chance.choice(maker.orders) if maker.orders else "",
        pairs=chance.random() < 0.15,
        asked_of=asked_of,
    )


class _Maker:
    """Expressions over the target and over the sources that were chosen."""

    def __init__(self, chance: random.Random, target: str) -> None:
        self._chance, self.target = chance, target
        self._known: dict[str, list[str]] = {kind: [] for kind in set(KINDS.values())}
        self._keys: list[str] = []
        self.orders: list[str] = []
        self._depth = 0
        self._has(target, "t")
        self._own = name(target)

    def sources(self) -> tuple[str, str]:
        """What stands before the statement, and in FROM."""
        pick = self._chance.choice
        other = pick(
            [one for one in ("s", "t", "q", "Src", "target", "source", "matches") if one != self.target]
        )
        match self._chance.randrange(12):
            case 0 | 1 | 2:
                return "", ""
            case 3 | 4:
                self._source(other, "s")
                return "", "s" if other == "s" else f"s AS {name(other)}"
            case 5 | 6:
                self._source("l", "s")
                self._has("r", "u")
                kind = pick(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
                if self._chance.random() < 0.3:
                    return "", f"s AS l {kind} u AS r USING (k)"
                if self._chance.random() < 0.15:
                    return "", pick(
                        ("s AS l CROSS JOIN u AS r", "(SELECT * FROM s) AS l, (SELECT * FROM u) AS r")
                    )
                return "", f"s AS l {kind} u AS r ON l.k = r.k{pick(('', ' AND r.e > 3', ' AND l.b < r.e'))}"
            case 7:
                self._source(other, "t")
                return "", f"t AS {name(other)}"
            case 8:
                self._keys.append("q.k")
                self._known["int"] += ["q.k", "q.v"]
                self.orders.append("q.v")
                return "", f"({self._set_query()}) AS q(k, v)"
            case 9:
                self._keys.append("v.x")
                self._known["int"] += ["v.x", "v.y"]
                self._known["text"].append("v.z")
                self.orders.append("v.y")
                return "", "(VALUES (1, 5, 'x'), (2, NULL, 'y'), (4, 7, NULL)) AS v(x, y, z)"
            case 10:
                self._keys.append("w.k")
                self._known["int"] += ["w.k", "w.n"]
                self.orders.append("w.n")
                hidden = pick(("s", "w", "u"))
                return (
                    f"WITH {hidden} AS (SELECT k, count(*) AS n FROM {pick(('t', 's', 'u'))} GROUP BY k) ",
                    f"{hidden} AS w" if hidden != "w" else "w",
                )
            case _:
                self._source("l", "s")
                self._keys.append("w.k")
                self._known["int"] += ["w.k", "w.e"]
                return (
                    (
                        "WITH w1 AS (SELECT k, e FROM u WHERE e IS NOT NULL), w AS (SELECT DISTINCT k, "
                        "e FROM w1 WHERE k > 0) "
                    ),
                    "w, s AS l",
                )

    def link(self) -> str:
        """How the sources are tied to the target."""
        column = self._chance.choice(("k", "k", "k", "a", "id"))
        return f"{self._own}.{column} = {self._chance.choice(self._keys)}"

    def value(self, kind: str, depth: int) -> str:
        """An expression that a column of this kind can hold."""
        if self._chance.random() < 0.08:
            return "NULL"
        if kind == "flag":
            return (
                f"({self.condition(depth)})"
                if self._chance.random() < 0.6
                else self._chance.choice(self._known["flag"])
            )
        if kind == "text" and self._chance.random() < 0.2:  # of another type
            return self._chance.choice(
                (
                    *self._known["flag"],
                    f"({self.condition(0)})",
                    *self._known["decimal"],
                    *self._known["char"],
                    *self._known["int"],
                )
            )
        if kind in ("decimal", "double") and self._chance.random() < 0.2:
            kind = "int"
        if kind in ("date", "time", "instant") and self._chance.random() < 0.3:
            kind = self._chance.choice(("date", "time", "instant"))
        if kind == "int" and self._chance.random() < 0.15:
            kind = self._chance.choice(("decimal", "double"))
        return self._expression(kind, depth)

    def row(self) -> tuple[dict[str, str], str]:
        """Values of one row of a query, by the columns that are set to them, and the rest of that query."""
        table = self._chance.choice(("s", "u", "t"))
        alias, where = self._inside(table, 1)
        other = {"s": "b", "u": "e", "t": "a"}[table]
        # Spark takes no column of the outer statement beside an aggregate
        asked = [f"max({alias}.k)", "count(*)", f"min({alias}.{other})"]
        columns = self._chance.sample(("k", "a", "id", "Big"), k=self._chance.choice((2, 3)))
        found = dict(zip(columns, asked, strict=False))
        if self._chance.random() < 0.3:
            found = dict(zip(columns, (f"min({alias}.k)", f"max({alias}.{other})"), strict=False))
        return found, f"FROM {table} AS {alias}{where}"

    def condition(self, depth: int) -> str:
        """A condition; not all of it has a value for every row."""
        pick = self._chance.choice
        if depth <= 0 or self._chance.random() < 0.35:
            return self._atom(depth)
        inner = [self.condition(depth - 1) for _ in range(2)]
        match self._chance.randrange(7):
            case 0 | 1:
                return f"({inner[0]}) AND ({inner[1]})"
            case 2 | 3:
                return f"({inner[0]}) OR ({inner[1]})"
            case 4:
                return f"NOT ({inner[0]})"
            case 5:
                return f"({inner[0]}) IS {pick(('', 'NOT '))}{pick(('TRUE', 'FALSE', 'NULL', 'UNKNOWN'))}"
            case _:
                return f"({inner[0]}) {pick(('=', '<>', 'IS DISTINCT FROM'))} ({inner[1]})"

    def _expression(self, kind: str, depth: int) -> str:
        pick = self._chance.choice
        known = self._known[kind]
        if depth <= 0 or self._chance.random() < 0.3:
            return pick((*known, *known, self._literal(kind)))
        one, other = (self._expression(kind, depth - 1) for _ in range(2))
        match self._chance.randrange(6):
            case 0:
                return f"coalesce({one}, {other})"
            case 1:
                return f"CASE WHEN {self.condition(depth - 1)} THEN {one} ELSE {other} END"
            case 2:
                return f"nullif({one}, {other})"
            case 3:
                return self._scalar(kind, depth - 1)
            case 4:
                return f"{pick(('greatest', 'least'))}({one}, {other})"
            case _:
                return self._special(kind, one, other)

    def _special(self, kind: str, one: str, other: str) -> str:
        pick = self._chance.choice
        match kind:
            case "int":
                return pick((
                    f"({one} {pick('+-*')} {other})",
                    f"({pick(self._known['int'])} {pick('/%')} {pick((-3, -2, 2, 3))})",
                    f"length({pick(self._known['text'])})", f"abs({one})",
                    f"CAST({pick(self._known['double'])} AS INT)",
                    f"CAST({pick(self._known['decimal'])} AS INT)", f"-{pick(self._known['int'])}",
                    f"CASE {one} WHEN {other} THEN 1 WHEN 2 THEN 3 END",
                    f"strpos({pick(self._known['text'])}, 'x')",
                    f"extract({pick(('year', 'quarter', 'month', 'day'))} from {pick(self._known['date'])})",
                    f"extract({pick(('year', 'day', 'hour', 'minute'))} from {pick(self._known['time'])})",
                    f"extract({pick(('month', 'day', 'hour'))} from {pick(self._known['instant'])})",
                    f"length(trim({pick(self._known['text'])}))", f"length({pick(self._chars)})",
                    (f"(SELECT sum(y.{pick('kb')}) / {pick((-2, 3))} FROM s "
                    f"AS y{pick(('', ' WHERE y.k > 1'))})"),
                    f"CAST({pick(self._reals)} AS INT)",
                ))  # fmt: skip
            case "decimal":
                return pick((
                    f"({one} + {pick(self._known['int'])})", f"({pick(self._known['decimal'])} * 0.5)",
                    f"-{pick(self._known['decimal'])}", f"CAST({pick(self._known['int'])} AS NUMERIC(9, 2))",
                    f"CAST({pick(self._known['decimal'])} AS NUMERIC(6, 1))", f"({one} - {other})",
                    f"round({pick(self._known['decimal'])}{pick(('', ', 0', ', 1'))})",
                    f"{pick(('floor', 'ceil'))}({pick(self._known['decimal'])})",
                ))  # fmt: skip
            case "double":
                return pick((
                    f"({one} + {pick(self._known['int'])})", f"({pick(self._known['double'])} * 4)",
                    f"({pick(self._known['double'])} / 2)", f"abs({one})",
                    f"({pick(self._known['double'])} * {pick(self._known['decimal'])})",
                    f"round({pick(self._known['double'])})",
                    f"({pick(self._reals)} * {pick(self._known['int'])})",
                    "(SELECT CAST(sum(y.\"Big\") AS DOUBLE PRECISION) / 2 FROM t AS y)",
                    f"CAST({pick(self._reals)} AS DOUBLE PRECISION)",
                ))  # fmt: skip
            case "text":
                return pick((
                    f"{one} || {other}", f"{one} || {pick(self._chars)}", f"upper({pick(self._chars)})",
                    f"upper({one})", f"CAST({pick(self._known['int'])} AS TEXT)",
                    f"concat({one}, {other}, {pick(self._known['int'])}, NULL)",
                    f"{pick(('trim', 'ltrim', 'rtrim'))}({one})",
                    f"substring({one} from {pick('12')} for {pick('012')})",
                    f"{pick(('left', 'right'))}({one}, {pick('012')})",
                    f"{pick('lr')}pad({one}, {pick('025')}{pick(('', ', $ab$')).replace('$', chr(39))})",
                    f"replace({one}, 'x', {other})",
                ))  # fmt: skip
            case _:
                return one

    def _literal(self, kind: str) -> str:
        pick = self._chance.choice
        match kind:
            case "int":
                return str(self._chance.randint(-2, 6))
            case "decimal":
                return pick(("1.25", "0.005", "-2.5", "3.0", "10"))
            case "double":
                return pick(("CAST(0.5 AS DOUBLE PRECISION)", "CAST(-2 AS DOUBLE PRECISION)"))
            case "text":
                return pick(("'x'", "'it''s'", "''", "'a\\b'", "'--'", "'\"`'"))
            case "date":
                return pick(("DATE '2024-02-29'", "CAST('2024-03-01' AS DATE)"))
            case "instant":
                moment = pick(("2024-02-29 00:00:00", "2024-03-10 01:59:59", "2024-03-10 03:30:00"))
                return f"TIMESTAMP WITH TIME ZONE '{moment}'"
            case "time":
                return pick(("TIMESTAMP '2024-02-28 23:59:59'", "TIMESTAMP '2024-02-29 00:00:00.000001'"))
            case _:
                return pick(("TRUE", "FALSE"))

    def _scalar(self, kind: str, depth: int) -> str:
        """A query for one value: an aggregate, correlated or not."""
        pick = self._chance.choice
        owners = [
            (table, one.name)
            for table, columns in SCHEMAS.items()
            for one in columns
            if KINDS[one.type] == kind
        ]
        if not owners or kind == "flag":
            return self._literal(kind)
        table, column = pick(owners)
        alias, where = self._inside(table, depth)
        if self._chance.random() < 0.15:
            down = pick(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
            one = f"{alias}.{name(column)}"
            return f"(SELECT {one} FROM {table} AS {alias}{where} ORDER BY {one}{down} LIMIT 1)"
        if kind == "int" and self._chance.random() < 0.1:
            return f"(SELECT count(DISTINCT {alias}.{name(column)}) FROM {table} AS {alias}{where})"
        aggregates = ("max", "min", "sum", "count") if kind == "int" else ("max", "min")
        return f"(SELECT {pick(aggregates)}({alias}.{name(column)}) FROM {table} AS {alias}{where})"

    def _inside(self, table: str, depth: int) -> tuple[str, str]:
        """What a table is called in a query, and the query's WHERE."""
        pick = self._chance.choice
        self._depth += 1
        alias = f"y{self._depth}"
        parts = []
        if self._chance.random() < 0.6:
            parts.append(f"{alias}.k = {pick(self._known['int'])}")
        if self._chance.random() < 0.4:
            column = "e" if table == "u" else "k"
            parts.append(
                f"{alias}.{column} {pick(('>', '<>', 'IS NOT NULL AND 3 <', '<'))} "
                f"{self._chance.randint(0, 5)}"
            )
        if depth > 0 and self._chance.random() < 0.2:
            self._depth += 1
            parts.append(
                f"{pick(('', 'NOT '))}EXISTS (SELECT 1 FROM u AS y{self._depth} "
                f"WHERE y{self._depth}.k = {alias}.k)"
            )
        if depth > 0 and self._chance.random() < 0.15:
            parts.append(f"{alias}.k {pick(('IN', 'NOT IN'))} (SELECT b FROM s WHERE b IS NOT NULL)")
        return alias, f" WHERE {' AND '.join(parts)}" if parts else ""

    def _set_query(self) -> str:
        pick = self._chance.choice
        return pick((
            "SELECT k, max(b) FROM s GROUP BY k", "SELECT k, b FROM s UNION SELECT k, e FROM u",
            "SELECT k, b FROM s UNION ALL SELECT k, e FROM u", "SELECT k, b FROM s EXCEPT SELECT k, e FROM u",
            "SELECT k, a FROM t INTERSECT SELECT k, b FROM s", "SELECT DISTINCT k, e FROM u",
            "SELECT k, count(*) FROM s GROUP BY k HAVING count(*) > 1",
            "SELECT k, CAST(NULL AS INT) FROM s WHERE k IN (SELECT k FROM u)",
            "SELECT l.k, r.a FROM s AS l JOIN t AS r ON l.k = r.id",
            "SELECT k, rank() OVER (PARTITION BY k ORDER BY b DESC, n) FROM s",
            "SELECT k, dense_rank() OVER (ORDER BY b) FROM s",
            "SELECT k, max(b) OVER (PARTITION BY k) FROM s",
            "SELECT k, sum(b) OVER (PARTITION BY k ORDER BY b) FROM s",
            "SELECT k, count(*) OVER (ORDER BY k) FROM u",
            ("SELECT k, b FROM (SELECT k, b, row_number() OVER (PARTITION BY k ORDER BY b DESC) AS n "
            "FROM s) AS z WHERE n = 1"),
            "SELECT k, max(b) FROM (SELECT k, lag(b) OVER (ORDER BY b) AS b FROM s) AS z GROUP BY k",
        ))  # fmt: skip

    def _atom(self, depth: int) -> str:
        pick = self._chance.choice
        kind = pick(("int", "int", "int", "text", "decimal", "double", "double", "date", "time", "instant"))
        one, other = self._expression(kind, depth - 1), self._expression(kind, depth - 2)
        match self._chance.randrange(19):
            case 15 | 16:
                return self._rows()
            case 17:
                left, right = (pick(self._known[pick(("date", "time", "instant"))]) for _ in range(2))
                return f"{left} {pick(('=', '<', '>=', 'IS DISTINCT FROM'))} {right}"
            case 18:
                table, column = pick((("t", "d"), ("s", "n"), ("s", "m")))
                alias, where = self._inside(table, depth)
                words = pick(("IN", "NOT IN", "= ANY", "<> ALL", "< ANY", ">= ALL"))
                asked = f"(SELECT {alias}.{column} FROM {table} AS {alias}{where})"
                return f"{pick(self._known['double'])} {words} {asked}"
            case 13:
                return (
                    f"{pick(self._chars)} {pick(('=', '<>', '<', 'IS DISTINCT FROM'))} "
                    f"{pick((*self._chars, one if kind == 'text' else '$x$')).replace('$', chr(39))}"
                )
            case 14:
                left, right = pick(self._reals), pick(self._known[pick(("int", "decimal", "double"))])
                return f"{left} {pick(('=', '<', '>=', '<>'))} {right}"
            case 0 | 1:
                return f"{one} {pick(('=', '<>', '<', '<=', '>', '>='))} {other}"
            case 2:
                return f"{one} IS {pick(('', 'NOT '))}DISTINCT FROM {other}"
            case 3:
                return f"{one} IS {pick(('', 'NOT '))}NULL"
            case 4:
                return f"{one} {pick(('', 'NOT '))}BETWEEN {other} AND {self._literal(kind)}"
            case 5:
                listed = f"{self._literal(kind)}, {other}{pick(('', ', NULL'))}"
                return f"{one} {pick(('', 'NOT '))}IN ({listed})"
            case 6 | 7:
                table, column = pick((("u", "k"), ("u", "e"), ("s", "b"), ("t", "a")))
                alias, where = self._inside(table, depth)
                asked = f"(SELECT {alias}.{column} FROM {table} AS {alias}{where})"
                return (
                    f"{pick(self._known['int'])} "
                    f"{pick(('IN', 'NOT IN', '= ANY', '<> ALL', '< ANY', '>= ALL', '<> ANY', '= ALL'))} "
                    f"{asked}"
                )
            case 8:
                table = pick(("u", "s", "t"))
                alias, where = self._inside(table, depth)
                return (
                    f"{pick(('', 'NOT '))}EXISTS (SELECT {pick(('1', '*'))} FROM {table} AS {alias}{where})"
                )
            case 9:
                return pick(self._known["flag"])
            case 10:
                left, right = pick(("int", "decimal", "double")), pick(("int", "decimal", "double"))
                return f"{pick(self._known[left])} {pick(('=', '<', '>='))} {pick(self._known[right])}"
            case 11:
                pair = f"({pick(self._known['int'])}, {pick(self._known['int'])})"
                return f"{pair} {pick(('IN', 'NOT IN'))} (SELECT k, e FROM u{pick(('', ' WHERE e > 2'))})"
            case _:
                return (
                    f"{pick(self._known['text'])} {pick(('', 'NOT '))}LIKE "
                    f"{pick(('$x%$', '$_$', '$%ts$')).replace('$', chr(39))}"
                )

    def _rows(self) -> str:
        """A row compared with others."""
        pick = self._chance.choice
        kinds = [pick(("int", "int", "text", "decimal", "date")) for _ in range(pick((2, 2, 3)))]

        def row() -> str:
            return f"({', '.join(self._expression(kind, 0) for kind in kinds)})"

        match self._chance.randrange(4):
            case 0:
                return f"{row()} {pick(('', 'NOT '))}IN ({row()}, {row()})"
            case 1:
                return f"{row()} {pick(('', 'NOT '))}BETWEEN {row()} AND {row()}"
            case _:
                words = pick(("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
                return f"{row()} {words} {row()}"

    @property
    def _chars(self) -> list[str]:
        """Texts of fixed length; any others where nothing has them."""
        return self._known["char"] or self._known["text"]

    @property
    def _reals(self) -> list[str]:
        """Floating-point numbers of 32 bits, as far as there are any."""
        return self._known["real"] or self._known["double"]

    def _source(self, alias: str, table: str) -> None:
        self._has(alias, table)
        self._keys.append(f"{name(alias)}.k")
        self.orders.append(f"{name(alias)}.{'b' if table == 's' else 'a'}")

    def _has(self, alias: str, table: str) -> None:
        for one in SCHEMAS[table]:
            self._known[KINDS[one.type]].append(f"{name(alias)}.{name(one.name)}")
