"""AVG: exact where a database is, with the digits that matter to what is done with it. Pure.

PostgreSQL's average of exact numbers is a numeric with at least 16 digits, Spark's a double. Here it is a decimal with
18 digits behind the point. Both are compared with, and stored as, numbers of few digits alike, as long as a sum stays
below 2 * 10^15: a quotient of whole numbers is either such a number or further from it than the last digits. For
anything else that is done with it, its own digits would matter, and it is refused.
"""

from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.annotation import MEAN_DIGITS, is_mean, is_quotient
from lakewarden.jobs.sql.compile.meaning.integers import bits_of, in_bits
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.type_families import (
    MOST_DIGITS,
    Family,
    decimal_of,
    family_of,
    family_of_type,
    scale_of_type,
    typed,
    whole_digits_of_type,
)
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = [
    "EXACT_TO",
    "FEW",
    "has_own_digits",
    "mean_in_spark",
    "refuse_own_digits",
    "refuse_quotient",
    "require_exact",
    "to_even",
]

EXACT_TO: Final = "exact to"
"""Marks a quotient of decimals with how many digits it may be rounded to, or compared with (quotients.py)."""

FEW: Final = 6
"""So many digits behind the point what is compared with an average, or what it is stored in, has at most."""
_LEAST_BITS: Final = 32
"""So many bits SQL Server's average of whole numbers has at least, and the sum that it divides."""
_MOST: Final = 12
"""So many digits a decimal has at most that is averaged."""


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
            total = exp.cast(total, decimal_of(20 + scale, scale))
            found: exp.Expr = exp.cast(
                exp.Div(this=total, expression=count), decimal_of(14 + MEAN_DIGITS, MEAN_DIGITS)
            )
        case (Dialect.TSQL, Family.INTEGER):
            bits = max(bits_of(value), _LEAST_BITS)
            found = in_bits(exp.IntDiv(this=in_bits(total, bits), expression=count), bits)
        case (Dialect.TERADATA, Family.INTEGER):
            found = exp.Div(this=exp.cast(total, "DOUBLE"), expression=count)
        case _:
            return None
    found.type = node.type
    return found


def has_own_digits(node: exp.Expr | None) -> bool:
    """Whether it is an average or a quotient with digits that another database may have others of."""
    found = _value(node)
    return found is not None and is_mean(found.type)


def refuse_own_digits(parts: Iterable[exp.Expr]) -> None:
    """Raise `UsageError` for an average or a quotient where its last digits matter."""
    for part in parts:
        if has_own_digits(part):
            raise _last_digits(part)


def refuse_quotient(node: exp.Expr) -> None:
    """The same for a quotient alone."""
    found = _value(node)
    if found is not None and is_quotient(found.type):
        raise _last_digits(node)


def require_exact(node: exp.Expr, scale: int) -> None:
    """Raise `UsageError` for a quotient that may be another number where it is rounded to so many digits, or compared
    with a number of so many."""
    found = _value(node)
    if found is not None and is_quotient(found.type) and scale > found.meta.get(EXACT_TO, -1):
        raise _last_digits(node)


def to_even(value: exp.Expr, scale: int) -> exp.Expr:
    """A decimal rounded as Teradata does it: halves to the even digit."""
    found = exp.Anonymous(this="BROUND", expressions=[value.copy(), exp.Literal.number(scale)])
    digits = min(whole_digits_of_type(typed(value)) + 1 + scale, MOST_DIGITS)
    found.type = exp.DataType.build(f"DECIMAL({digits}, {scale})", dialect="spark")
    return found


def _value(node: exp.Expr | None) -> exp.Expr | None:
    """What stands in parentheses, or is selected by a query for one value."""
    while isinstance(node, exp.Paren | exp.Subquery | exp.Neg):
        inner = node.this
        node = inner.selects[0].unalias() if isinstance(inner, exp.Query) and inner.selects else inner
    return None if isinstance(node, exp.Query) else node


def _last_digits(node: exp.Expr) -> Exception:
    found = _value(node)
    what = "a quotient" if found is not None and is_quotient(found.type) else "an average"
    said = "round(a / b, 2)" if what == "a quotient" else "round(avg(...), 2)"
    return wrong_in(node, f"Here the last digits of {what} would matter.", hint=f"Round it first: {said}.")


def _is_short(kind: exp.DataType | None) -> bool:
    if not isinstance(kind, exp.DataType):
        return False
    if family_of_type(kind) is Family.INTEGER:
        return not kind.is_type("bigint")
    return whole_digits_of_type(kind) + scale_of_type(kind) <= _MOST
