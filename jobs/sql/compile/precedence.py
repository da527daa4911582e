"""What binds tighter, = or IN? Dialects differ: what they read differently is refused, and what is written for Spark
has parentheses. Pure."""

from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["in_parentheses", "refuse_unclear"]

_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_RANGES: Final = (exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Is)
_OPERANDS: Final = ("this", "expression", "low", "high")


def refuse_unclear(nodes: Iterable[exp.Expr], dialect: Dialect) -> None:
    """Raise `UsageError` for `a = b < c` and the like, and for `a = b IN (...)` where that is `(a = b) IN (...)`.

    sqlglot has one order for all dialects: < before =, and IN, LIKE and BETWEEN before both.
    """
    for node in nodes:
        operand = node.args.get("expression" if isinstance(node, _COMPARISONS) else "this")
        while isinstance(operand, exp.Not):
            operand = operand.this
        unclear = (
            isinstance(operand, _COMPARISONS) or (dialect is Dialect.SPARK and isinstance(operand, _RANGES))
            if isinstance(node, _COMPARISONS)
            else dialect is Dialect.MYSQL
            and isinstance(node, exp.Like | exp.In)
            and isinstance(operand, exp.Between)
        )
        if unclear:
            raise wrong_in(
                operand,
                f"{dialect} may read this comparison in another order than it looks.",
                hint="Write parentheses: a = (b < c), or (a = b) < c.",
            )


def in_parentheses(node: exp.Expr) -> exp.Expr:
    """The same with parentheses around each condition that something else is made of. Changes it."""
    for one in list(node.walk()):
        if isinstance(one, exp.Binary | exp.Between | exp.In | exp.Not) and not isinstance(one, exp.Func):
            inside = [one.args.get(key) for key in _OPERANDS]
            for operand in (each for each in inside if isinstance(each, exp.Expr)):
                if _is_loose(operand, one):
                    paren = exp.Paren()
                    operand.replace(paren)
                    paren.set("this", operand)
    return node


def _is_loose(operand: exp.Expr, above: exp.Expr) -> bool:
    if isinstance(operand, exp.Or | exp.Xor):
        return type(operand) is not type(above)
    if isinstance(above, exp.Connector):
        return False
    if isinstance(above, exp.Not):
        return isinstance(operand, exp.Connector)
    condition = isinstance(operand, exp.Predicate | exp.Connector | exp.Not)
    return condition and not isinstance(operand, exp.SubqueryPredicate)
