"""Where a dialect looks for a name without a table: among the columns of FROM, or the results of its own SELECT. Pure.

PostgreSQL: a result is found in GROUP BY and ORDER BY where its name stands alone, in GROUP BY after the columns, in
ORDER BY before them. SQL Server: in ORDER BY alone, likewise. MySQL: in HAVING before the columns that are not grouped
by, in GROUP BY and in what ORDER BY computes after the columns. Teradata: everywhere, after the columns. Spark: in
GROUP BY and HAVING after the columns, all over ORDER BY before them, and in the SELECT list behind it.
"""

from enum import StrEnum
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["LookupOrder", "QueryClause", "order_in", "stands_alone"]


class QueryClause(StrEnum):
    """Where in a query a name stands."""

    LIST = "SELECT"
    ON = "ON"
    WHERE = "WHERE"
    GROUP = "GROUP BY"
    HAVING = "HAVING"
    QUALIFY = "QUALIFY"
    ORDER = "ORDER BY"


class LookupOrder(StrEnum):
    """What is looked at, in this order, before the queries around."""

    COLUMNS = "columns"
    COLUMNS_FIRST = "columns, results"
    RESULTS_FIRST = "results, columns"
    UNCLEAR = "one of the two"
    """Results and columns, and nobody knows which comes first."""


_GROUPS: Final = (exp.Paren, exp.Tuple, exp.GroupingSets, exp.Cube, exp.Rollup)
_BY_DIALECT: Final = {
    Dialect.POSTGRES: {
        QueryClause.GROUP: (LookupOrder.COLUMNS, LookupOrder.COLUMNS_FIRST),
        QueryClause.ORDER: (LookupOrder.COLUMNS, LookupOrder.RESULTS_FIRST),
    },
    Dialect.TSQL: {QueryClause.ORDER: (LookupOrder.COLUMNS, LookupOrder.RESULTS_FIRST)},
    Dialect.MYSQL: {
        QueryClause.GROUP: (LookupOrder.COLUMNS_FIRST, LookupOrder.COLUMNS_FIRST),
        QueryClause.HAVING: (LookupOrder.RESULTS_FIRST, LookupOrder.RESULTS_FIRST),
        QueryClause.ORDER: (LookupOrder.COLUMNS_FIRST, LookupOrder.RESULTS_FIRST),
    },
    Dialect.TERADATA: {
        **dict.fromkeys(QueryClause, (LookupOrder.COLUMNS_FIRST, LookupOrder.COLUMNS_FIRST)),
        QueryClause.ON: (LookupOrder.COLUMNS, LookupOrder.COLUMNS),
        QueryClause.ORDER: (LookupOrder.COLUMNS_FIRST, LookupOrder.UNCLEAR),
    },
    Dialect.SPARK: {
        **dict.fromkeys(
            (QueryClause.LIST, QueryClause.GROUP, QueryClause.HAVING, QueryClause.QUALIFY),
            (LookupOrder.COLUMNS_FIRST, LookupOrder.COLUMNS_FIRST),
        ),
        QueryClause.ORDER: (LookupOrder.RESULTS_FIRST, LookupOrder.RESULTS_FIRST),
    },
}
"""By clause, for a name in an expression and one that stands alone."""


def order_in(column: exp.Column, clause: QueryClause, select: exp.Select, dialect: Dialect) -> LookupOrder:
    """Where a name without a table is looked up."""
    if dialect is Dialect.MYSQL:
        if clause is QueryClause.HAVING and isinstance(
            column.find_ancestor(exp.AggFunc, exp.Having), exp.AggFunc
        ):
            return LookupOrder.COLUMNS
        if _orders_a_window(column):
            return LookupOrder.UNCLEAR  # MySQL takes the column, MariaDB the result
    in_expression, alone = _BY_DIALECT[dialect].get(clause, (LookupOrder.COLUMNS, LookupOrder.COLUMNS))
    return alone if stands_alone(column, select) else in_expression


def stands_alone(column: exp.Column, select: exp.Expr) -> bool:
    """Whether GROUP BY, ORDER BY or DISTINCT ON of this query names just that."""
    above = column.parent
    while isinstance(above, _GROUPS):
        above = above.parent
    if isinstance(above, exp.Ordered) and above.parent is not None:
        above = above.parent
    return isinstance(above, exp.Group | exp.Order | exp.Distinct) and above.parent is select


def _orders_a_window(column: exp.Column) -> bool:
    above: exp.Expr | None = column
    while isinstance(above, exp.Column | exp.Paren | exp.Ordered | exp.Order):
        if above.arg_key == "partition_by":
            return True
        above = above.parent
    return isinstance(above, exp.Window) and column.find_ancestor(exp.Order, exp.Window) is not above
