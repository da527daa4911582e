"""Random changes of Teradata's and SQL Server's dialects, each written a second time in PostgreSQL's; by seed."""

import random
from collections.abc import Mapping
from typing import Final

from lakewarden.jobs.sql.compile.values import Dialect
from support.two_databases.paired_pieces import Maker, PairedChange, Sources, Two, two
from support.two_databases.wide_tables import KINDS, SCHEMAS, name

__all__ = ["Teradata", "TransactSql", "random_paired_change"]

_COMPOUND: Final = ("+= ", "-= ", "*= ")


def random_paired_change(dialect: Dialect, seed: int) -> PairedChange:
    """One statement and the tables it is about."""
    return _MAKERS[dialect](random.Random(f"{dialect} {seed}")).change()


class TransactSql(Maker):
    """SQL Server's: `UPDATE x SET ... FROM t AS x JOIN ...`."""

    dialect = Dialect.TSQL

    def quoted(self, column: str) -> str:
        return column if column.islower() and len(column) == 1 else f"[{column.replace(']', ']]')}]"

    def rows_of_queries(self) -> Two | None:
        return None

    def special(self, kind: str, one: Two, other: Two) -> Two:
        text, decimal = self.pick(self.known["text"]), self.pick(self.known["decimal"])
        if kind == "text":
            start, length = self.pick("12"), self.pick("012")
            return self.pick((
                two("({} + {})", one, other, theirs="({} || {})"),
                two(f"{self.pick(('UPPER', 'LOWER', 'LTRIM', 'RTRIM', 'TRIM'))}({{}})", one),
                two(f"SUBSTRING({{}}, {start}, {length})", one),
                two(f"{self.pick(('LEFT', 'RIGHT'))}({{}}, {length})", one),
                two("CONCAT({}, {}, {})", one, other, self.pick(self.known["int"])),
                two("ISNULL({}, {})", one, other, theirs="COALESCE({}, {})"),
                two("CAST({} AS VARCHAR(20))", self.pick(self.known["int"])),
            ))  # fmt: skip
        if kind == "date":
            return two(
                "IIF({}, {}, {})", self.condition(0), one, other, theirs="CASE WHEN {} THEN {} ELSE {} END"
            )
        found = self.numbers(kind, one, other)
        if kind == "int":
            part = self.pick(("YEAR", "MONTH", "DAY"))
            found += [
                two("LEN({})", text, theirs="LENGTH(RTRIM({}))"),
                two(f"({{}} % {self.pick((-3, 2, 3))})", self.pick(self.known["int"])),
                two(f"{part}({{}})", self.pick(self.known["date"]),
                    theirs=f"CAST(EXTRACT({part} FROM {{}}) AS INT)"),
                two("ISNULL({}, {})", one, other, theirs="COALESCE({}, {})"),
                two("IIF({}, {}, {})", self.condition(0), one, other,
                    theirs="CASE WHEN {} THEN {} ELSE {} END"),
            ]  # fmt: skip
        if kind == "decimal":
            found += [
                two(f"ROUND({{}}, {self.pick('01')})", decimal),
                two("FLOOR({})", decimal),
                two("CEILING({})", decimal),
            ]
        return self.pick(found)

    def sources(self) -> Sources:
        match self.chance.randrange(9):
            case 0 | 1:
                return Sources()
            case 2:
                return self.one_source("l", self.pick(("s", "u", "t")))
            case 3:
                return self._left()
            case 4:
                found = self.one_source("l", "s")
                self.has("r", "u")
                kind = self.pick(("JOIN", "LEFT JOIN"))
                found.listed = [two(f"s AS l {kind} u AS r ON l.k = r.k")]
                return found
            case 5:
                self.known["int"] += [two("v.x"), two("v.y")]
                rows = "(VALUES (1, 5, 'x'), (2, NULL, 'y'), (4, 7, NULL)) AS v(x, y, z)"
                self.known["text"].append(two("v.z"))
                return Sources(listed=[two(rows)], link=two("{} = v.x", self.own("k", "a", "id")), by="v.y")
            case 6:
                found = self.query_source(two(""))
                found.before = (
                    f"WITH w AS (SELECT k, COUNT(*) AS v FROM {self.pick(('t', 's', 'u'))} GROUP BY k) "
                )
                found.listed = [two("w AS q")]
                return found
            case 7:
                down = self.pick(("", " DESC"))
                nulls = "NULLS LAST" if down else "NULLS FIRST"  # NULL is the smallest of all
                rank = self.pick(("ROW_NUMBER", "RANK", "DENSE_RANK"))
                more = ", n" if rank == "ROW_NUMBER" else ""
                ranked = two(
                    f"SELECT k, b AS v, {rank}() OVER (PARTITION BY k ORDER BY b{down}{more}) AS n FROM s",
                    theirs=f"SELECT k, b AS v, {rank}() OVER (PARTITION BY k ORDER BY b {down} {nulls}"
                    f"{', n NULLS FIRST' if more else ''}) AS n FROM s",
                )
                return self.query_source(two("SELECT k, v FROM ({}) AS z WHERE n = 1", ranked))
            case _:
                return self.query_source(two("SELECT k, MAX(b) AS v FROM s GROUP BY k"))

    def _left(self) -> Sources:
        """The target with a LEFT JOIN: PostgreSQL needs it a second time for that."""
        found = self.one_source("l", self.pick(("s", "u")))
        assert found.link is not None
        (table,) = found.listed
        again = found.link.theirs.replace(f"{self.target}.", "same.", 1)
        found.listed = [
            Two(
                f"LEFT JOIN {table.ours} ON {found.link.ours}",
                f"t AS same LEFT JOIN {table.theirs} ON {again}",
            )
        ]
        found.kept = Two("", f"{self.target}.ctid = same.ctid")
        found.link = None
        return found

    def statement(self, sources: Sources, sets: Mapping[str, Two], where: Two | None) -> str:
        tables = "t AS x" if self.target == "x" else "t"
        nested = any(" JOIN " in one.ours for one in sources.listed)
        joined = where is not None and sources.link is not None and not nested and self.chance.random() < 0.5
        for one in sources.listed:
            tables += (
                f" JOIN {one.ours} ON {where.ours}"
                if joined and where is not None
                else f" {one.ours}"
                if one.ours.startswith("LEFT JOIN")
                else f", {one.ours}"
            )
        where = None if joined else where
        tail = f" FROM {tables}{'' if where is None else f' WHERE {where.ours}'}"
        if not sets:
            return f"{sources.before}DELETE {self.target}{tail}"
        listed = ", ".join(
            f"{self.quoted(column)} {value.ours if value.ours.startswith(_COMPOUND) else f'= {value.ours}'}"
            for column, value in sets.items()
        )
        return f"{sources.before}UPDATE {self.target} SET {listed}{tail}"

    def made(self, sources: Sources, sets: Mapping[str, Two], where: Two | None) -> PairedChange:
        numbers = {one.name for one in SCHEMAS["t"] if KINDS[one.type] in ("int", "decimal", "double")}
        said = {}
        for column, value in sets.items():
            said[column] = value
            if column in numbers and self.chance.random() < 0.15:
                sign, own = self.pick("+-*"), self.column(self.target, column).theirs
                said[column] = Two(f"{sign}= {value.ours}", f"{own} {sign} ({value.theirs})")
        return super().made(sources, said, where)


class Teradata(Maker):
    """Teradata's: `UPDATE t AS x FROM s, u SET ... WHERE ...`."""

    dialect = Dialect.TERADATA

    def quoted(self, column: str) -> str:
        return name(column)

    def special(self, kind: str, one: Two, other: Two) -> Two:
        text, number = self.pick(self.known["text"]), self.pick(self.known["int"])
        if kind == "text":
            start, length = self.pick("12"), self.pick("012")
            return self.pick((
                two("({} || {})", one, other), two(f"{self.pick(('UPPER', 'LOWER', 'TRIM'))}({{}})", one),
                two("NVL({}, {})", one, other, theirs="COALESCE({}, {})"),
                two(f"SUBSTRING({{}} FROM {start} FOR {length})", one),
                two("CONCAT({}, {})", one, other, theirs="({} || {})"),
            ))  # fmt: skip
        if kind == "date":
            return two("NVL({}, {})", one, other, theirs="COALESCE({}, {})")
        found = self.numbers(kind, one, other)
        if kind == "int":
            part = self.pick(("YEAR", "MONTH", "DAY"))
            found += [
                two("CHARACTER_LENGTH({})", text, theirs="LENGTH({})"),
                two("CHARACTERS({})", text, theirs="LENGTH({})"),
                two("({} MOD 3)", number, theirs="({} % 3)"),
                two("ZEROIFNULL({})", one, theirs="COALESCE({}, 0)"),
                two("NULLIFZERO({})", one, theirs="NULLIF({}, 0)"),
                two(f"EXTRACT({part} FROM {{}})", self.pick(self.known["date"]),
                    theirs=f"CAST(EXTRACT({part} FROM {{}}) AS INT)"),
            ]  # fmt: skip
        if kind == "decimal":
            found += [
                two("FLOOR({})", self.pick(self.known["decimal"])),
                two("CEIL({})", self.pick(self.known["decimal"])),
            ]
        return self.pick(found)

    def sources(self) -> Sources:
        match self.chance.randrange(8):
            case 0 | 1:
                return Sources()
            case 2 | 3:
                return self.one_source("l", self.pick(("s", "u", "t")))
            case 4:
                found = self.one_source("l", "s")
                self.has("r", "u")
                assert found.link is not None
                found.listed.append(two("u AS r"))
                found.link = two("{} AND l.k = r.k", found.link)
                return found
            case 5 | 6:
                down = self.pick(("", " DESC"))
                nulls = "NULLS LAST" if down else "NULLS FIRST"  # NULL is the smallest of all
                best = two(
                    "SELECT k, b AS v FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY k "
                    f"ORDER BY b{down}, n) = 1",
                    theirs="SELECT k, v FROM (SELECT k, b AS v, ROW_NUMBER() OVER (PARTITION BY k "
                    f"ORDER BY b {down} {nulls}, n NULLS FIRST) AS n FROM s) AS z WHERE n = 1",
                )
                return self.query_source(best)
            case _:
                return self.query_source(two("SELECT k, MAX(b) AS v FROM s GROUP BY k"))

    def statement(self, sources: Sources, sets: Mapping[str, Two], where: Two | None) -> str:
        target, named = "t AS x" if self.target == "x" else "t", self.target
        tables = [one.ours for one in sources.listed]
        if tables and (not sets or any(one.startswith("t ") for one in tables)):
            tables = [target, *tables]  # the target is among them, and called what it is called there
        else:
            named = target
        from_ = f" FROM {', '.join(tables)}" if tables else ""
        told = "" if where is None else f" WHERE {where.ours}"
        if not sets:
            verb, everything = self.pick(("DELETE", "DEL")), "" if target == "t AS x" else " ALL"
            return f"{verb} {named}{from_}{told}" if from_ else f"{verb} FROM {target}{told or everything}"
        listed = ", ".join(f"{self.quoted(column)} = {value.ours}" for column, value in sets.items())
        return f"{self.pick(('UPDATE', 'UPD'))} {named}{from_} SET {listed}{told}"


_MAKERS: Final[Mapping[Dialect, type[Maker]]] = {
    Dialect.TSQL: TransactSql,
    Dialect.TERADATA: Teradata,
}
