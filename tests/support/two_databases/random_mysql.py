"""Random statements of MySQL's UPDATE and DELETE about the same small tables; a seed makes one of each.

Made of what the compiler lets pass in this dialect, and of what MariaDB can do in one statement.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from support.two_databases.random_changes import Maker, RandomChange, random_rows

__all__ = ["MysqlChange", "MysqlMaker", "random_mysql_change"]

_JOINS: Final = ("JOIN", "INNER JOIN", "LEFT JOIN")


@dataclass(frozen=True, kw_only=True)
class MysqlChange(RandomChange):
    """A statement in its parts. With a `join`, `sources` is joined to t where `on` holds; else it follows a comma."""

    join: str = ""
    on: str = ""
    quoted: bool = field(default=False)

    @property
    def text(self) -> str:
        """As a person writes it."""
        if not self.sets:
            if not self.sources:
                return f"DELETE FROM t{self._where}"
            return f"DELETE t FROM {self._tables}{self._where}"
        tick = "`" if self.quoted else ""
        listed = ", ".join(f"t.{tick}{column}{tick} = {value}" for column, value in self.sets.items())
        return f"UPDATE {self._tables} SET {listed}{self._where}"

    @property
    def several(self) -> str:
        """The query that counts the rows of t with several matches."""
        counted = f"SELECT t.place FROM {self._tables}{self._where} GROUP BY t.place HAVING count(*) > 1"
        return f"SELECT count(*) FROM ({counted}) AS q"

    @property
    def smallest(self) -> str:
        """The UPDATE that takes of several matches the one with the smallest values, NULL first."""
        names = [f"v{number}" for number in range(len(self.sets))]
        values = ", ".join(
            f"{value} AS {name}" for name, value in zip(names, self.sets.values(), strict=True)
        )
        matches = f"SELECT t.place AS place, {values} FROM {self._tables}{self._where}"
        turn = f"row_number() OVER (PARTITION BY place ORDER BY {', '.join(names)}) AS turn"
        chosen = f"SELECT m.*, {turn} FROM ({matches}) AS m"
        listed = ", ".join(f"t.{column} = q.{name}" for column, name in zip(self.sets, names, strict=True))
        return f"UPDATE t JOIN ({chosen}) AS q ON t.place = q.place AND q.turn = 1 SET {listed}"

    @property
    def _tables(self) -> str:
        if not self.sources:
            return "t"
        return f"t {self.join} {self.sources} ON {self.on}" if self.join else f"t, {self.sources}"


def random_mysql_change(seed: int) -> MysqlChange:
    """One statement and the tables it is about."""
    chance = random.Random(seed)
    maker = MysqlMaker(chance)
    deletes = chance.random() < 0.35
    _, sources = maker.sources()
    where, join, on = maker.condition(2), "", ""
    if sources and " JOIN " not in sources and chance.random() < 0.6:
        join, on = chance.choice(_JOINS), maker.link()
        if chance.random() < 0.3:
            where = ""
    elif sources and chance.random() < 0.85:
        where = f"{maker.link()} AND {maker.grouped(where)}"
    sets: dict[str, str] = {}
    if not deletes:
        makers = {"a": maker.number, "k": maker.number, "s": maker.text, "d": maker.double}
        for column in chance.sample(sorted(makers), k=chance.randint(1, 2)):
            sets[column] = makers[column](2)
    return MysqlChange(
        rows=random_rows(chance),
        ctes="",
        sources=sources,
        sets=sets,
        where=where,
        join=join,
        on=on,
        quoted=chance.random() < 0.3,
    )


class MysqlMaker(Maker):
    """Expressions that MySQL and Spark take for the same, or that can be said in Spark's words."""

    def adds_s(self) -> None:
        """Let expressions be over s, too."""
        self._has(["s.k", "s.b"], ["s.c"], ["s.n"], key="s.k")

    def forgets(self, columns: Sequence[str]) -> None:
        """Let no expression from now on be over these."""
        for known, instead in ((self._numbers, "3"), (self._texts, "'y'"), (self._doubles, "t.id")):
            known[:] = [one for one in known if one not in columns] or [instead]

    def sources(self) -> tuple[str, str]:
        match self._chance.randrange(7):
            case 0 | 1:
                return "", ""
            case 2 | 3:
                self.adds_s()
                return "", "s"
            case 4:
                self._has(["s.k", "s.b", "u.e"], ["s.c"], ["s.n"], key="s.k")
                kind = self._chance.choice(_JOINS)
                return "", f"s {kind} u ON s.k = u.k{self._chance.choice(('', ' AND u.e > 3'))}"
            case 5:
                self._has(["q.k", "q.m"], [], [], key="q.k")
                ranked = "SELECT k, b AS m, row_number() OVER (PARTITION BY k ORDER BY b DESC) AS n FROM s"
                latest = f"SELECT k, m FROM ({ranked}) AS z WHERE n = 1"
                return (
                    "",
                    f"({self._chance.choice(('SELECT k, max(b) AS m FROM s GROUP BY k', latest))}) AS q",
                )
            case _:
                self._has(["o.k", "o.a", "o.id"], ["o.s"], ["o.d"], key="o.id")
                return "", "t AS o"

    def number(self, depth: int) -> str:
        pick = self._chance.choice
        if depth == 0:
            return pick((*self._numbers, *self._numbers, str(self._chance.randint(-5, 9)), "NULL"))
        match self._chance.randrange(9):
            case 7 | 8:
                return self.of_target()
            case 0:
                return f"({self.number(depth - 1)} {pick('+-*')} {self.number(0)})"
            case 6:
                return f"{pick(('length', 'char_length'))}({self.text(1)})"
            case 1:
                return f"coalesce({self.number(0)}, {self.number(depth - 1)}, 0)"
            case 2:
                return f"CASE WHEN {self.condition(1)} THEN {self.number(0)} ELSE {self.number(0)} END"
            case 3:
                return (
                    f"(SELECT {pick(('max', 'min', 'count'))}(e) FROM u x WHERE x.k = {pick(self._numbers)})"
                )
            case 4:
                return f"nullif({self.number(0)}, {self._chance.randint(0, 5)})"
            case _:
                return f"if({self.condition(1)}, {self.number(0)}, {self.number(0)})"

    def text(self, depth: int) -> str:
        pick = self._chance.choice
        match self._chance.randrange(7 if depth else 2):
            case 0:
                return pick(self._texts)
            case 1:
                return pick(("'x'", '"it\'s"', "''", "'it''s'"))
            case 2:
                return f"{pick(('upper', 'lower', 'trim', 'ltrim', 'rtrim'))}({self.text(0)})"
            case 4:
                return f"concat({self.text(0)}, {pick(self._numbers)}, {self.text(0)})"
            case 5:
                cut = pick(
                    (
                        "left($, 1)",
                        "right($, 2)",
                        "substring($, 2, 3)",
                        "replace($, 'x', 'yy')",
                        "lpad($, 3, '-')",
                    )
                )
                return cut.replace("$", pick(self._texts))
            case _:
                return f"coalesce({pick(self._texts)}, {self.text(0)})"

    def double(self, depth: int) -> str:
        pick = self._chance.choice
        doubles = (f"{pick(self._doubles)} + {pick(self._numbers)}", f"-{pick(self._doubles)} * 4")
        return pick((pick(self._doubles), *doubles, self.number(depth - 1)))

    def _atom(self) -> str:
        pick, number = self._chance.choice, self.number(1)
        match self._chance.randrange(12):
            case 0 | 1:
                return f"{self.number(0)} {pick(('=', '<>', '<', '<=', '>', '>=', '!='))} {number}"
            case 10:
                return f"{pick(self._numbers)} {pick(('=', '<>', '<', '<=>'))} {self.of_target()}"
            case 11:
                return self.among_target("y.a = t.a")
            case 2:
                return f"{pick(self._numbers)} {pick(('IN', 'NOT IN'))} (SELECT {pick('ke')} FROM u)"
            case 3:
                limit = self._chance.randint(0, 6)
                return f"{pick(self._numbers)} {pick(('IN', 'NOT IN'))} (SELECT k FROM u WHERE e > {limit})"
            case 4:
                return f"{pick(('', 'NOT '))}EXISTS (SELECT 1 FROM u x WHERE x.k = {pick(self._numbers)})"
            case 5:
                return f"{pick((*self._numbers, *self._texts, *self._doubles))} IS {pick(('', 'NOT '))}NULL"
            case 6:
                return (
                    f"{pick(self._numbers)} {pick(('', 'NOT '))}BETWEEN {self.number(0)} AND {self.number(0)}"
                )
            case 7:
                return f"{pick(self._texts)} {pick(('=', '<>', '<=>'))} {self.text(0)}"
            case 8:
                return f"{pick(self._numbers)} <=> {self.number(0)}"
            case _:
                return f"{pick(self._texts)} IN ('x', 'it''s', {pick(('NULL', chr(39) * 2))})"
