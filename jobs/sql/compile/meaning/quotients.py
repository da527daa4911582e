"""Quotients of exact numbers, which each database gives other digits: PostgreSQL 16 that count, MySQL four more than
the dividend has, SQL Server and Spark as many as the types say, Teradata those of the longer side. Pure.

Rounded to few digits, or compared with a number of few, all of these are the same: the quotient of a number with s
digits behind its point by one of D digits in all is half way between two numbers of n digits, or further from there
than half a unit of digit D + max(n, s). So the digits of one more than that decide nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.annotation import is_as_shown
from lakewarden.jobs.sql.compile.meaning.averages import EXACT_TO, FEW, to_even
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.type_families import (
    MOST_DIGITS,
    decimal_of,
    scale_of_type,
    typed,
    whole_digits_of_type,
)
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["quotient"]

_LEAST: Final = 6
"""So many digits behind its point a quotient has at least, in Spark and SQL Server."""
_SIGNIFICANT: Final = 16
_GROUP: Final = 4
"""PostgreSQL counts digits by four."""
_INCREMENT: Final = 4
"""MySQL's div_precision_increment, if nobody sets it."""


@dataclass(frozen=True, kw_only=True)
class _Digits:
    """How many digits a number has at most before and behind its point."""

    whole: int
    scale: int

    @property
    def all(self) -> int:
        """In all."""
        return max(self.whole + self.scale, 1)


def quotient(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """A quotient of exact numbers in Spark's words; its type is the annotator's. Raises `UsageError` where it may be
    another one, however few digits are looked at."""
    one, other = _digits(node.this), _digits(node.expression)
    short = max(one.scale, other.scale) if dialect is Dialect.TERADATA else None
    wanted = range(FEW + 1) if short is None else (short,)
    scale = next((some for some in (max(one.scale, *wanted), one.scale) if _spark(one, other, some)), None)
    kept = [] if scale is None else [n for n in wanted if _decides_nothing(one, other, scale, n, dialect)]
    if scale is None or not kept or (short is not None and not _has_known_digits(node)):
        raise wrong_in(
            node,
            f"{dialect} gives such a quotient another number of digits than Spark.",
            hint="Divide numbers of fewer digits, CAST(... AS DECIMAL(10, 2)), or cast one side to DOUBLE PRECISION.",
        )
    found = exp.Div(
        this=_cast(node.this, one.whole + scale, scale), expression=_divisor(node.expression, other)
    )
    found.type = node.type
    if short is not None:
        return to_even(found, short)
    found.meta[EXACT_TO] = max(kept)
    return found


def _has_known_digits(node: exp.Expr) -> bool:
    """Whether the digits behind the points of both sides are those that they have in Teradata."""
    kinds = [one.type for one in (node.this, node.expression)]
    return node.find(exp.Floor, exp.Ceil) is None and all(kind is None or is_as_shown(kind) for kind in kinds)


def _decides_nothing(one: _Digits, other: _Digits, scale: int, wanted: int, dialect: Dialect) -> bool:
    """Whether digits beyond those that Spark (which divides a number of `scale`) and the dialect keep do not matter."""
    behind = max(wanted, one.scale - other.scale) + 1
    kept = [(_spark(one, other, scale), other.all), *_kept_by(dialect, one, other)]
    return all(digits >= divisor + behind for digits, divisor in kept)


def _kept_by(dialect: Dialect, one: _Digits, other: _Digits) -> Iterator[tuple[int, int]]:
    """How many digits behind its point the dialect gives a quotient, at least, and how many the divisor has then."""
    match dialect:
        case Dialect.MYSQL:
            yield one.scale + _INCREMENT, other.all
        case Dialect.TSQL:
            yield _spark(one, other, one.scale), other.all
        case (
            Dialect.POSTGRES
        ):  # the larger the quotient, the fewer digits it has, and the smaller is the divisor
            for groups in range(MOST_DIGITS):
                divisor = min(other.all, one.whole - _GROUP * groups + other.scale)
                if divisor < 1:
                    return
                yield max(_SIGNIFICANT - _GROUP * groups, one.scale, other.scale), divisor
        case _:
            return


def _spark(one: _Digits, other: _Digits, scale: int) -> int:
    """How many digits behind its point Spark's quotient has, 0 where there is no room for all of them."""
    digits = max(_LEAST, scale + other.all + 1)
    return digits if one.whole + other.scale + digits <= MOST_DIGITS else 0


def _digits(node: exp.Expr) -> _Digits:
    bare = node
    while isinstance(bare, exp.Paren | exp.Neg):
        bare = bare.this
    if isinstance(bare, exp.Literal):
        whole, _, behind = bare.name.partition(".")
        return _Digits(whole=len(whole.lstrip("0")), scale=len(behind))
    kind = typed(node)
    return _Digits(whole=whole_digits_of_type(kind), scale=scale_of_type(kind))


def _divisor(node: exp.Expr, digits: _Digits) -> exp.Expr:
    written = node.this if isinstance(node, exp.Neg) else node
    return node.copy() if isinstance(written, exp.Literal) else _cast(node, digits.all, digits.scale)


def _cast(node: exp.Expr, digits: int, scale: int) -> exp.Expr:
    kind = decimal_of(digits, scale)
    found = exp.Cast(
        this=node.copy(), to=kind
    )  # sqlglot's cast() leaves out one to a DECIMAL of other digits
    found.type = kind.copy()
    return found
