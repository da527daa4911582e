"""SQL Server's ISNULL, which has the type of its first value whatever the second is. Pure."""

from collections.abc import Iterator

from sqlglot import exp

from lakewarden.jobs.sql.compile.meaning.texts import is_padded
from lakewarden.jobs.sql.compile.type_families import (
    Family,
    family_of,
    scale_of,
    scale_of_type,
    typed,
    whole_digits_of_type,
)

__all__ = ["fits_first"]


def fits_first(first: exp.Expr, second: exp.Expr) -> bool:
    """Whether the second value stays what it is in the type of the first."""
    kinds = family_of(first), family_of(second)
    if Family.NULL in kinds:
        return kinds[1] is Family.NULL
    if kinds == (Family.DECIMAL, Family.INTEGER):
        return _has_room(first, second)
    if kinds[0] is not kinds[1]:
        return kinds == (Family.FLOAT, Family.INTEGER)
    match kinds[0]:
        case Family.INTEGER | Family.BOOLEAN:
            return True  # what does not fit is an error there
        case Family.DECIMAL:
            return _is_no_longer(second, first)
        case Family.TEXT:
            return _is_no_longer_text(second, first)
        case _:
            return isinstance(first.type, exp.DataType) and first.type == second.type


def _has_room(first: exp.Expr, second: exp.Expr) -> bool:
    """Whether a decimal's type has the digits of a whole number."""
    kinds = first.type, second.type
    if not all(isinstance(kind, exp.DataType) for kind in kinds):
        return False
    digits = len(second.name) if isinstance(second, exp.Literal) else whole_digits_of_type(typed(second))
    return digits <= whole_digits_of_type(typed(first))


def _is_no_longer(second: exp.Expr, first: exp.Expr) -> bool:
    kind = first.type
    if not isinstance(kind, exp.DataType) or not kind.expressions:
        return False
    return scale_of(second) <= scale_of_type(kind) and whole_digits_of_type(kind) > 0


def _is_no_longer_text(second: exp.Expr, first: exp.Expr) -> bool:
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
    return next(_said(node), None)


def _said(node: exp.Expr) -> Iterator[int]:
    if isinstance(node.type, exp.DataType):
        for one in node.type.expressions:
            if one.name.isdigit():
                yield int(one.name)
