"""VALUES that Spark cannot evaluate by itself, as queries: an inline table takes no NULLIF, LEFT or query. Pure."""

from functools import reduce

from sqlglot import exp

__all__ = ["as_queries"]

_PLAIN = (
    exp.Tuple, exp.Paren, exp.Literal, exp.Null, exp.Boolean, exp.Neg, exp.Cast, exp.DataType,
    exp.DataTypeParam,
)  # fmt: skip


def as_queries(node: exp.Expr) -> exp.Expr:
    """The same with `SELECT ... UNION ALL SELECT ...` for VALUES that are made of more than constants. Changes it."""
    for rows in list(node.find_all(exp.Values)):
        if all(isinstance(part, _PLAIN) for row in rows.expressions for part in row.walk()):
            continue
        alias = rows.args.get("alias")
        selects: list[exp.Query] = [_select(row, alias) for row in rows.expressions]
        query: exp.Expr = reduce(lambda one, other: exp.union(one, other, distinct=False), selects)
        if alias is not None:
            query = exp.Subquery(this=query, alias=alias.copy())
        if rows is node:
            return query
        rows.replace(query)
    return node


def _select(row: exp.Expr, alias: exp.TableAlias | None) -> exp.Select:
    values = row.expressions if isinstance(row, exp.Tuple) else [row.unnest()]
    names = [one.name for one in alias.columns] if alias is not None else []
    if len(names) != len(values):
        names = [f"col{number}" for number in range(1, len(values) + 1)]  # as Spark calls them
    return exp.Select(
        expressions=[
            exp.alias_(value.copy(), name, quoted=True) for value, name in zip(values, names, strict=True)
        ]
    )
