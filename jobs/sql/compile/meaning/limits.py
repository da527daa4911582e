"""LIMIT in a query that depends on a row outside of it. Pure.

Spark 4.1 makes a join of such a query. Where it depends on that row by an equality of anything but two columns of one
type, it loses ORDER BY, and takes the LIMIT for the rows of all outer rows together: most of them find nothing.
"""

from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.places import wrong_in

__all__ = ["require_plain_limits"]

_LIMITS: Final = (exp.Limit, exp.Fetch, exp.Offset)
_ORDERED: Final = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_EQUAL: Final = (exp.EQ, exp.NullSafeEQ)


def require_plain_limits(query: exp.Expr) -> None:
    """Raise `UsageError`, with the place, for a LIMIT that Spark would take for all outer rows. The columns have their
    tables and types."""
    for limit in query.find_all(*_LIMITS):
        inner = limit.parent
        outside = _from_outside(inner) if isinstance(inner, exp.Query) else []
        wrong = next((column for column in outside if not _is_safe(column, inner)), None)
        if wrong is not None:
            raise wrong_in(
                wrong,
                "Spark would take the LIMIT of this query for all rows outside of it together.",
                hint="Ask for MIN or MAX, or compare two columns of one type by =.",
            )  # fmt: skip


def _from_outside(inner: exp.Expr) -> list[exp.Column]:
    """Columns in a query whose tables are not."""
    own = {table.alias_or_name for table in inner.find_all(exp.Table)}
    own |= {held.alias for held in inner.find_all(exp.Subquery, exp.CTE, exp.Values, exp.Lateral)}
    return [column for column in inner.find_all(exp.Column) if column.table and column.table not in own]


def _is_safe(column: exp.Column, inner: exp.Expr | None) -> bool:
    """Whether a column from outside stands where Spark keeps the LIMIT of each row."""
    condition = column.parent
    while isinstance(condition, exp.Paren):
        condition = condition.parent
    if not isinstance(condition, exp.Binary) or not _is_required(condition, inner):
        return False
    sides = (condition.this.unnest(), condition.expression.unnest())
    if isinstance(condition, _ORDERED):
        return True
    return isinstance(condition, _EQUAL) and all(isinstance(one, exp.Column) for one in sides) and (
        sides[0].type is not None and sides[0].type == sides[1].type
    )  # fmt: skip


def _is_required(condition: exp.Expr, inner: exp.Expr | None) -> bool:
    """Whether every row that the query finds satisfies it: it is a part of the query's own WHERE."""
    above = condition.parent
    while isinstance(above, exp.And | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where) and above.parent is inner
