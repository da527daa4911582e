"""Random small tables and random statements of PostgreSQL's UPDATE and DELETE about them; a seed makes one of each."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from support.two_databases.sides import Rows

__all__ = ["TEXTS", "Maker", "RandomChange", "random_change", "random_rows"]

TEXTS: Final = ("x", "y", "", "X", "it's", None)


@dataclass(frozen=True, kw_only=True)
class RandomChange:
    """A statement in its parts. `sources` is what FROM or USING has, empty where there is none; `sets` are what is set,
    none in a DELETE."""

    rows: Mapping[str, Rows]
    ctes: str
    sources: str
    sets: Mapping[str, str]
    where: str

    @property
    def text(self) -> str:
        """As a person writes it."""
        if not self.sets:
            return f"{self.ctes}DELETE FROM t{f' USING {self.sources}' if self.sources else ''}{self._where}"
        listed = ", ".join(f"{column} = {value}" for column, value in self.sets.items())
        return (
            f"{self.ctes}UPDATE t SET {listed}{f' FROM {self.sources}' if self.sources else ''}{self._where}"
        )

    @property
    def several(self) -> str:
        """The query that counts the rows of t with several matches."""
        counted = "SELECT t.ctid FROM t" + (f", {self.sources}" if self.sources else "")
        return (
            f"{self.ctes}SELECT count(*) FROM ({counted}{self._where} GROUP BY t.ctid "
            "HAVING count(*) > 1) AS q"
        )

    @property
    def smallest(self) -> str:
        """The UPDATE that takes of several matches the one with the smallest values, NULL first."""
        names = [f"v{number}" for number in range(len(self.sets))]
        values = ", ".join(
            f"{value} AS {name}" for name, value in zip(names, self.sets.values(), strict=True)
        )
        order = ", ".join(f"{name} NULLS FIRST" for name in names)
        sources = f", {self.sources}" if self.sources else ""
        matches = f"SELECT t.ctid AS place, {values} FROM t{sources}{self._where}"
        chosen = f"SELECT DISTINCT ON (place) * FROM ({matches}) AS m ORDER BY place, {order}"
        listed = ", ".join(f"{column} = q.{name}" for column, name in zip(self.sets, names, strict=True))
        return f"{self.ctes}UPDATE t SET {listed} FROM ({chosen}) AS q WHERE t.ctid = q.place"

    @property
    def _where(self) -> str:
        return f" WHERE {self.where}" if self.where else ""


def random_change(seed: int) -> RandomChange:
    """One statement and the tables it is about."""
    chance = random.Random(seed)
    maker = Maker(chance)
    deletes = chance.random() < 0.35
    ctes, sources = maker.sources()
    where = maker.condition(2)
    if sources and chance.random() < 0.85:  # without a link everything matches everything
        where = f"{maker.link()} AND {maker.grouped(where)}"
    sets: dict[str, str] = {}
    if not deletes:
        makers = {"a": maker.number, "k": maker.number, "s": maker.text, "d": maker.double}
        for column in chance.sample(sorted(makers), k=chance.randint(1, 2)):
            sets[column] = makers[column](2)
    return RandomChange(rows=random_rows(chance), ctes=ctes, sources=sources, sets=sets, where=where)


def random_rows(chance: random.Random) -> Mapping[str, Rows]:
    """Few rows, so that keys meet: NULLs, and rows that are there twice, among them."""

    def number(most: int = 5) -> int | None:
        return None if chance.random() < 0.15 else chance.randint(0, most)

    def double() -> float | None:
        return None if chance.random() < 0.15 else chance.randint(-8, 8) / 4

    t = [
        (number(3), number(), number(9), chance.choice(TEXTS), double()) for _ in range(chance.randint(0, 8))
    ]
    t += chance.sample(t, k=min(len(t), chance.randint(0, 2)))  # rows that are there twice
    s = [(number(), number(9), chance.choice(TEXTS), double()) for _ in range(chance.randint(0, 5))]
    u = [(number(), number(9)) for _ in range(chance.randint(0, 5))]
    return {"t": t, "s": s, "u": u}


class Maker:
    """Expressions over t and over the sources that were chosen."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._numbers, self._texts, self._doubles = ["t.k", "t.a", "t.id"], ["t.s"], ["t.d"]
        self._keys: list[str] = []

    def sources(self) -> tuple[str, str]:
        """What stands before the statement, and in FROM."""
        match self._chance.randrange(9):
            case 0 | 1:
                return "", ""
            case 2 | 3:
                self._has(["s.k", "s.b"], ["s.c"], ["s.n"], key="s.k")
                return "", "s"
            case 4:
                self._has(["s.k", "s.b", "u.e"], ["s.c"], ["s.n"], key="s.k")
                kind = self._chance.choice(("JOIN", "LEFT JOIN", "INNER JOIN"))
                return "", f"s {kind} u ON s.k = u.k{self._chance.choice(('', ' AND u.e > 3'))}"
            case 5:
                self._has(["q.k", "q.m"], [], [], key="q.k")
                return "", "(SELECT k, max(b) AS m FROM s GROUP BY k) AS q"
            case 6:
                self._has(["o.k", "o.a", "o.id"], ["o.s"], ["o.d"], key="o.id")
                return "", "t AS o"
            case 7:
                self._has(["v.x", "v.y"], ["v.z"], [], key="v.x")
                return "", "(VALUES (1, 5, 'x'), (2, NULL, 'y'), (4, 7, NULL)) AS v(x, y, z)"
            case _:
                self._has(["w.k", "w.n", "s.b"], ["s.c"], [], key="w.k")
                return "WITH w AS (SELECT k, count(*) AS n FROM u GROUP BY k) ", "w, s"

    def link(self) -> str:
        """How the sources are tied to t."""
        return f"t.{self._chance.choice(('k', 'k', 'a', 'id'))} = {self._chance.choice(self._keys)}"

    def condition(self, depth: int) -> str:
        """A condition; not all of it has a value for every row."""
        if depth == 0 or self._chance.random() < 0.3:
            return self._atom()
        match self._chance.randrange(4):
            case 0:
                return (
                    f"{self.grouped(self.condition(depth - 1))} AND {self.grouped(self.condition(depth - 1))}"
                )
            case 1:
                return (
                    f"{self.grouped(self.condition(depth - 1))} OR {self.grouped(self.condition(depth - 1))}"
                )
            case 2:
                return f"NOT {self.grouped(self.condition(depth - 1))}"
            case _:
                return self._atom()

    def grouped(self, condition: str) -> str:
        """In parentheses."""
        return f"({condition})"

    def number(self, depth: int) -> str:
        """An expression of integers, or of something that is rounded to one."""
        pick = self._chance.choice
        if depth == 0:
            return pick((*self._numbers, *self._numbers, str(self._chance.randint(-5, 9)), "NULL"))
        match self._chance.randrange(11):
            case 0:
                return f"({self.number(depth - 1)} {pick('+-*')} {self.number(0)})"
            case 9 | 10:
                return self.of_target()
            case 1:
                return f"({pick(self._numbers)} {pick('/%')} {self._chance.choice((-3, -2, 2, 3))})"
            case 2:
                return f"coalesce({self.number(0)}, {self.number(depth - 1)}, 0)"
            case 3:
                return f"CASE WHEN {self.condition(1)} THEN {self.number(0)} ELSE {self.number(0)} END"
            case 4:
                return f"(SELECT {pick(('max', 'min', 'sum'))}(e) FROM u x WHERE x.k = {pick(self._numbers)})"
            case 5:
                return f"CAST({pick(self._doubles)} AS INT)"
            case 6:
                return f"{pick(self._numbers)} * 0.5"
            case 7:
                return f"nullif({self.number(0)}, {self._chance.randint(0, 5)})"
            case _:
                return self.number(0)

    def of_target(self) -> str:
        """A query for one number about the table that is changed: about all of it, or about the rows like this one."""
        pick = self._chance.choice
        asked = f"{pick(('max', 'min', 'sum', 'count'))}(y.{pick(('a', 'k', 'id'))})"
        condition = pick(("", f" WHERE y.k = {pick(self._numbers)}", " WHERE y.a > t.a", " WHERE y.k <> 2"))
        return f"(SELECT {asked} FROM t y{condition})"

    def among_target(self, like: str) -> str:
        """Whether a number is among those of the table that is changed, or of its rows that are like this one."""
        pick = self._chance.choice
        asked = f"SELECT y.{pick('ak')} FROM t y{pick(('', ' WHERE y.id > 4', f' WHERE {like}'))}"
        return f"{pick(self._numbers)} {pick(('IN', 'NOT IN'))} ({asked})"

    def text(self, depth: int) -> str:
        """An expression of texts."""
        pick = self._chance.choice
        match self._chance.randrange(5 if depth else 2):
            case 0:
                return pick(self._texts)
            case 1:
                return pick(("'x'", "'it''s'", "''", "'a\\b'"))
            case 2:
                return f"{pick(self._texts)} || {self.text(0)}"
            case 3:
                return f"{pick(('upper', 'lower'))}({self.text(0)})"
            case _:
                return f"coalesce({pick(self._texts)}, {self.text(0)})"

    def double(self, depth: int) -> str:
        """An expression of floating-point numbers whose results are exact."""
        pick = self._chance.choice
        return pick(
            (
                pick(self._doubles),
                f"{pick(self._doubles)} / 2",
                f"{pick(self._doubles)} + {pick(self._numbers)}",
                f"-{pick(self._doubles)} * 4",
                self.number(depth - 1),
            )
        )

    def _atom(self) -> str:
        pick, number = self._chance.choice, self.number(1)
        match self._chance.randrange(16):
            case 0 | 1:
                return f"{self.number(0)} {pick(('=', '<>', '<', '<=', '>', '>='))} {number}"
            case 14:
                return f"{pick(self._numbers)} {pick(('=', '<>', '<', '>='))} {self.of_target()}"
            case 15:
                return self.among_target("y.s = t.s")
            case 2:
                return f"{pick(self._numbers)} {pick(('IN', 'NOT IN'))} (SELECT {pick('ke')} FROM u)"
            case 3:
                limit = self._chance.randint(0, 6)
                return f"{pick(self._numbers)} {pick(('IN', 'NOT IN'))} (SELECT k FROM u WHERE e > {limit})"
            case 4:
                return f"{pick(self._numbers)} NOT IN (SELECT k FROM u WHERE k IS NOT NULL)"
            case 5:
                return f"{pick(('', 'NOT '))}EXISTS (SELECT 1 FROM u x WHERE x.k = {pick(self._numbers)})"
            case 6:
                return f"{pick(('', 'NOT '))}EXISTS (SELECT * FROM t y WHERE y.a = t.a AND y.k > t.k)"
            case 7:
                return f"{pick((*self._numbers, *self._texts, *self._doubles))} IS {pick(('', 'NOT '))}NULL"
            case 8:
                return (
                    f"{pick(self._numbers)} {pick(('', 'NOT '))}BETWEEN {self.number(0)} AND {self.number(0)}"
                )
            case 9:
                return f"{pick(self._texts)} {pick(('=', '<>', '<'))} {self.text(0)}"
            case 10:
                return f"{pick(self._numbers)} IS {pick(('', 'NOT '))}DISTINCT FROM {self.number(0)}"
            case 12:
                asked = f"{pick(self._numbers)} IN (SELECT {pick('ke')} FROM u)"
                return (
                    f"({asked}) "
                    f"{pick(('IS NULL', 'IS NOT NULL', '= (t.k = 1)', 'IS DISTINCT FROM (t.a > 3)'))}"
                )
            case 11:
                return f"{pick(self._numbers)} = (SELECT {pick(('max', 'min', 'count'))}(e) FROM u)"
            case _:
                return f"{pick(self._texts)} IN ('x', 'it''s', {pick(('NULL', chr(39) * 2))})"

    def _has(self, numbers: Sequence[str], texts: Sequence[str], doubles: Sequence[str], *, key: str) -> None:
        self._numbers += numbers
        self._texts += texts
        self._doubles += doubles
        self._keys.append(key)
