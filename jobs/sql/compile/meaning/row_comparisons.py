"""Rows compared with rows, `(a, b) = (1, 2)`, by conditions about their columns. Pure.

Spark compares them as structs, and takes two NULLs inside for equal. In SQL a row is equal to another if all of its
columns are, and neither equal nor unequal where that depends on a NULL.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["as_struct", "with_columns"]

_HINT: Final = "Compare the columns one by one: a = 1 AND b = 2."
_WITH_ROW: Final = (Dialect.POSTGRES, Dialect.MYSQL)
"""Who writes ROW(a, b), and has an order of rows."""
_STRICT: Final[Mapping[type[exp.Expr], type[exp.Binary]]] = {
    exp.LT: exp.LT,
    exp.LTE: exp.LT,
    exp.GT: exp.GT,
    exp.GTE: exp.GT,
}


def with_columns(query: exp.Select, dialect: Dialect) -> exp.Select:
    """The query without rows in its conditions. Raises `UsageError`, with the place, for a row anywhere else."""
    for node in list(query.walk(bfs=False))[::-1]:  # what is inside comes first
        if isinstance(node, exp.Anonymous) and dialect in _WITH_ROW and node.name.upper() == "ROW":
            row = node.replace(exp.Tuple(expressions=[one.copy() for one in node.expressions]))
            row.meta.update(node.meta)
    for listed in query.find_all(exp.In):
        _list_values(listed)
    for node in list(query.walk(bfs=False))[::-1]:
        found = _by_columns(node, dialect)
        if found is not None:
            among = isinstance(found, exp.And) and isinstance(node.parent, exp.Where | exp.Join | exp.And)
            node.replace(found if among else exp.paren(found, copy=False))
    for row in query.find_all(exp.Tuple):
        if not _is_known(row):
            raise wrong_in(row, "Spark compares whole rows by other rules.", hint=_HINT)
    return query


def as_struct(query: exp.Expr) -> exp.Subquery:
    """A query of several columns as one of a single value, NULL where it finds nothing."""
    inner = query.unnest()
    assert isinstance(query, exp.Subquery) and isinstance(inner, exp.Query)
    names = [f"c{number}" for number in range(len(inner.selects))]
    alias = exp.TableAlias(
        this=exp.to_identifier("row", quoted=True),
        columns=[exp.to_identifier(name, quoted=True) for name in names],
    )
    fields: list[exp.Expr] = []
    for name in names:
        fields += [exp.Literal.string(name), exp.column(name, table="row", quoted=True)]
    struct = exp.Anonymous(this="NAMED_STRUCT", expressions=fields)
    found = exp.Subquery(this=query.unnest().copy(), alias=alias)
    return exp.Subquery(this=exp.Select(expressions=[struct], from_=exp.From(this=found)))


def _list_values(node: exp.In) -> None:
    """`a IN (VALUES (1), (2))` as the list that it is."""
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
        rows = node.expressions[0].expressions
        node.set(
            "expressions",
            [
                row.expressions[0] if isinstance(row, exp.Tuple) and len(row.expressions) == 1 else row
                for row in rows
            ],
        )


def _by_columns(node: exp.Expr, dialect: Dialect) -> exp.Expr | None:
    """A comparison of rows in other words; None for all that is none, or that Spark itself reads as SQL does."""
    match node:
        case exp.In() if isinstance(node.this, exp.Tuple) and node.args.get("query") is None:
            return _any([_columns(exp.EQ, node.this, row, node) for row in node.expressions])
        case exp.Between() if isinstance(node.this, exp.Tuple):
            low = _ordered(exp.GTE, node.this, node.args["low"], node, dialect)
            high = _ordered(exp.LTE, node.this, node.args["high"], node, dialect)
            return exp.And(this=exp.paren(low), expression=exp.paren(high))
        case exp.Binary() if type(node) in (*_STRICT, *_JOINED):
            right = node.expression
            if _row(node.this) is None and _row(right) is None:
                return None
            if isinstance(right, exp.Any | exp.All):
                _refuse_order_of_queries(node)
                return None
            if type(node) in _STRICT:
                return _ordered(type(node), node.this, right, node, dialect)
            return _columns(type(node), node.this, right, node)
        case _:
            return None


def _refuse_order_of_queries(node: exp.Binary) -> None:
    """= ANY and <> ALL of a query are IN and NOT IN, which Spark reads as SQL does."""
    if (type(node), type(node.expression)) not in ((exp.EQ, exp.Any), (exp.NEQ, exp.All)):
        raise wrong_in(
            node, "A row is compared with = ANY and <> ALL here.", hint="Write EXISTS (SELECT ...)."
        )


def _row(node: exp.Expr | None) -> exp.Tuple | None:
    while isinstance(node, exp.Paren):
        node = node.this
    return node if isinstance(node, exp.Tuple) else None


def _pairs(left: exp.Expr, right: exp.Expr, node: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    rows = [_row(left), _row(right)]
    columns = [[] if row is None else row.expressions for row in rows]
    if not columns[0] or not columns[1]:
        odd = left if not columns[0] else right
        asked = isinstance(odd, exp.Query | exp.Subquery)
        raise wrong_in(
            odd,
            "A row is compared with another row here."
            if not asked
            else "A row is not compared with a query's by this.",
            hint=_HINT if not asked else "Write IN (SELECT ...), or compare the columns one by one.",
        )
    if len(columns[0]) != len(columns[1]):
        raise wrong_in(node, "The rows have different numbers of columns.", hint="Give both the same number.")
    pairs = list(zip(*columns, strict=True))
    nested = next((one for pair in pairs for one in pair if _row(one) is not None), None)
    if nested is not None:
        raise wrong_in(nested, "A row in a row is compared by other rules.", hint=_HINT)
    return [(one.copy(), other.copy()) for one, other in pairs]


def _columns(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr, node: exp.Expr) -> exp.Expr:
    """Each column of a row compared with that of another: all of them for =, one of them for <>."""
    return _JOINED[kind]([kind(this=a, expression=b) for a, b in _pairs(left, right, node)])


def _ordered(
    kind: type[exp.Binary], left: exp.Expr, right: exp.Expr, node: exp.Expr, dialect: Dialect
) -> exp.Expr:
    """By the first columns that differ: `a < x OR (a = x AND b < y)`, which is NULL where SQL says so, too."""
    pairs = _pairs(left, right, node)
    if dialect not in _WITH_ROW:
        raise wrong_in(node, f"{dialect} has no order of rows.", hint=_HINT)
    *before, (a, b) = pairs
    found: exp.Expr = kind(this=a, expression=b)
    strict = _STRICT[kind]
    for one, other in reversed(before):
        same = exp.EQ(this=one, expression=other)
        rest = exp.And(this=same, expression=found if not isinstance(found, exp.Or) else exp.paren(found))
        found = exp.Or(this=strict(this=one.copy(), expression=other.copy()), expression=exp.paren(rest))
    return found


def _all(conditions: Sequence[exp.Expr]) -> exp.Expr:
    found, *more = conditions
    for one in more:
        found = exp.And(this=found, expression=one)
    return found


def _any(conditions: Sequence[exp.Expr]) -> exp.Expr:
    found, *more = [exp.paren(one, copy=False) if isinstance(one, exp.And) else one for one in conditions]
    for one in more:
        found = exp.Or(this=found, expression=one)
    return found


def _is_known(row: exp.Tuple) -> bool:
    """Whether it is a row of VALUES, the left side of IN (SELECT ...), or the list of DISTINCT ON."""
    above = row.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    match above:
        case exp.Values() | exp.Distinct():
            return True
        case exp.In():
            return above.args.get("query") is not None
        case exp.EQ() | exp.NEQ():
            return isinstance(above.expression, exp.Any | exp.All)
        case _:
            return False


_JOINED: Final[Mapping[type[exp.Expr], Callable[[Sequence[exp.Expr]], exp.Expr]]] = {
    exp.EQ: _all,
    exp.NullSafeEQ: _all,
    exp.NEQ: _any,
    exp.NullSafeNEQ: _any,
}
