"""Random changes of MySQL's dialect over tables of many types and odd names, for MariaDB and for us alike; by seed."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakewarden.jobs.sql.compile.values import Dialect
from support.two_databases.paired_pieces import Maker, PairedChange, Sources, Two, two
from support.two_databases.wide_tables import SCHEMAS, ticked, wide_rows

__all__ = ["CASTS", "MySql", "MysqlWideChange", "random_wide_mysql_change", "random_wide_several_change"]

_JOINS = ("JOIN", "INNER JOIN", "LEFT JOIN")
CASTS: Mapping[str, str] = {
    "int": "SIGNED",
    "bigint": "SIGNED",
    "string": "CHAR",
    "double": "DOUBLE",
    "decimal(9,2)": "DECIMAL(9,2)",
    "date": "DATE",
}


@dataclass(frozen=True, kw_only=True)
class MysqlWideChange(PairedChange):
    """A statement of MySQL's, which MariaDB gets as it is. `targets` are what it changes by their names in it, each
    with its table; several of them are judged each by itself."""

    targets: Mapping[str, str] = field(default_factory=lambda: {"t": "t"})

    @property
    def text(self) -> str:
        return self.said

    @property
    def changed(self) -> tuple[str, ...]:
        return tuple(self.targets.values())

    @property
    def matches(self) -> str:
        types = {one.name: CASTS[one.type] for one in SCHEMAS["t"] if one.type in CASTS}
        values = [f"CAST({value} AS {types[column]})" for column, value in self.sets.items()]
        where = f" AND ({self.where})" if self.where else ""
        return (
            f"SELECT {', '.join([f'{self.alias}.place', *values, self.by or '1'])} FROM {self.sources} "
            f"WHERE {self.alias}.place IS NOT NULL{where}"
        )

    @property
    def several(self) -> str:
        """The query that counts the rows of all targets with several matches."""
        where = f" WHERE {self.where}" if self.where else ""
        counts = (
            f"(SELECT count(*) FROM (SELECT {one}.place FROM {self.sources}{where} GROUP BY {one}.place"
            f" HAVING {one}.place IS NOT NULL AND count(*) > 1) AS q)"
            for one in self.targets
        )
        return f"SELECT {' + '.join(counts)}"


def random_wide_mysql_change(seed: int) -> PairedChange:
    """One statement and the tables it is about."""
    return MySql(random.Random(f"mysql {seed}")).change()


def random_wide_several_change(seed: int) -> MysqlWideChange:
    """A statement that changes t and s, or t, s and u. No new value depends on a column that it sets elsewhere: there
    MySQL promises no order."""
    return MySql(random.Random(f"several {seed}")).several()


class MySql(Maker):
    """MySQL's: `UPDATE t AS x JOIN s AS l ON ... SET ... WHERE ...`."""

    dialect = Dialect.MYSQL

    def quoted(self, column: str) -> str:
        return column if column.islower() and len(column) == 1 else ticked(column)

    def column(self, alias: str, column: str) -> Two:
        return two("{}", Two(*[f"{alias}.{self.quoted(column)}"] * 2))

    @property
    def double(self) -> str:
        return "DOUBLE"

    def literal(self, kind: str) -> Two:
        if kind == "text" and self.chance.random() < 0.4:
            return two(self.pick(('"it\'s"', "'a\\\\b'", "'\\'x'", '"x"', "'\\n'")))
        return two(super().literal(kind).ours)

    @property
    def words_of_first(self) -> str:
        return "(SELECT {one} FROM {table} ORDER BY {order} LIMIT 1)"

    def rows(self) -> Two | None:
        return self.compared_rows()

    def atom(self, depth: int) -> Two:
        if self.chance.random() < 0.08:
            kind = self.pick(("int", "text", "double", "decimal", "date"))
            return two("{} <=> {}", self.expression(kind, depth - 1), self.expression(kind, 0))
        return super().atom(depth)

    def special(self, kind: str, one: Two, other: Two) -> Two:
        text, number, decimal = (self.pick(self.known[of]) for of in ("text", "int", "decimal"))
        if kind == "text":
            start, length = self.pick("12"), self.pick("012")
            return self.pick((
                two("CONCAT({}, {}, {})", one, other, number),
                two("CONCAT_WS('-', {}, {})", one, other),
                two(f"{self.pick(('UPPER', 'LOWER', 'LTRIM', 'RTRIM', 'TRIM'))}({{}})", one),
                two(f"{self.pick(('SUBSTRING', 'SUBSTR'))}({{}}, {start}, {length})", one),
                two(f"{self.pick(('LEFT', 'RIGHT'))}({{}}, {length})", one),
                # MariaDB does not look at a replacement that is not needed: NULL gives no NULL then
                two("REPLACE({}, 'x', COALESCE({}, ''))", one, other),
                two(f"{self.pick('LR')}PAD({{}}, {self.pick('025')}, 'ab')", one),
                two("IFNULL({}, {})", one, other),
                two("IF({}, {}, {})", self.condition(0), one, other),
                two("CAST({} AS CHAR)", number),
            ))  # fmt: skip
        if kind == "date":
            return two(
                self.pick(("IF({}, {}, {})", "CASE WHEN {} THEN {} ELSE {} END")),
                self.condition(0),
                one,
                other,
            )
        found = [two(f"({{}} {self.pick('+-*')} {{}})", one, number), two("IFNULL({}, {})", one, other)]
        found.append(two("IF({}, {}, {})", self.condition(0), one, other))
        if kind == "int":
            by = self.pick((-3, -2, 2, 3))
            part = self.pick(("YEAR", "MONTH", "DAY", "QUARTER"))
            found += [
                two(f"({{}} {self.pick(('DIV', '%', 'MOD'))} {by})", number), two("-({})", number),
                two(f"{self.pick(('LENGTH', 'CHAR_LENGTH'))}({{}})", text),
                two("ABS({})", one),
                # MariaDB 11.4 finds nothing behind a WHEN that is NULL, against SQL and MySQL's documentation
                two("CASE {} WHEN 2 THEN 3 WHEN {} THEN 1 END", one, other),
                two(f"{part}({{}})", self.pick(self.known["date"])),
                two(f"EXTRACT({part} FROM {{}})", self.pick(self.known["date"])),
            ]  # fmt: skip
        if kind == "decimal":
            found += [
                two(f"ROUND({{}}, {self.pick('01')})", decimal),
                two("FLOOR({})", decimal), two("CEIL({})", decimal),
                two("({} - {})", one, other), two("-({})", decimal),
            ]  # fmt: skip
        if kind == "double":
            found += [two("({} * 4)", self.pick(self.known[kind])), two("ABS({})", one)]
        return self.pick(found)

    def sources(self) -> Sources:
        """What is read; `kept` is all of it, with the target in it."""
        me = f"t AS {self.target}" if self.target != "t" else "t"
        word = self.pick(_JOINS)
        match self.chance.randrange(11):
            case 0 | 1:
                return Sources(kept=two(me))
            case 2 | 3:
                found = self.one_source("l", self.pick(("s", "u", "t")))
            case 4:
                found = self.one_source("l", "s")
                self.has("r", "u")
                more = self.pick(("", " AND r.e > 3", " AND l.b < r.e"))
                found.listed.append(two(f"{self.pick(_JOINS)} u AS r ON l.k = r.k{more}"))
            case 5:
                ranked = "SELECT k, b AS v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY b DESC, n) AS z FROM s"
                best = two(f"SELECT k, v FROM ({ranked}) AS z WHERE z = 1")
                found = self.query_source(self.pick((best, two("SELECT k, MAX(b) AS v FROM s GROUP BY k"))))
            case 6:
                sets = self.pick(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
                found = self.query_source(two(f"SELECT k, b AS v FROM s {sets} SELECT k, e FROM u"))
            case 7:  # the source comes first
                found = self.one_source("l", self.pick(("s", "u")))
                assert found.link is not None
                found.kept = two(f"{{}} {word} {me} ON {{}}", found.listed[0], found.link)
                found.link = None
                return found
            case 8:
                found = self.one_source("l", self.pick(("s", "u")))
                found.kept, found.link = two(f"{me} {word} {{}} USING (k)", found.listed[0]), None
                return found
            case 9:  # several sources, none of them joined
                found = self.one_source("l", "s")
                self.has("r", "u")
                assert found.link is not None
                found.kept, found.link = two(f"{me}, s AS l, u AS r"), two("{} AND r.k = l.k", found.link)
                return found
            case _:
                found = self.one_source("l", self.pick(("s", "u")))
                found.kept = two(f"{me}, {{}}", found.listed[0])
                return found
        assert found.link is not None
        found.kept = two(f"{me} {word} {{}} ON {{}}", found.listed[0], found.link)
        for one in found.listed[1:]:
            found.kept = two("{} {}", found.kept, one)
        found.link = None
        return found

    def statement(self, sources: Sources, sets: Mapping[str, Two], where: Two | None) -> str:
        assert sources.kept is not None
        tables, told = sources.kept.ours, "" if where is None else f" WHERE {where.ours}"
        if sets:
            listed = ", ".join(
                f"{self.target}.{self.quoted(column)} = {value.ours}" for column, value in sets.items()
            )
            return f"UPDATE {tables} SET {listed}{told}"
        if tables == "t":
            return f"DELETE FROM t{told}"
        if self.chance.random() < 0.3:
            return f"DELETE FROM {self.target} USING {tables}{told}"
        return f"DELETE {self.target} FROM {tables}{told}"

    def made(self, sources: Sources, sets: Mapping[str, Two], where: Two | None) -> PairedChange:
        assert sources.kept is not None
        return MysqlWideChange(
            rows=wide_rows(self.chance),
            ctes="",
            alias=self.target,
            sources=sources.kept.ours,
            sets={column: value.ours for column, value in sets.items()},
            where="" if where is None else where.ours,
            by=sources.by,
            dialect=self.dialect,
            said=self.statement(sources, sets, where),
        )

    def several(self) -> MysqlWideChange:
        """A statement that changes several tables."""
        self.asks = self.chance.random() < 0.3
        names = {self.target: "t", "l": "s"}
        found = self.one_source("l", "s")
        assert found.link is not None
        me = f"t AS {self.target}" if self.target != "t" else "t"
        first, second = self.pick(((me, "s AS l"), ("s AS l", me)))
        tables = f"{first} {self.pick(_JOINS)} {second} ON {found.link.ours}"
        if self.chance.random() < 0.4:
            self.has("r", "u")
            tables += f" {self.pick(_JOINS)} u AS r ON l.k = r.k"
            if self.chance.random() < 0.5:
                names["r"] = "u"
        where = self.condition(2) if self.chance.random() < 0.7 else None
        told = "" if where is None else f" WHERE {where.ours}"
        listed = []
        if self.chance.random() < 0.7:
            columns = [(self.target, self.pick(("a", "s", "m", "k"))), ("l", self.pick(("b", "c", "n")))]
            columns += [("r", "e")] if "r" in names else []
            self.chance.shuffle(columns)
            for alias, column in columns:
                for known in self.known.values():
                    known[:] = [one for one in known if one != self.column(alias, column)]
            self.asks = False
            for alias, column in columns:
                kind = {"s": "text", "c": "text", "m": "decimal", "n": "double"}.get(column, "int")
                listed.append(f"{alias}.{column} = {self.value(kind, 1).ours}")
        said = (
            f"UPDATE {tables} SET {', '.join(listed)}{told}"
            if listed
            else f"DELETE {', '.join(names)} FROM {tables}{told}"
        )
        base = self.made(Sources(kept=two("t")), {}, where)
        assert isinstance(base, MysqlWideChange)
        return replace(base, said=said, sources=tables, targets=names)
