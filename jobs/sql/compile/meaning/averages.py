"""AVG: exact where a database is, with the digits that matter to what is done with it. Pure.

PostgreSQL's average of exact numbers is a numeric with at least 16 digits, Spark's a double. Here it is a decimal with
18 digits behind the point. Both are compared with, and stored as, numbers of few digits alike, as long as a sum stays
below 2 * 10^15: a quotient of whole numbers is either such a number or further from it than the last digits. For
anything else that is done with it, its own digits would matter, and it is refused.
"""

from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.annotation import MEAN_DIGITS, is_mean
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.type_families import (
    Family,
    family_of,
    family_of_type,
    scale_of_type,
    whole_digits_of_type,
)
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["FEW", "has_own_digits", "mean_in_spark", "refuse_own_digits"]

FEW: Final = 6
"""So many digits behind the point what is compared with an average, or what it is stored in, has at most."""
_MOST: Final = 12
"""So many digits a decimal has at most that is averaged."""
_HINT: Final = "Round it first: round(avg(...), 2)."


def mean_in_spark(node: exp.Expr, dialect: Dialect) -> exp.Expr | None:
    """AVG in Spark's words; None where it would have other digits. A SQL Server's average of whole numbers is a whole
    number, Teradata's a floating-point one."""
    value, kind = node.this, family_of(node.this)
    if isinstance(value, exp.Distinct):
        return None
    if kind is Family.FLOAT and not (dialect is Dialect.POSTGRES and value.type.is_type("float")):
        return node
    total: exp.Expr = exp.Sum(this=value.copy())
    count = exp.Nullif(this=exp.Count(this=value.copy()), expression=exp.Literal.number(0))
    match dialect, kind:
        case (Dialect.POSTGRES, Family.INTEGER | Family.DECIMAL) if _is_short(value.type):
            scale = scale_of_type(value.type)
            total = exp.cast(total, f"DECIMAL({20 + scale}, {scale})")
            found: exp.Expr = exp.cast(
                exp.Div(this=total, expression=count), f"DECIMAL({14 + MEAN_DIGITS}, {MEAN_DIGITS})"
            )
        case (Dialect.TSQL, Family.INTEGER):
            found = exp.IntDiv(this=total, expression=count)
        case (Dialect.TERADATA, Family.INTEGER):
            found = exp.Div(this=exp.cast(total, "DOUBLE"), expression=count)
        case _:
            return None
    found.type = node.type
    return found


def has_own_digits(node: exp.Expr | None) -> bool:
    """Whether it is an average with digits that another database may have others of."""
    while isinstance(node, exp.Paren | exp.Subquery):
        inner = node.this
        node = inner.selects[0].unalias() if isinstance(inner, exp.Query) and inner.selects else inner
        if isinstance(node, exp.Query):
            return False
    return node is not None and is_mean(node.type)


def refuse_own_digits(parts: Iterable[exp.Expr]) -> None:
    """Raise `UsageError` for an average where its last digits matter."""
    for part in parts:
        if has_own_digits(part):
            raise wrong_in(part, "Here the last digits of an average would matter.", hint=_HINT)


def _is_short(kind: exp.DataType | None) -> bool:
    if not isinstance(kind, exp.DataType):
        return False
    if family_of_type(kind) is Family.INTEGER:
        return not kind.is_type("bigint")
    return whole_digits_of_type(kind) + scale_of_type(kind) <= _MOST
