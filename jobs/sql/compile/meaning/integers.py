"""Whole numbers in as many bits as the dialect computes with: what overflows there overflows here, and nothing else.

MySQL computes in 64 bits, Teradata in 32 or more; PostgreSQL and SQL Server in those of the wider operand, and no
fewer than 16. SQL Server and Teradata sum up, and count, in 32 bits what has no more. Spark computes in those of the
wider operand, and divides, sums up and counts in 64. Pure.
"""

from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.type_families import INTEGER_BITS, Family, family_of
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["bits_of", "in_bits", "in_its_bits", "promoted", "totalled", "unfolded"]

_KINDS: Final = {bits: kind for kind, bits in INTEGER_BITS.items()}
_FEWEST: Final = {Dialect.MYSQL: 64, Dialect.TERADATA: 32, Dialect.POSTGRES: 16, Dialect.TSQL: 16}
_NARROW: Final = frozenset({Dialect.TSQL, Dialect.TERADATA})
_MOST: Final = 2**63
_OVERFLOWING: Final = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs)
_COMPUTED: Final = (*_OVERFLOWING, exp.Div, exp.IntDiv, exp.Mod)


def promoted(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """A sum, a difference or a product of whole numbers, or a number with another sign, in the dialect's bits. Its
    operands are in Spark's words."""
    operands = [node.this] if isinstance(node, exp.Unary | exp.Func) else [node.this, node.expression]
    integers = all(family_of(one) is Family.INTEGER for one in operands)
    if not integers or _value(node) is not None or not isinstance(node, _OVERFLOWING):
        return node
    bits, fewest = max(map(bits_of, operands)), _FEWEST[dialect]
    if bits < fewest:
        node.set("this", in_bits(node.this, fewest))
    node.type = exp.DataType(this=_KINDS[max(bits, fewest)])
    return node


def in_its_bits(quotient: exp.IntDiv, written: exp.Expr, dialect: Dialect) -> exp.Expr:
    """A quotient of whole numbers, which Spark computes in 64 bits, as the number that it is in the dialect; in the
    place of what is `written`."""
    bits = max(*map(bits_of, (quotient.this, quotient.expression)), _FEWEST[dialect])
    fits = _value(quotient.expression) not in (None, -1)
    if bits == 64 or (fits and not isinstance(_beyond_parentheses(written), _COMPUTED)):
        return quotient
    return in_bits(quotient, bits)


def totalled(total: exp.Expr, dialect: Dialect) -> exp.Expr:
    """A SUM, or a COUNT that is computed with, or a window of one, as the number that it is in the dialect."""
    inner, above = total.this if isinstance(total, exp.Window) else total, _beyond_parentheses(total)
    if dialect not in _NARROW or (isinstance(total.parent, exp.Window) and total.arg_key == "this"):
        return total
    match inner:
        case exp.Sum() if family_of(inner.this) is Family.INTEGER and bits_of(inner.this) <= 32:
            return in_bits(total, 32)
        case exp.Count() if isinstance(above, _COMPUTED) and not (
            dialect is Dialect.TSQL and inner.args.get("big_int")
        ):
            return in_bits(total, 32)
        case _:
            return total


def unfolded(parts: Iterable[exp.Expr]) -> None:
    """Have Spark compute what is compared with a number that it cannot be: it would take that for false, where a
    database computes it, and may find an overflow."""
    parts = list(parts)
    written = [value for value in map(_value, parts) if value is not None]
    for part in parts:
        if family_of(part) is not Family.INTEGER or _value(part) is not None or isinstance(part, exp.Column):
            continue
        most = 2 ** (bits_of(part) - 1)
        if all(-most <= value < most for value in written):
            continue
        if all(-_MOST <= value < _MOST for value in written):
            found: exp.Expr = exp.BitwiseOr(this=in_bits(part, 64), expression=exp.Literal.number(0))
        else:
            found = exp.Add(this=exp.cast(part.copy(), "DECIMAL(20, 0)"), expression=exp.Literal.number(0))
        found.type = exp.DataType(this=exp.DType.BIGINT)
        part.replace(exp.paren(found, copy=False))


def bits_of(node: exp.Expr) -> int:
    """The bits of a whole number in Spark; as few as there are where nobody says."""
    value = _value(node)
    if value is not None:
        return 32 if -(2**31) <= value < 2**31 else 64
    if isinstance(node, exp.Paren | exp.Subquery) and node.this is not None:
        inner = node.this
        return bits_of(inner.selects[0].unalias() if isinstance(inner, exp.Query) else inner)
    if isinstance(node, exp.IntDiv | exp.Count):
        return 64
    kind = node.args["to"] if isinstance(node, exp.Cast) else node.type
    return INTEGER_BITS.get(kind.this, 8) if isinstance(kind, exp.DataType) else 8


def _value(node: exp.Expr) -> int | None:
    """A number that is written, with its sign."""
    if isinstance(node, exp.Paren):
        return _value(node.this)
    if (
        isinstance(node, exp.Cast)
        and family_of(node) is Family.DECIMAL
        and isinstance(node.this, exp.Literal)
    ):
        return _value(node.this)  # beyond the integers of its dialect
    if isinstance(node, exp.Neg):
        value = _value(node.this)
        return None if value is None else -value
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int else None


def _beyond_parentheses(node: exp.Expr) -> exp.Expr | None:
    """What it is a part of."""
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return above


def in_bits(node: exp.Expr, bits: int) -> exp.Cast:
    """A whole number as one of so many bits: an error where it does not fit."""
    found = exp.Cast(this=node.copy(), to=exp.DataType(this=_KINDS[bits]))
    found.type = found.args["to"].copy()
    return found
