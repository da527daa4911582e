"""Spark's own dialect as it is written for Spark: as the tree says it, with nothing moved. Pure.

sqlglot's writer for Spark changes a query before it writes it. Left out are, as they change its meaning:

* `move_ctes_to_top_level`: a WITH of a query inside would hide tables outside of it. Spark 4 reads it where it stands.
* `eliminate_qualify`: it takes results for columns, and forgets columns. `without_choices` stands for it.
* `eliminate_distinct_on`: it loses LIMIT, and names that are there twice. `without_choices` stands for it.
* `any_to_exists`, `unnest_to_explode`: nothing that passes here has such a form.
"""

from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

__all__ = ["in_spark", "without_choices"]

_KEPT: Final = "lakewarden_kept"


class _Generator(SparkGenerator):
    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
        kind: written for kind, written in SparkGenerator.TRANSFORMS.items() if kind is not exp.Select
    }


class _Writer(Spark):
    Generator = _Generator


_WRITER: Final = _Writer()


def in_spark(node: exp.Expr) -> str:
    """A part of a statement as Spark reads it. Its queries have no QUALIFY and no DISTINCT ON."""
    return node.sql(dialect=_WRITER, identify=True, comments=False, copy=False)


def without_choices(node: exp.Expr) -> exp.Expr:
    """The same with queries in the place of QUALIFY and DISTINCT ON, which Spark has not: what is asked of a row is a
    result more of the query, and is asked around it. Changes it; names are resolved."""
    for select in list(node.find_all(exp.Select))[::-1]:
        _say_distinct_on(select)
        if select.args.get("qualify") is None:
            continue
        around = _around(select)
        if select is node:
            return around
        select.replace(around)
    return node


def _say_distinct_on(select: exp.Select) -> None:
    """DISTINCT ON (a) ORDER BY a, b: of each a the first row by b."""
    distinct = select.args.get("distinct")
    on = None if distinct is None else distinct.args.get("on")
    if on is None:
        return
    order = select.args.get("order") or exp.Order(expressions=[one.copy() for one in on.expressions])
    window = exp.Window(
        this=exp.RowNumber(), partition_by=[one.copy() for one in on.expressions], order=order.copy()
    )
    select.set("distinct", None)
    select.set("order", None)
    select.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))


def _around(select: exp.Select) -> exp.Select:
    """The query that asks what QUALIFY asks, around the query without it."""
    inner = select.copy()
    kept = inner.args["qualify"].this
    outer = exp.Select()
    for key in ("distinct", "order", "limit", "offset", "with_"):
        outer.set(key, inner.args.get(key))
        inner.set(key, None)
    inner.set("qualify", None)
    results = [(one.unalias(), one.alias_or_name) for one in inner.selects]
    known = {name: number for number, (_, name) in enumerate(results)}
    order = outer.args.get("order")
    values = [value for value, _ in results]
    for ordered in () if order is None else order.expressions:
        by = ordered.this
        if isinstance(by, exp.Column) and not by.table:
            ordered.set("this", _result(known[by.name]))
        elif not isinstance(by, exp.Literal):
            ordered.set("this", _result(len(values)))
            values.append(by)
    listed = [exp.alias_(value, f"c{number}", quoted=True) for number, value in enumerate(values)]
    inner.set("expressions", [*listed, exp.alias_(kept, _KEPT, quoted=True)])
    outer.set(
        "expressions",
        [exp.alias_(_result(number), name, quoted=True) for number, (_, name) in enumerate(results)],
    )
    alias = exp.TableAlias(this=exp.to_identifier("_t", quoted=True))
    outer.set("from_", exp.From(this=exp.Subquery(this=inner, alias=alias)))
    outer.set("where", exp.Where(this=exp.column(_KEPT, table="_t", quoted=True)))
    return outer


def _result(number: int) -> exp.Column:
    return exp.column(f"c{number}", table="_t", quoted=True)
