"""SQL Server's ISNULL, which has the type of its first value whatever the second is. Pure."""

from sqlglot import exp

from lakewarden.jobs.sql.compile.meaning.integers import bits_of, in_bits
from lakewarden.jobs.sql.compile.meaning.texts import is_padded
from lakewarden.jobs.sql.compile.type_families import (
    Family,
    family_of,
    scale_of,
    scale_of_type,
    typed,
    whole_digits_of_type,
)

__all__ = ["as_first"]


def as_first(first: exp.Expr, second: exp.Expr) -> exp.Expr | None:
    """The second value as one of the type of the first, an error where it is too large for that; None where it would be
    rounded or cut."""
    match family_of(first), family_of(second):
        case _, Family.NULL:
            return second
        case Family.INTEGER, Family.INTEGER:
            return second if bits_of(second) <= bits_of(first) else in_bits(second, bits_of(first))
        case Family.DECIMAL, Family.INTEGER | Family.DECIMAL:
            return _in_its_digits(first, second)
        case (Family.FLOAT, Family.INTEGER) | (Family.BOOLEAN, Family.BOOLEAN):
            return second
        case Family.TEXT, Family.TEXT:
            return second if _is_no_longer(second, first) else None
        case _:
            return second if isinstance(first.type, exp.DataType) and first.type == second.type else None


def _in_its_digits(first: exp.Expr, second: exp.Expr) -> exp.Expr | None:
    kind = first.type
    if not isinstance(kind, exp.DataType) or not kind.expressions or scale_of(second) > scale_of_type(kind):
        return None
    whole = second.name.partition(".")[0] if isinstance(second, exp.Literal) else None
    digits = whole_digits_of_type(typed(second)) if whole is None else len(whole)
    return second if digits <= whole_digits_of_type(kind) else exp.cast(second.copy(), kind.copy())


def _is_no_longer(second: exp.Expr, first: exp.Expr) -> bool:
    """A text of a column is as long as its type says; of what is computed the least length is 1."""
    if is_padded(first):
        return False
    if isinstance(second, exp.Literal) and len(second.name) <= 1:
        return True
    room = _length(first) if isinstance(first, exp.Column) else 1
    needs = _length(second)
    return room is None or (needs is not None and needs <= room)


def _length(node: exp.Expr) -> int | None:
    """How long a text may be at most, None where nothing says so."""
    if isinstance(node, exp.Literal):
        return len(node.name)
    said = node.type.expressions if isinstance(node.type, exp.DataType) else []
    return next((int(one.name) for one in said if one.name.isdigit()), None)
