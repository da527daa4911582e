"""Columns of a query that is two or more queries further out, which Spark does not find. Pure.

The query between reads the values that the column has, and keeps the one of its own row: exactly one, so that nothing
else changes.
"""

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.type_families import Family, family_of

__all__ = ["within_reach"]

_HELD: Final = "lakewarden_held"
_COUNTING: Final = ("group", "having", "qualify")


def within_reach(query: exp.Select) -> exp.Select:
    """The query in which no column is of a table further out than the next query. Raises `UsageError`, with the place,
    where the query between cannot read it. Changes it; names are resolved."""
    if not any(_is_deep(select) for select in query.find_all(exp.Select)):
        return query
    _require_no_odd_not_in(query)
    number = 0
    while (found := next(_too_far(query), None)) is not None:
        _require_readable(*found)
        number = _read_all(found[1], number)
    return query


def _too_far(query: exp.Select) -> Iterator[tuple[exp.Column, exp.Select, exp.Expr]]:
    """Columns of tables that are too far out, the query between, and what FROM reads there."""
    for column in query.find_all(exp.Column):
        between, depth, select = None, 0, column.find_ancestor(exp.Select)
        while select is not None:
            item = _called(column.table, select)
            if item is not None:
                if depth > 1 and between is not None:
                    yield column, between, item
                break
            above = select.find_ancestor(exp.Select)
            if _is_expression(select):
                depth, between = depth + 1, between or above
            select = above


def _require_readable(column: exp.Column, between: exp.Select, item: exp.Expr) -> None:
    readable = family_of(column) is not Family.FLOAT and not isinstance(item, exp.Lateral)
    if not readable or not _may_read(column, between):
        raise wrong_in(
            column,
            f"{column.name} is of a table two queries further out, and Spark looks into the next one alone.",
            hint=f"Read {column.table} in the query between, too, or join instead of asking.",
        )


def _require_no_odd_not_in(query: exp.Select) -> None:
    """Raise `UsageError` for a NOT IN of a value from outside of the query it stands in, where what it asks depends on
    that query: Spark's join for it takes NULLs for no match."""
    for sought in query.find_all(exp.In):
        asked, between = sought.args.get("query"), sought.find_ancestor(exp.Select)
        if asked is None or between is None or not isinstance(_unwrapped(sought).parent, exp.Not):
            continue
        outer = [one for one in sought.this.find_all(exp.Column) if _called(one.table, between) is None]
        if outer and any(_is_of(one, between) for one in asked.find_all(exp.Column)):
            raise wrong_in(
                outer[0],
                f"{outer[0].name} is of a table further out, and Spark finds other rows where it is NOT IN.",
                hint="Write NOT EXISTS (SELECT 1 ... WHERE ...).",
            )


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    return node


def _is_of(column: exp.Column, between: exp.Select) -> bool:
    """Whether a column of a query in it is one of what FROM of this query reads."""
    select = column.find_ancestor(exp.Select)
    while select is not None and select is not between:
        if _called(column.table, select) is not None:
            return False
        select = select.find_ancestor(exp.Select)
    return select is between and _called(column.table, between) is not None


def _read_all(between: exp.Select, number: int) -> int:
    """Have a query read all that it depends on: else Spark would have to look for queries in conditions on rows outside
    of it. How many are read now."""
    outside: dict[tuple[str, str], tuple[exp.Expr, list[exp.Column]]] = {}
    for column in between.find_all(exp.Column):
        item = _read_outside(column, between)
        if item is not None and not isinstance(item, exp.Lateral) and _may_read(column, between):
            outside.setdefault((column.table, column.name), (item, []))[1].append(column)
    for (table, name), (item, columns) in outside.items():
        if family_of(columns[0]) is Family.FLOAT:
            continue
        held, outer = f"{_HELD}{number}", columns[0].copy()
        for column in columns:
            column.set("table", exp.to_identifier(held, quoted=True))
        rows = exp.Select(
            expressions=[exp.column(name, table=table, quoted=True)], from_=exp.From(this=item.copy())
        )
        alias = exp.TableAlias(this=exp.to_identifier(held, quoted=True))
        item_held = exp.Subquery(this=rows.distinct(copy=False), alias=alias)
        between.append("joins", exp.Join(this=item_held, kind="CROSS"))
        between.where(exp.NullSafeEQ(this=columns[0].copy(), expression=outer), copy=False)
        number += 1
    return number


def _read_outside(column: exp.Column, between: exp.Select) -> exp.Expr | None:
    """What FROM of a query further out reads under the name of a column; None for what is read inside."""
    is_outside, select = False, column.find_ancestor(exp.Select)
    while select is not None:
        item = _called(column.table, select)
        if item is not None:
            return item if is_outside else None
        is_outside = is_outside or select is between
        select = select.find_ancestor(exp.Select)
    return None


def _may_read(column: exp.Column, between: exp.Select) -> bool:
    """Whether a column more of a query's FROM is seen where this one stands."""
    part: exp.Expr = column
    while part.parent is not between and part.parent is not None:
        part = part.parent
    if part.arg_key == "where":
        return True
    counts = any(between.args.get(key) is not None for key in _COUNTING)
    counts = counts or any(one.find(exp.AggFunc) for one in between.expressions)
    return part.arg_key == "expressions" and not counts


def _is_expression(select: exp.Select) -> bool:
    """Whether a query stands in an expression of the query around it, not in FROM, WITH or as a part of a UNION."""
    above = select.parent
    while isinstance(above, exp.Subquery | exp.SetOperation):
        above = above.parent
    return above is not None and not isinstance(above, exp.From | exp.Join | exp.CTE | exp.Lateral)


def _is_deep(select: exp.Select) -> bool:
    """Whether a query stands in an expression of one that stands in an expression."""
    depth = 0
    one: exp.Select | None = select
    while one is not None and depth < 2:
        depth += _is_expression(one)
        one = one.find_ancestor(exp.Select)
    return depth > 1


def _called(name: str, select: exp.Select) -> exp.Expr | None:
    """What the FROM of a query reads under a name."""
    from_ = select.args.get("from_")
    items = [] if from_ is None else [from_.this]
    items += [join.this for join in select.args.get("joins") or ()]
    items += [join.this for item in list(items) for join in item.args.get("joins") or ()]
    items += select.args.get("laterals") or ()
    return next((item for item in items if item.alias_or_name == name), None)
