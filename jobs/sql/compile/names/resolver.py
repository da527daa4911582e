"""Gives each column of a query its table, by the scoping of the statement's dialect. Pure.

Nothing is left to names afterwards: every column says whose it is, results that are named in expressions stand there
themselves, USING and * are said by columns, and whatever a name could be taken for something else by has another one.
"""

from collections.abc import Collection, Mapping
from typing import Final

from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.names.bindings import Bindings
from lakewarden.jobs.sql.compile.names.joins import is_comma, say_using
from lakewarden.jobs.sql.compile.names.levels import CommonTable, Item, Level
from lakewarden.jobs.sql.compile.names.name_lookup import Lookup
from lakewarden.jobs.sql.compile.names.outputs import (
    columns_given,
    name_result,
    say_numbers,
    with_columns_named,
)
from lakewarden.jobs.sql.compile.names.parts import refuse_unread_parts
from lakewarden.jobs.sql.compile.names.rules import QueryClause
from lakewarden.jobs.sql.compile.names.uniqueness import tell_apart
from lakewarden.jobs.sql.compile.places import refuse_long_name, wrong_in
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["resolve"]

_CLAUSES: Final = {
    "where": QueryClause.WHERE,
    "group": QueryClause.GROUP,
    "having": QueryClause.HAVING,
    "qualify": QueryClause.QUALIFY,
    "windows": QueryClause.LIST,
    "distinct": QueryClause.ORDER,
    "order": QueryClause.ORDER,
    "limit": QueryClause.ON,
    "offset": QueryClause.ON,
}
_WITH_QUALIFY: Final = frozenset({Dialect.TERADATA, Dialect.SPARK})
_SEEN_NO_MORE: Final = frozenset({"SEMI", "ANTI"})
_FIRST_OF_VALUES: Final = {Dialect.POSTGRES: ("column", 1), Dialect.MYSQL: ("column_", 0)}
"""How the columns of VALUES are called that has no names for them, and from which number on."""

Names = Mapping[str, CommonTable]


def resolve(
    query: exp.Select,
    known: Mapping[str, tuple[str, ...]],
    tables: Collection[str],
    dialect: Dialect,
) -> None:
    """Resolve a query whose tables are called like the keys of `known`, which has their columns; all names are in lower
    case. `tables` are their names elsewhere. Raises `UsageError`, with the place, for a name that is not there or is
    not clear."""
    refuse_unread_parts(query)
    taken = {one.name for one in query.find_all(exp.Identifier)}
    resolver = _Resolver(known, taken, dialect)
    resolver.query(query, None, {})
    columns = {name for columns in known.values() for name in columns}
    tell_apart(query, resolver.bindings, columns=columns, tables=tables)


class _Resolver:
    """One walk over the statement."""

    def __init__(self, known: Mapping[str, tuple[str, ...]], taken: set[str], dialect: Dialect) -> None:
        self._known, self._taken, self._dialect = known, taken, dialect
        self.bindings = Bindings()
        self._lookup = Lookup(self.bindings, dialect)

    def query(self, node: exp.Expr, outer: Level | None, names: Names) -> tuple[str, ...]:
        """Resolve a query; what its columns are called."""
        names = self._with(node, outer, names)
        match node:
            case exp.Subquery() | exp.SetOperation():
                found = self.query(node.this, outer, names)
                if isinstance(node, exp.SetOperation):
                    self.query(node.expression, outer, names)
                self._order_of_results(node, found, outer, names)
                return found
            case exp.Select():
                return self._select(node, outer, names)
            case _:
                raise self._unread(node)

    def _with(self, node: exp.Expr, outer: Level | None, names: Names) -> Names:
        with_ = node.args.get("with_")
        if with_ is None:
            return names
        if with_.recursive:
            hint = "Write its result to a table first."
            raise wrong_in(with_, "WITH RECURSIVE is not supported here.", hint=hint)
        seen = dict(names)
        for cte in with_.expressions:
            columns = with_columns_named(cte, self.query(cte.this, outer, seen))
            seen[cte.alias] = self.bindings.with_query(cte, columns)
        return seen

    def _select(self, select: exp.Select, outer: Level | None, names: Names) -> tuple[str, ...]:
        level = Level(select=select, outer=outer)
        qualify = select.args.get("qualify")
        if qualify is not None and self._dialect not in _WITH_QUALIFY:
            hint = "Number the rows in a query in FROM, and ask around it."
            raise wrong_in(qualify, f"{self._dialect} has no QUALIFY.", hint=hint)
        self._from(select, level, names)
        given = columns_given(select, level, self.bindings)
        select.set("expressions", [one for one, _ in given])
        for number, (one, name) in enumerate(given):
            self._expression(one, level, QueryClause.LIST, names)
            result = name_result(select, number, name)
            level.results.setdefault(result.alias_or_name, []).append(result)
        say_numbers(select, select.expressions, self.bindings)
        for key, clause in _CLAUSES.items():
            for part in _listed(select.args.get(key)):
                self._expression(part, level, clause, names)
        return tuple(one.alias_or_name for one in select.expressions)

    def _order_of_results(
        self,
        node: exp.Subquery | exp.SetOperation,
        results: tuple[str, ...],
        outer: Level | None,
        names: Names,
    ) -> None:
        """What stands behind a query in parentheses, or behind several, names results alone."""
        say_numbers(node, node.selects, self.bindings)
        for key in ("order", "limit", "offset"):
            for part in _listed(node.args.get(key)):
                for column in part.find_all(exp.Column):
                    if column.table or column.name not in results:
                        hint = "Order by columns that the query gives."
                        raise wrong_in(column, f"{column.name} is no result of this query.", hint=hint)

    def _expression(self, root: exp.Expr, level: Level, clause: QueryClause, names: Names) -> None:
        """Resolve what stands in a clause, and the queries in it."""
        found = [one for one in root.walk(prune=_is_query) if isinstance(one, exp.Column) or _is_query(one)]
        for node in found:
            level.clause = clause
            if _is_query(node):
                self.query(node, level, names)
            elif (
                isinstance(node, exp.Column)
                and not isinstance(node.this, exp.Star)
                and id(node) not in self.bindings.uses
            ):
                self._lookup.resolve(node, level)

    def _from(self, select: exp.Select, level: Level, names: Names) -> None:
        from_ = select.args.get("from_")
        if from_ is not None:
            level.chains.append([self._read(from_.this, level, names)])
        for join in select.args.get("joins") or ():
            self._join(join, level, names)
        for lateral in select.args.get("laterals") or ():
            level.chains[-1].append(self._read(lateral, level, names))

    def _join(self, join: exp.Join, level: Level, names: Names) -> None:
        if is_comma(join):
            level.chains.append([])
        joined = self._read(join.this, level, names)
        say_using(join, joined, level, self.bindings, self._dialect)
        level.chains[-1].append(joined)
        if self._dialect is not Dialect.SPARK:
            _refuse_one_name_twice(joined, level)
        on = join.args.get("on")
        if on is not None:
            self._expression(on, level, QueryClause.ON, names)
        if join.kind in _SEEN_NO_MORE or join.side in _SEEN_NO_MORE:
            level.chains[-1].remove(joined)

    def _read(self, node: exp.Expr, level: Level, names: Names) -> Item:
        """What FROM or a join reads."""
        if node.args.get("joins"):
            hint = "Join one by one."
            raise wrong_in(node, "Joins in parentheses are not supported.", hint=hint)
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                return self._table(node, names)
            case exp.Subquery() if isinstance(node.this, exp.Query):
                columns = with_columns_named(node, self.query(node.this, level.outer, names))
                return self._item(node, columns)
            case exp.Lateral() if isinstance(node.this, exp.Subquery):
                columns = with_columns_named(node, self.query(node.this, level, names))
                return self._item(node, columns)
            case exp.Lateral() if node.args.get("view") and _names_of(node):
                self._expression(node.this, level, QueryClause.ON, names)
                return self._item(node, _names_of(node))
            case exp.Values():
                self._expression(node, Level(select=level.select, outer=level.outer), QueryClause.ON, names)
                return self._values(node)
            case _:
                raise self._unread(node)

    def _table(self, table: exp.Table, names: Names) -> Item:
        named = None if table.name in self._known else names[table.name]
        columns = self._known[table.name] if named is None else named.columns
        given = _names_of(table)
        if given:
            columns = (*given, *columns[len(given) :])
            listed = [exp.to_identifier(name, quoted=True) for name in columns]
            table.args["alias"].set("columns", listed)
        item = self._item(table, columns)
        if named is not None:
            named.readers.append(item)
        return item

    def _values(self, values: exp.Values) -> Item:
        given = _names_of(values)
        if not given:
            word, first = _FIRST_OF_VALUES.get(self._dialect, ("col", 1))
            width = (
                len(values.expressions[0].expressions) if isinstance(values.expressions[0], exp.Tuple) else 1
            )
            given = tuple(f"{word}{number}" for number in range(first, first + width))
            alias = values.args.get("alias") or exp.TableAlias()
            alias.set("columns", [exp.to_identifier(name, quoted=True) for name in given])
            values.set("alias", alias)
        return self._item(values, given)

    def _item(self, node: exp.Expr, columns: tuple[str, ...]) -> Item:
        alias = node.args.get("alias") or exp.TableAlias()
        if not alias.name:
            name = node.name if isinstance(node, exp.Table) else "_q"
            while name in self._taken and not isinstance(node, exp.Table):
                name += "_"
            self._taken.add(name)
            alias.set("this", exp.to_identifier(name, quoted=True))
            node.set("alias", alias)
        return self.bindings.item(node, alias.name, columns)

    def _unread(self, node: exp.Expr) -> UsageError:
        refuse_long_name(node)
        return wrong_in(
            node,
            "Expected a table, a query or VALUES.",
            hint="Name a table, or write (SELECT ...) AS s; else make a view of it.",
        )


def _refuse_one_name_twice(item: Item, level: Level) -> None:
    """Raise `UsageError` for a name that something else in FROM has, but for tables of several databases."""
    twins = [one.nodes[0] for one in level.called(item.name)]
    tables = {one.name for one in twins if isinstance(one, exp.Table)}
    if 1 < len(twins) != len(tables):
        raise wrong_in(
            item.nodes[0],
            f"Another table or query is called {item.name} here.",
            hint="Give it another alias.",
        )


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _listed(value: object) -> list[exp.Expr]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, exp.Expr)]


def _names_of(node: exp.Expr) -> tuple[str, ...]:
    """The columns that an alias names."""
    alias = node.args.get("alias")
    return () if alias is None else tuple(one.name for one in alias.columns)
