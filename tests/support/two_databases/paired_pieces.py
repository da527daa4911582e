"""Pieces of changes that are written twice: in a dialect without a server, and in PostgreSQL's.

Neither database is to be had. So a statement is made of pieces that are written twice: as the dialect has them, and so
that PostgreSQL does what the dialect's documentation says of them. Only pieces of which that can be said are used.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lakewarden.jobs.sql.compile.values import Dialect
from support.two_databases.random_wide import WideChange
from support.two_databases.wide_tables import KINDS, SCHEMAS, name, wide_rows

__all__ = ["TARGETS", "Maker", "PairedChange", "Sources", "Two", "joined", "two"]

_KINDS: Final = ("int", "int", "int", "text", "text", "decimal", "double", "date")
TARGETS: Final = {
    "int": "int",
    "bigint": "int",
    "string": "text",
    "double": "double",
    "decimal(9,2)": "decimal",
    "date": "date",
}


class Two(NamedTuple):
    """One piece of a statement: in the dialect, and in PostgreSQL's."""

    ours: str
    theirs: str


def two(ours: str, *parts: Two, theirs: str | None = None) -> Two:
    """A piece with others in its places `{}`; `theirs` where PostgreSQL says it differently."""
    return Two(
        ours.format(*(part.ours for part in parts)),
        (theirs or ours).format(*(part.theirs for part in parts)),
    )


def joined(words: str, parts: list[Two]) -> Two:
    """Pieces with words between them."""
    return Two(words.join(part.ours for part in parts), words.join(part.theirs for part in parts))


@dataclass(frozen=True, kw_only=True)
class PairedChange(WideChange):
    """A statement of `dialect`, which is `said` so; everything else of it is PostgreSQL's."""

    dialect: Dialect
    said: str

    @property
    def asked(self) -> tuple[str, Dialect]:
        return self.said, self.dialect


@dataclass
class Sources:
    """What a change reads beside its target. `listed` stands in FROM; what ties it to the target is `link`."""

    listed: list[Two] = field(default_factory=list)
    link: Two | None = None
    by: str = ""
    before: str = ""
    kept: Two | None = None


class Maker(ABC):
    """Expressions, conditions and sources that the dialects have in common. The target is `x`, or has no other name."""

    dialect: Dialect

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.pick = chance, chance.choice
        self.known: dict[str, list[Two]] = {kind: [] for kind in set(KINDS.values())}
        self.target = self.pick(("t", "x"))
        self.has(self.target, "t")
        self.depth = 0
        self.asks = True

    @abstractmethod
    def quoted(self, column: str) -> str:
        """A name as the dialect quotes it."""

    @abstractmethod
    def special(self, kind: str, one: Two, other: Two) -> Two:
        """What the dialect has of its own for values of a kind."""

    @abstractmethod
    def sources(self) -> Sources:
        """What the change reads."""

    @abstractmethod
    def statement(self, sources: Sources, sets: Mapping[str, Two], where: Two | None) -> str:
        """The whole, in the dialect."""

    def change(self) -> PairedChange:
        """A statement."""
        sources = self.sources()
        where = self.condition(2) if self.chance.random() < 0.8 else None
        if sources.link is not None:
            where = sources.link if where is None else two("{} AND ({})", sources.link, where)
        sets: dict[str, Two] = {}
        if self.chance.random() < 0.7:
            columns = [one for one in SCHEMAS["t"] if one.type in TARGETS]
            for column in self.chance.sample(columns, k=self.pick((1, 1, 2, 3))):
                sets[column.name] = self.value(TARGETS[column.type], 2)
                self.has_set(column.name)
        return self.made(sources, sets, where)

    def has_set(self, column: str) -> None:
        """A column has its new value, which MySQL would see from now on."""
        if self.dialect is Dialect.MYSQL:
            for kind, known in self.known.items():
                left = [one for one in known if one != self.column(self.target, column)]
                known[:] = left or (known and [self.literal(kind)])

    def made(self, sources: Sources, sets: Mapping[str, Two], where: Two | None) -> PairedChange:
        """The statement of these parts."""
        theirs = (
            where
            if sources.kept is None
            else sources.kept
            if where is None
            else two("{} AND ({})", sources.kept, where)
        )
        return PairedChange(
            rows=wide_rows(self.chance),
            ctes=sources.before,
            alias=self.target,
            sources=", ".join(one.theirs for one in sources.listed),
            sets={column: value.theirs for column, value in sets.items()},
            where="" if theirs is None else theirs.theirs,
            by=sources.by,
            dialect=self.dialect,
            said=self.statement(sources, sets, where),
        )

    def has(self, alias: str, table: str) -> None:
        """A table can be spoken of by this name."""
        for one in SCHEMAS[table]:
            self.known[KINDS[one.type]].append(self.column(alias, one.name))

    def column(self, alias: str, column: str) -> Two:
        """A column of a table."""
        return Two(f"{alias}.{self.quoted(column)}", f"{alias}.{name(column)}")

    def own(self, *columns: str) -> Two:
        """One of these columns of the target."""
        return self.column(self.target, self.pick(columns))

    def value(self, kind: str, depth: int) -> Two:
        """An expression that a column of this kind can hold."""
        if self.chance.random() < 0.08:
            return two("NULL")
        if kind in ("decimal", "double") and self.chance.random() < 0.15:
            kind = "int"
        return self.expression(kind, depth)

    def expression(self, kind: str, depth: int) -> Two:
        """A value of a kind."""
        known = self.known[kind]
        if depth <= 0 or self.chance.random() < 0.3:
            return self.pick((*known, *known, self.literal(kind)))
        one, other = (self.expression(kind, depth - 1) for _ in range(2))
        match self.chance.randrange(6):
            case 0:
                return two("COALESCE({}, {})", one, other)
            case 1:
                return two("CASE WHEN {} THEN {} ELSE {} END", self.condition(depth - 1), one, other)
            case 2:
                return two("NULLIF({}, {})", one, other)
            case 3 if self.asks:
                return self.scalar(kind, depth - 1)
            case _:
                return self.special(kind, one, other)

    def condition(self, depth: int) -> Two:
        """A condition; not all of it has a value for every row."""
        if depth <= 0 or self.chance.random() < 0.4:
            return self.atom(depth)
        words = self.pick(("({}) AND ({})", "({}) OR ({})", "NOT ({})"))
        inner = [self.condition(depth - 1) for _ in range(2)]
        return two(words, *inner[: words.count("{}")])

    def atom(self, depth: int) -> Two:
        """A comparison, or a question to a query."""
        kind = self.pick(_KINDS)
        one, other = self.expression(kind, depth - 1), self.expression(kind, depth - 2)
        match self.chance.randrange(12 if self.asks else 8):
            case 0 | 1 | 2:
                return two(f"{{}} {self.pick(('=', '<>', '<', '<=', '>', '>='))} {{}}", one, other)
            case 3:
                return two(f"{{}} IS {self.pick(('', 'NOT '))}NULL", one)
            case 4:
                return two(
                    f"{{}} {self.pick(('', 'NOT '))}BETWEEN {{}} AND {{}}", one, other, self.literal(kind)
                )
            case 5:
                more = self.pick(("", ", NULL"))
                return two(
                    f"{{}} {self.pick(('', 'NOT '))}IN ({{}}, {{}}{more})", one, self.literal(kind), other
                )
            case 6:
                pattern = self.pick(("'x%'", "'_'", "'%ts%'", "'%'", "'%X'", "''"))
                return two(f"{{}} {self.pick(('', 'NOT '))}LIKE {pattern}", self.pick(self.known["text"]))
            case 7:
                left, right = (
                    self.pick(self.known[self.pick(("int", "decimal", "double"))]) for _ in range(2)
                )
                return self.rows() or two(f"{{}} {self.pick(('=', '<', '>='))} {{}}", left, right)
            case 8 | 9:
                table, column = self.pick((("u", "k"), ("u", "e"), ("s", "b"), ("t", "a")))
                alias, where = self.inside(table)
                words = self.pick(("IN", "NOT IN", "= ANY", "<> ALL", "< ANY", ">= ALL"))
                asked = two(f"(SELECT {alias}.{column} FROM {table} AS {alias}{{}})", where)
                return two(f"{{}} {words} {{}}", self.pick(self.known["int"]), asked)
            case 10:
                table = self.pick(("u", "s", "t"))
                alias, where = self.inside(table)
                return two(f"{self.pick(('', 'NOT '))}EXISTS (SELECT 1 FROM {table} AS {alias}{{}})", where)
            case _:
                return self.rows_of_queries() or two("{} = {}", one, other)

    def rows(self) -> Two | None:
        """A row compared with others; None where the dialect has none."""
        return None

    def rows_of_queries(self) -> Two | None:
        """A row sought in a query; None where the dialect has no such thing."""
        alias, where = self.inside("u")
        row = two("({}, {})", *(self.pick(self.known["int"]) for _ in range(2)))
        asked = two(f"(SELECT {alias}.k, {alias}.e FROM u AS {alias}{{}})", where)
        return two(f"{{}} {self.pick(('IN', 'NOT IN'))} {{}}", row, asked)

    def compared_rows(self) -> Two:
        """A row compared with others, where the dialect has an order of rows."""
        kinds = [self.pick(("int", "int", "text", "decimal", "date")) for _ in range(self.pick((2, 2, 3)))]

        def row() -> Two:
            return two("({})", joined(", ", [self.expression(kind, 0) for kind in kinds]))

        match self.chance.randrange(3):
            case 0:
                return two(f"{{}} {self.pick(('', 'NOT '))}IN ({{}}, {{}})", row(), row(), row())
            case _:
                return two(f"{{}} {self.pick(('=', '<>', '<', '<=', '>', '>='))} {{}}", row(), row())

    def scalar(self, kind: str, depth: int) -> Two:
        """A query for one value: an aggregate, correlated or not."""
        owners = [
            (table, one.name)
            for table, columns in SCHEMAS.items()
            for one in columns
            if KINDS[one.type] == kind
        ]
        table, column = self.pick(owners)
        alias, where = self.inside(table)
        if self.chance.random() < 0.15:
            return self.first(self.column(alias, column), f"{table} AS {alias}", where)
        aggregate = self.pick(("MAX", "MIN", "SUM", "COUNT") if kind == "int" else ("MAX", "MIN"))
        return two(
            f"(SELECT {aggregate}({{}}) FROM {table} AS {alias}{{}})", self.column(alias, column), where
        )

    def first(self, one: Two, table: str, where: Two) -> Two:
        """A query for the least or the greatest value, NULL before all others."""
        down = self.pick(("", " DESC"))
        nulls = " DESC NULLS LAST" if down else " NULLS FIRST"
        said = self.words_of_first
        theirs = f"(SELECT {{}} FROM {table}{{}} ORDER BY {{}}{nulls} LIMIT 1)"
        return two(
            said.format(one="{}", table=table + "{}", order="{}" + down), one, where, one, theirs=theirs
        )

    @property
    def words_of_first(self) -> str:
        """A query for the first row by an order, in the dialect."""
        return "(SELECT TOP 1 {one} FROM {table} ORDER BY {order})"

    def inside(self, table: str) -> tuple[str, Two]:
        """What a table is called in a query, and the query's WHERE."""
        self.depth += 1
        alias, parts = f"y{self.depth}", list[Two]()
        if self.chance.random() < 0.6:
            parts.append(two(f"{alias}.k = {{}}", self.pick(self.known["int"])))
        if self.chance.random() < 0.4:
            parts.append(two(f"{alias}.k {self.pick(('>', '<>', '<'))} {self.chance.randint(0, 5)}"))
        return alias, two(" WHERE {}", joined(" AND ", parts)) if parts else two("")

    def literal(self, kind: str) -> Two:
        """A constant."""
        match kind:
            case "int":
                return two(str(self.chance.randint(-2, 6)))
            case "decimal":
                return two(self.pick(("1.25", "0.05", "-2.5", "3.0")))
            case "double":
                number = self.pick(("0.5", "-2.25"))
                return two(f"CAST({number} AS {self.double})", theirs=f"CAST({number} AS DOUBLE PRECISION)")
            case "text":
                return two(self.pick(("'x'", "'X'", "'it''s'", "''", "'a\\b'", "'--'", "'\"`'", "'x '")))
            case _:
                return two(self.pick(("CAST('2024-02-29' AS DATE)", "CAST('2024-03-01' AS DATE)")))

    @property
    def double(self) -> str:
        """What the dialect calls a double."""
        return "FLOAT"

    def numbers(self, kind: str, one: Two, other: Two) -> list[Two]:
        """What both dialects have for numbers: a division of integers ends at the point, a remainder has its sign."""
        number = self.pick(self.known["int"])
        if kind == "int":
            by = self.pick((-3, -2, 2, 3))
            return [
                two(f"({{}} {self.pick('+-*')} {{}})", one, other), two(f"({{}} / {by})", number),
                two("ABS({})", one),
                two("-({})", number), two("CASE {} WHEN {} THEN 1 WHEN 2 THEN 3 END", one, other),
            ]  # fmt: skip
        if kind == "decimal":
            return [
                two("({} + {})", one, number),
                two("({} - {})", one, other),
                two("-({})", self.pick(self.known[kind])),
            ]
        return [
            two("({} + {})", one, number),
            two("({} * 4)", self.pick(self.known[kind])),
            two("ABS({})", one),
        ]

    def one_source(self, alias: str, table: str) -> Sources:
        """A table of that name, tied by a key."""
        self.has(alias, table)
        tied = two("{} = {}", self.own("k", "k", "a", "id"), self.column(alias, "k"))
        by = {"s": "b", "u": "e", "t": "a"}[table]
        return Sources(listed=[two(f"{table} AS {alias}")], link=tied, by=f"{alias}.{by}")

    def query_source(self, query: Two) -> Sources:
        """A query for columns k and v, called q."""
        self.known["int"] += [two("q.k"), two("q.v")]
        tied = two("{} = q.k", self.own("k", "k", "a", "id"))
        return Sources(listed=[two("({}) AS q", query)], link=tied, by="q.v")
