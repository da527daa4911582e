"""Random upserts and MERGEs of each dialect, with what does the same on another database; a seed makes one.

Where several rows of a source have one key, we refuse and a database takes one after the other, or the first. So there
is a second wording for it, with the row that the policy `any` takes.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from lakewarden.jobs.sql.compile.values import Dialect
from support.two_databases.paired_pieces import TARGETS, Maker, Sources, Two, joined, two
from support.two_databases.random_paired import Teradata, TransactSql
from support.two_databases.random_wide_mysql import CASTS, MySql
from support.two_databases.sides import Rows
from support.two_databases.wide_tables import KEYED, KINDS, SCHEMAS, TYPES, name, wide_rows

__all__ = ["MERGES", "MYSQL_UPSERTS", "UPSERTS", "PlacedChange"]


@dataclass(frozen=True, kw_only=True)
class PlacedChange:
    """A statement of `dialect`; `theirs` does the same on the other database, where the second of two statements is for
    when the first finds nothing. `keys` are those that the table names itself.

    `several` counts the keys that several rows of the source have, and `chosen` takes one of each. `counted`: what the
    other database counts is what we count.
    """

    rows: Mapping[str, Rows]
    text: str
    dialect: Dialect
    table: str
    theirs: Sequence[str]
    keys: tuple[str, ...] = ()
    several: str = ""
    chosen: str = ""
    counted: bool = True

    @property
    def asked(self) -> tuple[str, Dialect]:
        """What we are asked, and in whose words."""
        return self.text, self.dialect


class Postgres(Maker):
    """PostgreSQL's own words, for it and for us alike."""

    dialect = Dialect.POSTGRES

    def quoted(self, column: str) -> str:
        return name(column)

    @property
    def double(self) -> str:
        return "DOUBLE PRECISION"

    def first(self, one: Two, table: str, where: Two) -> Two:
        down = self.pick(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
        return two(f"(SELECT {{}} FROM {table}{{}} ORDER BY {{}}{down} LIMIT 1)", one, where, one)

    def rows(self) -> Two | None:
        return self.compared_rows()

    def special(self, kind: str, one: Two, other: Two) -> Two:
        number, decimal = self.pick(self.known["int"]), self.pick(self.known["decimal"])
        if kind == "text":
            return self.pick((
                two("{} || {}", one, other), two(f"{self.pick(('upper', 'lower', 'trim'))}({{}})", one),
                two("concat({}, {}, {}, NULL)", one, number, other), two("CAST({} AS TEXT)", number),
                two("greatest({}, {})", one, other), two("left({}, 1)", one),
            ))  # fmt: skip
        if kind == "date":
            return two("least({}, {})", one, other)
        found = [*self.numbers(kind, one, other), two("greatest({}, {})", one, other)]
        if kind == "int":
            found += [
                two("length({})", self.pick(self.known["text"])),
                two(f"({{}} % {self.pick((-3, 2))})", number),
                two("CAST({} AS INT)", decimal), two("CAST({} AS INT)", self.pick(self.known["double"])),
            ]  # fmt: skip
        if kind == "decimal":
            found += [two("round({}, 1)", decimal), two("({} * 0.5)", decimal)]
        return self.pick(found)

    def value(self, kind: str, depth: int) -> Two:
        if kind == "int" and self.chance.random() < 0.15:
            return self.expression(self.pick(("decimal", "double")), depth)
        return super().value(kind, depth)

    def sources(self) -> Sources:
        raise NotImplementedError("its changes are in random_wide")

    def statement(self, sources: Sources, sets: Mapping[str, Two], where: Two | None) -> str:
        raise NotImplementedError("its changes are in random_wide")


_MAKERS: Final[Mapping[Dialect, type[Maker]]] = {
    Dialect.POSTGRES: Postgres,
    Dialect.TSQL: TransactSql,
    Dialect.TERADATA: Teradata,
}


def random_merge(dialect: Dialect, seed: int) -> PlacedChange:
    """A MERGE of a dialect."""
    maker = _MAKERS[dialect](random.Random(f"merge {dialect} {seed}"))
    pick, chance = maker.pick, maker.chance
    mine = {kind: list(known) for kind, known in maker.known.items()}
    using, link = _merged_source(maker)
    both = {kind: list(known) for kind, known in maker.known.items()}
    theirs = {kind: [one for one in known if one not in mine[kind]] for kind, known in both.items()}
    clauses: list[_Clause] = []
    matched = pick(((), ("UPDATE",), ("UPDATE",), ("DELETE",), ("UPDATE", "DELETE"), ("DELETE", "UPDATE")))
    for place, verb in enumerate(matched):
        limited = verb == "DELETE" or place + 1 < len(matched) or chance.random() < 0.3
        clauses.append(_clause(maker, "MATCHED", verb, both, limited=limited))
    if not matched or chance.random() < 0.6:
        clauses.append(_clause(maker, "NOT MATCHED", "INSERT", theirs, limited=chance.random() < 0.4))
    alone = _clause(maker, "NOT MATCHED BY SOURCE", pick(("UPDATE", "DELETE")), mine, limited=True)
    _sees(maker, both)
    maker.asks = chance.random() < 0.1 and all(one.when == "MATCHED" for one in clauses)
    on = two("{} AND ({})", link, maker.condition(1)) if chance.random() < 0.3 else link
    listed = joined(" ", [one.said for one in clauses])
    said = two(f"MERGE INTO t AS {maker.target} USING {{}} ON {{}} {{}}", using, on, listed)
    if dialect is Dialect.TERADATA or chance.random() < 0.7:
        return PlacedChange(
            rows=wide_rows(chance), text=said.ours, dialect=dialect, table="t", theirs=[said.theirs]
        )
    # PostgreSQL 16 has no BY SOURCE; both statements see the table as it was
    limit = alone.condition or two("TRUE")
    unmatched = f"NOT EXISTS (SELECT 1 FROM {using.theirs} WHERE {on.theirs}) AND ({limit.theirs})"
    verb = f"UPDATE t AS {maker.target} SET {alone.sets.theirs}" if alone.verb == "UPDATE" else ""
    before = f"{verb or f'DELETE FROM t AS {maker.target}'} WHERE {unmatched} RETURNING 1"
    return PlacedChange(
        rows=wide_rows(chance), text=f"{said.ours} {alone.said.ours}", dialect=dialect, table="t",
        theirs=[f"WITH alone AS ({before}) {said.theirs}"], counted=False,
    )  # fmt: skip


def _merged_source(maker: Maker) -> tuple[Two, Two]:
    """What a MERGE reads, and how it is tied: more often than not with each key once."""
    match maker.chance.randrange(5):
        case 0:
            found = maker.one_source("l", maker.pick(("s", "u", "t")))
        case 1:
            found = maker.query_source(two("SELECT k, MAX(b) AS v FROM s GROUP BY k"))
        case _:
            columns = [one for one in SCHEMAS["s"] if one.name in ("b", "c", "n", "m", "Day")]
            listed = [
                Two(f"MAX({maker.quoted(one.name)}) AS {maker.quoted(one.name)}",
                    f"MAX({name(one.name)}) AS {name(one.name)}")
                for one in columns
            ]  # fmt: skip
            query = two("(SELECT k, {} FROM s GROUP BY k) AS l", joined(", ", listed))
            for one in columns:
                maker.known[KINDS[one.type]].append(maker.column("l", one.name))
            maker.known["int"].append(maker.column("l", "k"))
            tie = two("{} = {}", maker.own("k", "k", "a", "id"), maker.column("l", "k"))
            found = Sources(listed=[query], link=tie)
    assert found.link is not None
    return found.listed[0], found.link


@dataclass(frozen=True, kw_only=True)
class _Clause:
    """A clause of a MERGE; `sets` is what comes after SET, or after INSERT."""

    when: str
    verb: str
    condition: Two | None
    sets: Two

    @property
    def said(self) -> Two:
        """As it is written."""
        limit = two("") if self.condition is None else two(" AND ({})", self.condition)
        then = {"DELETE": "DELETE", "INSERT": "INSERT {}", "UPDATE": "UPDATE SET {}"}[self.verb]
        return two(f"WHEN {self.when}{{}} THEN {then}", limit, self.sets)


def _clause(maker: Maker, when: str, verb: str, known: Mapping[str, list[Two]], *, limited: bool) -> _Clause:
    _sees(maker, known)
    maker.asks = when != "NOT MATCHED BY SOURCE" and maker.chance.random() < 0.35
    condition = maker.condition(1) if limited else None
    columns = [one for one in SCHEMAS["t"] if one.type in TARGETS]
    chosen = maker.chance.sample(columns, k=maker.pick((1, 2, 3)))
    names = [Two(maker.quoted(one.name), name(one.name)) for one in chosen]
    values = [maker.value(TARGETS[one.type], 1) for one in chosen]
    if verb == "INSERT":
        sets = two("({}) VALUES ({})", joined(", ", names), joined(", ", values))
    else:
        sets = joined(", ", [two("{} = {}", one, value) for one, value in zip(names, values, strict=True)])
    return _Clause(when=when, verb=verb, condition=condition, sets=sets)


def _sees(maker: Maker, known: Mapping[str, list[Two]]) -> None:
    """Let expressions be over these alone; there is something of every kind."""
    maker.known = {kind: list(each) for kind, each in known.items()}
    for kind in ("int", "text", "decimal", "double", "date"):
        if not maker.known[kind]:
            maker.known[kind].append(maker.literal(kind))


@dataclass(frozen=True, kw_only=True)
class _Added:
    """The rows of an upsert: their columns, and the query or VALUES that they come from; `query` is always a query,
    with the columns' names."""

    columns: tuple[str, ...]
    source: str
    query: str


def _added(maker: Maker, table: str, keys: Sequence[str], columns: Sequence[str]) -> _Added:
    types = {one.name: one.type for one in SCHEMAS[table]}
    pick, chance = maker.pick, maker.chance
    if chance.random() < 0.4:
        _sees(maker, {kind: [] for kind in set(KINDS.values())})
        whole = [key for key in keys if types[key] == "int"]
        rows = [
            [
                str(chance.randint(0, 7)) if column in whole and chance.random() < 0.9
                else maker.literal(TARGETS[types[column]]).ours if chance.random() < 0.85 else "NULL"
                for column in columns
            ]
            for _ in range(pick((1, 1, 2, 3)))
        ]  # fmt: skip
        cast = CASTS if maker.dialect is Dialect.MYSQL else TYPES
        named = [
            "SELECT "
            + ", ".join(
                f"CAST({one} AS {cast[types[to]]}) AS {maker.quoted(to)}"
                for one, to in zip(row, columns, strict=True)
            )
            for row in rows
        ]
        source = "VALUES " + ", ".join(f"({', '.join(row)})" for row in rows)
        return _Added(columns=tuple(columns), source=source, query=" UNION ALL ".join(named))
    maker.known = {kind: [] for kind in set(KINDS.values())}
    of = pick(("s", "u", "t", "p"))
    maker.has("y", of)
    _sees(maker, maker.known)
    maker.asks = chance.random() < 0.3
    values = [
        pick(maker.known["int"]).ours if column in keys else maker.value(TARGETS[types[column]], 1).ours
        for column in columns
    ]
    where = f" WHERE {maker.condition(1).ours}" if chance.random() < 0.6 else ""
    listed = ", ".join(f"{value} AS {maker.quoted(to)}" for value, to in zip(values, columns, strict=True))
    query = f"SELECT {listed} FROM {of} AS y{where}"
    return _Added(columns=tuple(columns), source=query, query=query)


def _columns(maker: Maker, table: str, keys: Sequence[str]) -> list[str]:
    others = [one.name for one in SCHEMAS[table] if one.name not in keys and one.type in TARGETS]
    found = [*keys, *maker.chance.sample(others, k=maker.pick((0, 1, 2, 3)))]
    maker.chance.shuffle(found)
    return found


def _several(added: _Added, keys: Sequence[str], maker: Maker) -> str:
    named = ", ".join(maker.quoted(key) for key in keys)
    there = " AND ".join(f"{maker.quoted(key)} IS NOT NULL" for key in keys)
    rows = f"SELECT {named} FROM ({added.query}) AS q WHERE {there} GROUP BY {named} HAVING count(*) > 1"
    return f"SELECT count(*) FROM ({rows}) AS z"


def _smallest(added: _Added, table: str, keys: Sequence[str], maker: Maker) -> str:
    """Of rows with one key the one with the smallest values, NULL first, as they are stored."""
    kinds = {one.name: one.type for one in SCHEMAS[table]}
    mysql = maker.dialect is Dialect.MYSQL
    names = [maker.quoted(one) for one in added.columns]
    stored = ", ".join(
        f"CAST({said} AS {(CASTS if mysql else TYPES)[kinds[one]]}) AS {said}"
        for one, said in zip(added.columns, names, strict=True)
    )
    order = ", ".join(one if mysql else f"{one} NULLS FIRST" for one in names)
    among = ", ".join(maker.quoted(key) for key in keys)
    lacking = " OR ".join(f"{maker.quoted(key)} IS NULL" for key in keys)
    rows = f"(SELECT {stored} FROM ({added.query}) AS q) AS w"
    ranked = f"SELECT *, row_number() OVER (PARTITION BY {among} ORDER BY {order}) AS turn FROM {rows}"
    return f"SELECT {', '.join(names)} FROM ({ranked}) AS z WHERE turn = 1 OR {lacking}"


def random_on_conflict(seed: int) -> PlacedChange:
    """PostgreSQL's INSERT ... ON CONFLICT."""
    maker = Postgres(random.Random(f"on conflict {seed}"))
    columns = _columns(maker, KEYED, ["k"])
    added = _added(maker, KEYED, ["k"], columns)
    alias = maker.pick((KEYED, "x"))
    does = "NOTHING"
    if maker.chance.random() < 0.75:
        sets = _sets_of_there(maker, alias, [maker.column("excluded", one) for one in columns], columns)
        where = f" WHERE {maker.condition(1).ours}" if maker.chance.random() < 0.3 else ""
        does = f"UPDATE SET {', '.join(f'{name(column)} = {value}' for column, value in sets.items())}{where}"
    into = KEYED if alias == KEYED else f"{KEYED} AS {alias}"
    listed = ", ".join(map(name, columns))
    begin, end = f"INSERT INTO {into} ({listed}) ", f" ON CONFLICT (k) DO {does}"
    return _upsert(maker, added, ["k"], begin + added.source + end, begin, end)


def random_duplicate_key(seed: int) -> PlacedChange:
    """MySQL's INSERT ... ON DUPLICATE KEY UPDATE."""
    maker = MySql(random.Random(f"duplicate key {seed}"))
    columns = _columns(maker, KEYED, ["k"])
    added = _added(maker, KEYED, ["k"], columns)
    given = [two("VALUES({})", two(maker.quoted(one))) for one in columns]
    sets = _sets_of_there(maker, KEYED, given, columns)
    listed = ", ".join(map(maker.quoted, columns))
    set_ = ", ".join(f"{maker.quoted(column)} = {value}" for column, value in sets.items())
    begin, end = f"INSERT INTO {KEYED} ({listed}) ", f" ON DUPLICATE KEY UPDATE {set_}"
    return _upsert(maker, added, ["k"], begin + added.source + end, begin, end)


def random_replace(seed: int) -> PlacedChange:
    """MySQL's REPLACE."""
    maker = MySql(random.Random(f"replace {seed}"))
    columns = [one.name for one in SCHEMAS[KEYED]]
    maker.chance.shuffle(columns)
    added = _added(maker, KEYED, ["k"], columns)
    begin = f"REPLACE INTO {KEYED} ({', '.join(map(maker.quoted, columns))}) "
    return _upsert(maker, added, ["k"], begin + added.source, begin, "")


def random_upsert(seed: int) -> PlacedChange:
    """Our own UPSERT in PostgreSQL's words; of p, or of a table whose keys nothing keeps apart."""
    maker = Postgres(random.Random(f"upsert {seed}"))
    table, keys = maker.pick(((KEYED, ["k"]), ("t", ["k"]), ("t", ["k", "a"]), ("t", ["s"])))
    columns = _columns(maker, table, keys)
    added = _added(maker, table, keys, columns)
    text = f"UPSERT INTO {table} ({', '.join(map(name, columns))}) ON ({', '.join(keys)}) {added.source}"
    rest = [name(one) for one in columns if one not in keys]
    kinds = {one.name: one.type for one in SCHEMAS[table]}
    stored = ", ".join(f"CAST({name(one)} AS {TYPES[kinds[one]]}) AS {name(one)}" for one in columns)
    begin = f"MERGE INTO {table} USING (SELECT {stored} FROM ("
    end = f") AS w) AS q ON {' AND '.join(f'{table}.{key} = q.{key}' for key in keys)}"
    if rest:
        end += f" WHEN MATCHED THEN UPDATE SET {', '.join(f'{one} = q.{one}' for one in rest)}"
    values = ", ".join(f"q.{name(one)}" for one in columns)
    end += f" WHEN NOT MATCHED THEN INSERT ({', '.join(map(name, columns))}) VALUES ({values})"
    return PlacedChange(
        rows=wide_rows(maker.chance), text=text, dialect=Dialect.POSTGRES, table=table,
        theirs=[begin + added.query + end], several=_several(added, keys, maker),
        chosen=begin + _smallest(added, table, keys, maker) + end,
    )  # fmt: skip


def random_else_insert(seed: int) -> PlacedChange:
    """Teradata's UPDATE ... ELSE INSERT."""
    maker = Teradata(random.Random(f"else insert {seed}"))
    maker.known = {kind: [] for kind in set(KINDS.values())}
    maker.has("t", "t")
    maker.target, maker.asks = "t", False
    columns = [one for one in SCHEMAS["t"] if one.type in TARGETS]
    where = two(f"t.{maker.pick(('k', 'a', 'id'))} = {maker.chance.randint(0, 7)}")
    if maker.chance.random() < 0.5:
        where = two("{} AND ({})", where, maker.condition(1))
    chosen = maker.chance.sample(columns, k=maker.pick((1, 2, 3)))
    sets = [(name(one.name), maker.value(TARGETS[one.type], 2)) for one in chosen]
    _sees(maker, {kind: [] for kind in set(KINDS.values())})
    added = maker.chance.sample(columns, k=maker.pick((1, 3, 5)))
    values = joined(", ", [maker.value(TARGETS[one.type], 1) for one in added])
    update = two(
        "UPDATE t SET {} WHERE {}", joined(", ", [two(f"{one} = {{}}", value) for one, value in sets]), where
    )
    insert = two(f"INSERT INTO t ({', '.join(name(one.name) for one in added)}) VALUES ({{}})", values)
    return PlacedChange(
        rows=wide_rows(maker.chance), text=two("{} ELSE {}", update, insert).ours, dialect=Dialect.TERADATA,
        table="t", theirs=[update.theirs, insert.theirs],
    )  # fmt: skip


def _sets_of_there(maker: Maker, there: str, given: Sequence[Two], columns: Sequence[str]) -> dict[str, str]:
    """What a row that is there gets: of itself, and of the new row's columns."""
    kinds = {one.name: one.type for one in SCHEMAS[KEYED]}
    maker.known = {kind: [] for kind in set(KINDS.values())}
    maker.has(there, KEYED)
    for one, column in zip(given, columns, strict=True):
        maker.known[KINDS[kinds[column]]] += [one, one]
    maker.target, maker.asks = there, False
    found: dict[str, str] = {}
    for column in maker.chance.sample([one for one in kinds if one != "k"], k=maker.pick((1, 2, 3))):
        found[column] = maker.value(TARGETS[kinds[column]], 1).ours
        maker.has_set(column)
    return found


def _upsert(
    maker: Maker, added: _Added, keys: Sequence[str], text: str, begin: str, end: str
) -> PlacedChange:
    mysql = maker.dialect is Dialect.MYSQL
    return PlacedChange(
        rows=wide_rows(maker.chance), text=text, dialect=maker.dialect, table=KEYED,
        keys=tuple(keys) if mysql else (), theirs=[text], several=_several(added, keys, maker),
        chosen=begin + _smallest(added, KEYED, keys, maker) + end, counted=not mysql,
    )  # fmt: skip


Made = Callable[[int], PlacedChange]
MERGES: Final[Mapping[str, Made]] = {f"{one.value}_merge": partial(random_merge, one) for one in _MAKERS}
UPSERTS: Final[Mapping[str, Made]] = {
    "postgres_upsert": random_on_conflict,
    "upsert": random_upsert,
    "teradata_upsert": random_else_insert,
}
MYSQL_UPSERTS: Final[Mapping[str, Made]] = {
    "mysql_upsert": random_duplicate_key,
    "mysql_replace": random_replace,
}
