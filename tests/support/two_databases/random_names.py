"""Random conditions whose names collide on purpose: results and tables called like columns of every table, queries
behind WITH called like tables, three queries deep, where wanted in capitals, too. Many are no SQL: the database that is
asked says which."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from lakewarden.jobs.sql.compile.values import ColumnType, Dialect, TableName, TableSchema
from support.two_databases.sides import Rows

__all__ = ["NAMED_ROWS", "NAMED_SCHEMAS", "random_condition"]

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {"t": ("id", "k", "a"), "s": ("k", "b"), "u": ("k", "e")}
NAMED_SCHEMAS: Final[Mapping[TableName, TableSchema]] = {
    TableName(parts=(table,)): tuple(ColumnType(name=name, type="int") for name in columns)
    for table, columns in _COLUMNS.items()
}
NAMED_ROWS: Final[Mapping[str, Rows]] = {
    "t": [(1, 1, 2), (2, 2, -1), (3, None, 3), (4, 1, None), (5, -2, 1), (6, 3, -3)],
    "s": [(1, 2), (2, -2), (None, 3), (1, -1), (3, None)],
    "u": [(1, 3), (2, 1), (-2, None), (None, 2), (3, -3)],
}
_ALIASES: Final = ("t", "s", "u", "k", "a", "b", "e", "id", "q")
_RESULTS: Final = ("id", "k", "a", "b", "e", "s", "x")
_DEEPEST: Final = 3


@dataclass(frozen=True)
class _Seen:
    """What FROM reads under a name."""

    name: str
    columns: Sequence[str]


class _Maker:
    """One condition about a row of t."""

    def __init__(self, seed: int, dialect: Dialect, *, capitals: bool) -> None:
        self._random, self._dialect, self._capitals = Random(seed), dialect, capitals

    def condition(self, scopes: list[list[_Seen]], depth: int, results: Sequence[str] = ()) -> str:
        """Of columns in `scopes`, the innermost last, and of what a name of `results` may mean."""
        r = self._random
        one = self._value(scopes, results)
        if depth < _DEEPEST and r.random() < (0.9, 0.5, 0.25)[depth]:
            match r.randrange(5):
                case 0:
                    return f"{one} = ({self._extreme(scopes, depth + 1)})"
                case 1:
                    return f"{one} < ({self._first(scopes, depth + 1)})"
                case 2:
                    return f"{one} IN ({self._rows(scopes, depth + 1)})"
                case _:
                    return f"{r.choice(['', 'NOT '])}EXISTS ({self._rows(scopes, depth + 1)})"
        if r.random() < 0.2:
            return f"({self.condition(scopes, depth, results)} OR {self.condition(scopes, depth, results)})"
        return f"{one} {r.choice('<>=')} {r.choice([self._value(scopes, results), str(r.randint(-3, 3))])}"

    def _spelled(self, name: str) -> str:
        """The name, or the same in capitals, which is another one: in MySQL if it is that of no column."""
        if not self._capitals or self._random.random() > 0.3:
            return name
        return f'"{name.upper()}"' if self._dialect is Dialect.POSTGRES else name.upper()

    def _value(self, scopes: list[list[_Seen]], results: Sequence[str]) -> str:
        r = self._random
        own = r.random() < 0.6 or len(scopes) == 1
        item = r.choice(scopes[-1] if own else r.choice(scopes[:-1]))
        column = r.choice(item.columns)
        name = f"{item.name}.{column}" if r.random() < 0.3 else column
        if results and r.random() < 0.3:
            name = r.choice(results)
        return r.choice([name, name, name, f"-{name}", f"{name} + 1"])

    def _from(
        self, scopes: list[list[_Seen]], depth: int, queries: Mapping[str, Sequence[str]]
    ) -> tuple[str, list[_Seen]]:
        r = self._random
        found: list[_Seen] = []
        said: list[str] = []
        for _ in range(r.choice([1, 1, 2])):
            alias = r.choice([one for one in _ALIASES if one not in [item.name for item in found]])
            alias = self._spelled(alias)
            if depth < _DEEPEST and r.random() < 0.25:
                query, columns = self._derived(scopes, depth + 1)
                said.append(f"({query}) AS {alias}")
            else:
                known = {**_COLUMNS, **queries}
                table = r.choice(list(known))
                columns = known[table]
                if r.random() < 0.4 and table not in [item.name for item in found]:
                    alias = table
                said.append(f"{table} AS {alias}" if alias != table else table)
            found.append(_Seen(alias, columns))
        return ", ".join(said), found

    def _with(self, scopes: list[list[_Seen]], depth: int) -> tuple[str, Mapping[str, Sequence[str]]]:
        if self._random.random() > 0.25 or depth >= _DEEPEST:
            return "", {}
        query, columns = self._derived([], depth + 1)
        name = self._spelled(self._random.choice(["s", "u", "w", "k"]))
        return f"WITH {name} AS ({query}) ", {name: columns}

    def _derived(self, scopes: list[list[_Seen]], depth: int) -> tuple[str, Sequence[str]]:
        """A query in FROM or WITH, which sees nothing around it."""
        r = self._random
        tables, items = self._from([], depth, {})
        names = [self._spelled(name) for name in r.sample(_RESULTS, 2)]
        values = [self._value([items], ()) for _ in names]
        listed = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        where = f" WHERE {self._value([items], names)} > -3" if r.random() < 0.3 else ""
        match r.randrange(4):
            case 0:
                by = r.choice(names + [column for item in items for column in item.columns])
                grouped = f"SELECT {by} AS {names[0]}, max({values[1]}) AS {names[1]} FROM {tables}{where}"
                having = (
                    f" HAVING {r.choice([names[1], f'min({names[1]})'])} > -3" if r.random() < 0.5 else ""
                )
                return f"{grouped} GROUP BY {r.choice([by, names[0]])}{having}", names
            case 1 if self._dialect is Dialect.POSTGRES:
                by = self._value([items], names)
                ranked = f"RANK() OVER (ORDER BY {by}, {r.choice(names)})"
                return f"SELECT {listed}, {ranked} AS x1 FROM {tables}{where}", [*names, "x1"]
            case _:
                return f"SELECT {listed} FROM {tables}{where}", names

    def _extreme(self, scopes: list[list[_Seen]], depth: int) -> str:
        with_, queries = self._with(scopes, depth)
        tables, items = self._from(scopes, depth, queries)
        inside, name = [*scopes, items], self._spelled(self._random.choice(_RESULTS))
        having = ""
        if self._random.random() < 0.3:
            value = self._random.choice([f"max({self._value([items], [name])})", name])
            having = f" HAVING {value} > {self._value(inside[:-1], [name])}"
        where = self.condition(inside, depth, [name])
        value = self._value([items], ())
        return f"{with_}SELECT max({value}) AS {name} FROM {tables} WHERE {where}{having}"

    def _first(self, scopes: list[list[_Seen]], depth: int) -> str:
        """The first value by an order that leaves no choice."""
        r = self._random
        with_, queries = self._with(scopes, depth)
        tables, items = self._from([], depth, queries)
        name = self._spelled(r.choice(_RESULTS))
        by = r.choice([name, f"-{name}", f"({name})", f"{name} + 1", self._value([items], [name])])
        all_ = ", ".join(f"{item.name}.{column}" for item in items for column in item.columns)
        value = self._value([items], ())
        return f"{with_}SELECT {value} AS {name} FROM {tables} ORDER BY {by}, {all_} LIMIT 1"

    def _rows(self, scopes: list[list[_Seen]], depth: int) -> str:
        r = self._random
        with_, queries = self._with(scopes, depth)
        tables, items = self._from(scopes, depth, queries)
        inside, name = [*scopes, items], self._spelled(r.choice(_RESULTS))
        value, where = self._value(inside, ()), self.condition(inside, depth, [name])
        if r.random() < 0.2:
            by = r.choice([name, r.choice(items[0].columns)])
            having = r.choice(
                ["", f" HAVING {name} < 3", f" HAVING count(*) > {self._value(inside[:-1], [])}"]
            )
            selected = f"SELECT {r.choice([value, by])} AS {name} FROM {tables}"
            return f"{with_}{selected} WHERE {where} GROUP BY {by}{having}"
        return f"{with_}SELECT {value} AS {name} FROM {tables} WHERE {where}"


def random_condition(seed: int, dialect: Dialect, *, capitals: bool = False) -> str:
    """The condition of a seed, about a row of t; with `capitals` some names differ from others in nothing but case."""
    return _Maker(seed, dialect, capitals=capitals).condition([[_Seen("t", _COLUMNS["t"])]], 0)
