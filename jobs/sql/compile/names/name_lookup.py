"""One name: the column that it means, or an error with the place. Pure."""

from collections.abc import Iterator

from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.names.bindings import Bindings
from lakewarden.jobs.sql.compile.names.levels import Item, Level
from lakewarden.jobs.sql.compile.names.rules import LookupOrder, QueryClause, order_in, stands_alone
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["Lookup"]


class Lookup:
    """Looks names up as one dialect does."""

    def __init__(self, bindings: Bindings, dialect: Dialect) -> None:
        self._bindings, self._dialect = bindings, dialect

    def resolve(self, column: exp.Column, level: Level) -> None:
        """Bind a column that stands in a level's query, or put in its place what it is a name of."""
        if column.table:
            self._qualified(column, level)
        else:
            self._plain(column, level)

    def _plain(self, column: exp.Column, level: Level) -> None:
        name = column.name
        order = order_in(column, level.clause, level.select, self._dialect)
        results = level.results.get(name, []) if order is not LookupOrder.COLUMNS else []
        own = level.having(name)
        if order is LookupOrder.UNCLEAR and results and own and not self._is(results, own):
            raise self._two_things(column)
        named = order is LookupOrder.RESULTS_FIRST and not self._prefers_group(column, level, own)
        if results and (named or not own):
            self._as_result(column, level, results)
        elif own:
            self._bind(column, own, level, level)
        else:
            self._outside(column, level)

    def _prefers_group(self, column: exp.Column, level: Level, own: list[Item]) -> bool:
        """Whether MySQL's HAVING means a column that is grouped by."""
        group = level.select.args.get("group")
        if self._dialect is not Dialect.MYSQL or level.clause is not QueryClause.HAVING or group is None:
            return False
        grouped = [one for one in group.expressions if isinstance(one, exp.Column)]
        return any(one.name == column.name and one.table in [item.name for item in own] for one in grouped)

    def _is(self, results: list[exp.Expr], own: list[Item]) -> bool:
        """Whether a result is the column itself."""
        return all(isinstance(one, exp.Column) and one.table == own[0].name for one in map(_value, results))

    def _as_result(self, column: exp.Column, level: Level, results: list[exp.Expr]) -> None:
        """Put a result in the place of its name, or leave the name where Spark takes it for the result, too."""
        first = _value(results[0])
        if any(_value(other) != first for other in results[1:]):
            raise self._two_things(column)
        if level.clause is QueryClause.ORDER or (
            self._dialect is Dialect.SPARK and level.clause is QueryClause.LIST
        ):
            return
        around = self._first_outside(level, column.name)
        if self._dialect is Dialect.TERADATA and around:
            raise self._two_things(column)
        by_name = isinstance(first, exp.Literal) or first.find(exp.Query) is not None
        if level.clause is QueryClause.GROUP and stands_alone(column, level.select) and by_name:
            return
        copy = self._bindings.copied(first)
        column.replace(copy if isinstance(copy, exp.Column | exp.Literal) else exp.paren(copy, copy=False))

    def _outside(self, column: exp.Column, level: Level) -> None:
        name = column.name
        for outer in _around(level):
            if (
                self._dialect is Dialect.MYSQL
                and outer.clause is QueryClause.HAVING
                and name in outer.results
            ):
                raise self._two_things(column)
            found = outer.having(name)
            if found:
                self._bind(column, found, outer, level)
                return
        raise self._no_column(column)

    def _first_outside(self, level: Level, name: str) -> list[Item]:
        return next((found for outer in _around(level) if (found := outer.having(name))), [])

    def _bind(self, column: exp.Column, found: list[Item], owner: Level, level: Level) -> None:
        if len(found) > 1:
            raise self._several(column, found)
        same = owner.same_as(column.name, found[0])
        if len(same) > 1:
            column.replace(self._bindings.column(column.name, same, level))
        else:
            self._bindings.bind(column, found[0], level)

    def _qualified(self, column: exp.Column, level: Level) -> None:
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        for first in range(len(parts) - 1):  # with its database before it, or with fields behind it
            owner = next((one for one in (level, *_around(level)) if one.called(parts[first].name)), None)
            if owner is None:
                continue
            called = owner.called(parts[first].name)
            if len(called) > 1 or called[0].columns.count(parts[first + 1].name) > 1:
                raise self._several(column, called)
            if parts[first + 1].name not in called[0].columns:
                raise self._lacking(column, parts[first + 1].name, called[0].name)
            self._bind_path(column, parts[first + 1 :], called[0], level)
            return
        if self._dialect is Dialect.SPARK:
            for one in (level, *_around(level)):
                found = one.having(parts[0].name)
                if found:
                    self._bind_path(column, parts, found[0], level)
                    return
        raise self._lacking(column, column.name, column.table)

    def _bind_path(self, column: exp.Column, path: list[exp.Identifier], item: Item, level: Level) -> None:
        """Bind a column with the fields behind it."""
        root = exp.Column(this=path[0].copy()) if len(path) > 1 else column
        for key in ("db", "catalog"):
            root.set(key, None)
        self._bindings.bind(root, item, level)
        if root is not column:
            column.replace(exp.Dot.build([root, *(part.copy() for part in path[1:])]))

    def _no_column(self, column: exp.Column) -> UsageError:
        return wrong_in(
            column.this,
            f"There is no column {column.name} in the tables that are named.",
            hint="Look at their schemas.",
        )

    def _lacking(self, column: exp.Column, name: str, table: str) -> UsageError:
        return wrong_in(
            column.this,
            f"There is no column {name} in {table}.",
            hint="Look at its schema, and at the aliases.",
        )

    def _several(self, column: exp.Column, found: list[Item]) -> UsageError:
        owners = ", ".join(dict.fromkeys(item.name for item in found))
        return wrong_in(
            column.this,
            f"{column.name} is not clear here: {owners} {'have' if len(found) > 1 else 'has'} such a column.",
            hint=f"Write whose it is: table.{column.name}.",
        )

    def _two_things(self, column: exp.Column) -> UsageError:
        return wrong_in(
            column.this,
            f"{column.name} is not clear here: a result of the query is called so, and a column.",
            hint=f"Write whose it is, table.{column.name}, or give the result another name.",
        )


def _value(result: exp.Expr) -> exp.Expr:
    """What a result is, without its name."""
    return result.unalias()


def _around(level: Level) -> Iterator[Level]:
    """The queries around one, the nearest first."""
    outer = level.outer
    while outer is not None:
        yield outer
        outer = outer.outer
