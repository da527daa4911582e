"""SQL Server's change of a query behind WITH, `WITH c AS (SELECT ... FROM t) DELETE FROM c`, as one of its table. Pure.

The rows of such a query are rows of its table: it is a SELECT of one table, with or without WHERE, TOP and windows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.numbered.row_numbers import (
    DIFFERS,
    NumberedRows,
    compared,
    number_of,
    value_of,
)
from lakewarden.jobs.sql.compile.places import wrong_in

__all__ = ["change_its_table"]

_READ: Final = frozenset({"expressions", "from_", "where", "order", "limit"})
_HINT: Final = "Name the table that it reads, and say the rest in WHERE."
_MIRRORED: Final[Mapping[type[exp.Expr], type[exp.Binary]]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
_ALIKE: Final = (exp.Rank, exp.DenseRank, exp.Count, exp.Sum, exp.Min, exp.Max)
"""What gives rows that are alike in the order of a window the same."""


@dataclass(frozen=True, kw_only=True)
class _Query:
    """A query behind WITH, whose rows are those of one table."""

    name: str
    table: exp.Table
    where: exp.Expr | None
    results: Mapping[str, exp.Expr]
    """What its columns are, by name."""
    whole: bool
    """It has all columns of the table besides."""

    @property
    def rows(self) -> NumberedRows:
        """The rows of the table that it gives."""
        return NumberedRows(table=self.table, row=self.name, where=self.where)


def change_its_table(tree: exp.Expr) -> tuple[str, ...]:
    """If a statement changes a query behind WITH, have it change its table; what is to be told of it. Changes the tree.
    Raises `UsageError`, with the place, for a query whose rows are not those of one table."""
    with_ = tree.args.get("with_")
    named = tree.args.get("tables") or [tree.this]
    target = named[0]
    if with_ is None or not isinstance(target, exp.Table) or target.db:
        return ()
    cte = next((one for one in with_.expressions if one.alias.lower() == target.name.lower()), None)
    if cte is None:
        return ()
    _require_alone(tree, target, cte)
    query = _read(cte, [one.alias.lower() for one in with_.expressions])
    tree.set("tables", None)
    if isinstance(tree, exp.Update):
        tree.set("expressions", [_assignment(part, query) for part in tree.expressions])
    where = tree.args.get("where")
    conditions = [] if query.where is None else [_of_target(query.where, query)]
    limit = cte.this.args.get("limit")
    if limit is not None:
        window = exp.Window(this=exp.RowNumber(), order=cte.this.args["order"].copy())
        conditions.append(compared(query.rows, window, exp.LTE, limit.expression))
    conditions += [] if where is None else [_said(where.this, query)]
    tree.set("where", exp.Where(this=exp.and_(*conditions)) if conditions else None)
    table = query.table.copy()
    table.set("alias", exp.TableAlias(this=exp.to_identifier(query.name)))
    tree.set("this", table)
    others = [one for one in with_.expressions if one is not cte]
    tree.set("with_", exp.With(expressions=[one.copy() for one in others]) if others else None)
    numbers = limit is not None or any(map(_has_number, query.results.values()))
    return (DIFFERS.format("tsql"),) if numbers else ()


def _require_alone(tree: exp.Expr, target: exp.Table, cte: exp.CTE) -> None:
    """Raise `UsageError` where the statement reads the query beside changing it."""
    item, name = tree.this if isinstance(tree.this, exp.Table) else target, target.name.lower()
    joined = item.args.get("joins") or item.args.get("alias") or tree.args.get("from_")
    others = [one for one in tree.find_all(exp.Table, exp.Subquery) if one is not item and one is not target]
    again = [
        one
        for one in others
        if one.alias_or_name.lower() == name
        or (isinstance(one, exp.Table) and not one.db and one.name.lower() == name)
    ]
    if joined or again or item.name.lower() != name:
        raise wrong_in(
            again[0] if again else item,
            f"{target.name} is a query behind WITH, and is read here, too.",
            hint=_HINT,
        )
    if cte.args["alias"].columns:
        raise wrong_in(
            cte.args["alias"].columns[0],
            "The columns of a query that is changed are named in it.",
            hint="Write SELECT a AS x.",
        )


def _read(cte: exp.CTE, others: list[str]) -> _Query:
    query = cte.this
    from_ = query.args.get("from_") if isinstance(query, exp.Select) else None
    table = None if from_ is None else from_.this
    odd = any(part and key not in _READ for key, part in query.args.items())
    counts = any(one.find_ancestor(exp.Window, exp.Select) is query for one in query.find_all(exp.AggFunc))
    if not isinstance(table, exp.Table) or table.args.get("joins") or odd or counts:
        raise wrong_in(query, f"The rows of {cte.alias} are not those of one table.", hint=_HINT)
    if not table.db and table.name.lower() in others:
        raise wrong_in(table, f"{cte.alias} reads another query behind WITH.", hint=_HINT)
    _require_first_rows(query)
    where = query.args.get("where")
    results = {one.alias_or_name.lower(): one.unalias() for one in query.expressions if not one.is_star}
    return _Query(
        name=cte.alias,
        table=table,
        where=None if where is None else where.this,
        results=results,
        whole=len(results) < len(query.expressions),
    )


def _require_first_rows(query: exp.Select) -> None:
    """Raise `UsageError` for a TOP that is none of a number that is written, in an order."""
    limit, order = query.args.get("limit"), query.args.get("order")
    if limit is None and order is None:
        return
    most = None if limit is None else limit.args.get("expression")
    plain = isinstance(limit, exp.Limit) and isinstance(most, exp.Literal) and most.is_int
    more = isinstance(limit, exp.Limit) and (limit.args.get("limit_options") or limit.args.get("offset"))
    if not plain or more or order is None or order.find(exp.Column) is None:
        raise wrong_in(
            limit or order,
            "TOP takes rows by chance where nothing orders them.",
            hint="Write TOP (10) with ORDER BY and columns of the table that tell its rows apart.",
        )
    results = {one.alias.lower(): one.this for one in query.expressions if isinstance(one, exp.Alias)}
    for one in order.expressions:
        by = one.this
        found = results.get(by.name.lower()) if isinstance(by, exp.Column) and not by.table else None
        if found is not None and found.find(exp.Window, exp.Query) is not None:
            raise wrong_in(
                by,
                f"{by.name} is a result of the query here, and is not computed from one row alone.",
                hint="Write in ORDER BY what the result is computed from.",
            )
        if found is not None:
            one.set("this", found.copy())


def _assignment(part: exp.Expr, query: _Query) -> exp.Expr:
    """An assignment, of a column of the table."""
    column = part.this
    if not isinstance(part, exp.EQ) or not isinstance(column, exp.Column):
        raise wrong_in(part, "Expected an assignment.", hint="Write SET column = value.")
    found = _result(column, query)
    if not isinstance(found, exp.Column):
        raise wrong_in(
            column, f"{column.name} is computed, and cannot be set.", hint="Set the column itself."
        )
    own = column.copy()
    own.set("this", found.this.copy())
    return exp.EQ(this=own, expression=_said(part.expression, query))


def _said(part: exp.Expr, query: _Query) -> exp.Expr:
    """A condition or a value with what the query's columns are of the table."""
    root = exp.Paren(this=part.copy())
    for column in list(root.find_all(exp.Column)):
        own = column.table.lower() == query.name.lower()
        if column.table and not own:
            continue
        inside = column.find_ancestor(exp.Query) is not None
        if inside and not own:
            _require_plain(column, query)
            continue
        found = _result(column, query)
        if isinstance(found, exp.Column):
            column.set("this", found.this.copy())
        elif inside:
            raise wrong_in(
                column,
                f"{column.name} is computed, and is asked for in a query here.",
                hint="Compare it outside of the query.",
            )
        else:
            _put(column, found, query)
    value: exp.Expr = root.this
    return value


def _require_plain(column: exp.Column, query: _Query) -> None:
    """Raise `UsageError` for a name in a query that may be that of a result with another name in the table."""
    found = query.results.get(column.name.lower(), column)
    if not isinstance(found, exp.Column) or found.name.lower() != column.name.lower():
        raise wrong_in(
            column,
            f"Whose {column.name} is meant?",
            hint=f"Write {query.name}.{column.name}, or its own table's.",
        )


def _result(column: exp.Column, query: _Query) -> exp.Expr:
    found = query.results.get(column.name.lower(), column if query.whole else None)
    if found is None:
        raise wrong_in(column, f"{query.name} has no column {column.name}.", hint="Look at its SELECT list.")
    return found


def _put(column: exp.Column, found: exp.Expr, query: _Query) -> None:
    """Put what a result is in its place; with a number that it is compared with, the number of a row decides less."""
    above = column.parent
    if isinstance(above, exp.Binary) and type(above) in _MIRRORED and isinstance(found, exp.Window):
        first = above.this is column
        other = above.expression if first else above.this
        if _is_number(found) and isinstance(other, exp.Literal) and other.is_int:
            kind = type(above) if first else _MIRRORED[type(above)]
            above.replace(compared(query.rows, found, kind, other))
            return
    value = _of_target(found, query)
    column.replace(value if isinstance(value, exp.Subquery) else exp.paren(value, copy=False))


def _of_target(part: exp.Expr, query: _Query) -> exp.Expr:
    """What stands in the query, of the table by the name that it has as the target."""
    root = exp.Paren(this=part.copy())
    own = query.table.alias_or_name.lower()
    for item in root.find_all(exp.Table, exp.Subquery):
        if item.alias_or_name.lower() == own:
            raise wrong_in(item, f"Two tables are called {own} here.", hint="Give this one an alias.")
    windows = list(root.find_all(exp.Window))
    for column in root.find_all(exp.Column):
        if column.table.lower() == own and column.find_ancestor(exp.Window) is None:
            column.replace(exp.Column(this=column.this.copy(), table=exp.to_identifier(query.name)))
    for window in windows:
        window.replace(_windowed(window, query))
    value: exp.Expr = root.this
    return value


def _windowed(window: exp.Window, query: _Query) -> exp.Subquery:
    if _is_number(window):
        return number_of(query.rows, window)
    spec = window.args.get("spec")
    if not isinstance(window.this, _ALIKE) or (spec is not None and spec.args.get("kind") == "ROWS"):
        raise wrong_in(
            window,
            "This takes rows of equal order by chance.",
            hint="ROW_NUMBER, RANK, DENSE_RANK, COUNT, SUM, MIN and MAX are taken here, without ROWS.",
        )
    return value_of(query.rows, window)


def _is_number(found: exp.Expr) -> bool:
    return isinstance(found, exp.Window) and isinstance(found.this, exp.RowNumber)


def _has_number(found: exp.Expr) -> bool:
    return any(map(_is_number, found.find_all(exp.Window)))
