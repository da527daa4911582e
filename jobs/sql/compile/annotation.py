"""Types of expressions, by sqlglot's annotator: what it lacks of numbers of several types. Pure.

Each is typed as the statement's dialect types it; decimals have as many digits as Spark gives them, and know whether
the dialect would show all of these (`is_as_shown`) and whether Spark has room for them (`loses_digits`).
"""

from collections.abc import Collection, Iterable
from typing import Any, Final, TypeVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as SqlDialect
from sqlglot.optimizer.annotate_types import TypeAnnotator
from sqlglot.schema import MappingSchema

from lakewarden.jobs.sql.compile.type_families import (
    MOST_DIGITS,
    NUMBERS,
    Family,
    family_of_type,
    scale_of_type,
    whole_digits_of_type,
)
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = [
    "MEAN_DIGITS",
    "NumberAnnotator",
    "have_room",
    "is_as_shown",
    "is_mean",
    "is_quotient",
    "loses_digits",
]

_B = TypeVar("_B", bound=exp.Binary)
_HIDDEN: Final = "hidden"
_LOST: Final = "lost"
_MEAN: Final = "mean"
_QUOTIENT: Final = "quotient"
MEAN_DIGITS: Final = 18
"""So many digits behind its point an average of exact numbers has in Spark."""
_WITH_EXACT_SUMS: Final = frozenset({Dialect.POSTGRES, Dialect.MYSQL})
"""What sums whole numbers of 64 bits up to a decimal, which is divided as one."""
_UP_TO_32_BITS: Final = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT)
_LARGEST_INT: Final = 2**31 - 1


def is_as_shown(kind: exp.DataType) -> bool:
    """Whether a decimal of this type has the same digits in every dialect when it becomes text."""
    return not kind.meta.get(_HIDDEN)


def loses_digits(kind: exp.DataType | None) -> bool:
    """Whether Spark has no room for all the digits that a decimal of this type may have, and rounds it."""
    return kind is not None and bool(kind.meta.get(_LOST))


def is_mean(kind: exp.DataType | None) -> bool:
    """Whether a number of this type is an average, with more digits than are the same in every database."""
    return kind is not None and bool(kind.meta.get(_MEAN))


def is_quotient(kind: exp.DataType | None) -> bool:
    """The same for what a division gives."""
    return kind is not None and bool(kind.meta.get(_QUOTIENT))


def have_room(parts: Iterable[exp.Expr]) -> bool:
    """Whether Spark has a type for all the digits of exact numbers that it compares, or that stand for one another."""
    kinds = [_kind(part) for part in parts]
    families = {family_of_type(kind) for kind in kinds}
    if Family.DECIMAL not in families or not families <= {Family.DECIMAL, Family.INTEGER, Family.NULL}:
        return True
    scale = max(map(scale_of_type, kinds))
    return scale == 0 or max(map(whole_digits_of_type, kinds)) + scale <= MOST_DIGITS


class NumberAnnotator(TypeAnnotator):
    """A floating-point number beside a decimal makes one; decimals have as many digits as what they are made of."""

    def __init__(self, schema: MappingSchema, dialects: Collection[Dialect]) -> None:
        own = SqlDialect.get_or_raise(schema.dialect).EXPRESSION_METADATA
        super().__init__(schema, expression_metadata={**own, **_METADATA})
        self.exact_sums = not _WITH_EXACT_SUMS.isdisjoint(dialects)
        self.exact_parts = Dialect.POSTGRES in dialects
        self.whole_means = Dialect.TSQL in dialects
        self.exact_quotients = Dialect.MYSQL in dialects
        self.short_quotients = Dialect.TERADATA in dialects
        self.narrow_sums = not {Dialect.TSQL, Dialect.TERADATA}.isdisjoint(dialects)

    def _annotate_binary(self, expression: _B) -> _B:
        found = super()._annotate_binary(expression)
        left, right = _kind(found.this), _kind(found.expression)
        if family_of_type(found.type) is Family.DECIMAL and isinstance(found, exp.Add | exp.Sub | exp.Mul):
            if isinstance(found, exp.Mul):
                whole = whole_digits_of_type(left) + whole_digits_of_type(right) + 1
                scale = scale_of_type(left) + scale_of_type(right)
            else:
                whole = max(map(whole_digits_of_type, (left, right))) + 1
                scale = max(map(scale_of_type, (left, right)))
            self._set_type(found, _decimal(whole, scale, (left, right), as_shown=True))
        return found

    def _maybe_coerce(
        self, type1: exp.DataType | exp.DType, type2: exp.DataType | exp.DType
    ) -> exp.DataType | exp.DType:
        kinds = [one if isinstance(one, exp.DataType) else exp.DataType(this=one) for one in (type1, type2)]
        families = {family_of_type(kind) for kind in kinds}
        if Family.NULL in families or not families <= NUMBERS:
            return super()._maybe_coerce(type1, type2)
        if Family.FLOAT in families:
            single = all(kind.this is exp.DType.FLOAT for kind in kinds)
            return exp.DType.FLOAT if single else exp.DType.DOUBLE
        if Family.DECIMAL in families:
            scales = set(map(scale_of_type, kinds))
            return _decimal(
                max(map(whole_digits_of_type, kinds)), max(scales), kinds, as_shown=len(scales) == 1
            )
        return super()._maybe_coerce(type1, type2)


def _decimal(whole: int, scale: int, parts: Collection[exp.DataType], *, as_shown: bool) -> exp.DataType:
    """A decimal with so many digits before and behind its point, made of others."""
    digits = min(whole + scale, MOST_DIGITS)
    kind = exp.DataType.build(f"DECIMAL({digits}, {min(scale, MOST_DIGITS)})", dialect="spark")
    kind.meta[_HIDDEN] = not as_shown or any(part.meta.get(_HIDDEN) for part in parts)
    for mark in (_MEAN, _QUOTIENT):
        kind.meta[mark] = scale > 6 and any(part.meta.get(mark) for part in parts)
    kind.meta[_LOST] = scale > 0 and whole + scale > MOST_DIGITS
    return kind


def _kind(node: exp.Expr) -> exp.DataType:
    """A type as far as digits go: a whole number that is written has no more than it shows."""
    if isinstance(node, exp.Literal) and node.is_int:
        return exp.DataType.build(f"DECIMAL({min(len(node.name), MOST_DIGITS)}, 0)", dialect="spark")
    return node.type if isinstance(node.type, exp.DataType) else exp.DataType(this=exp.DType.UNKNOWN)


def _sum(self: Any, node: exp.Sum) -> None:
    self._annotate_by_args(node, "this", promote=True)
    kind = _kind(node.this)
    if family_of_type(kind) is Family.DECIMAL:
        scale = scale_of_type(kind)
        self._set_type(
            node,
            _decimal(
                min(whole_digits_of_type(kind) + 10, MOST_DIGITS - scale), scale, (kind,), as_shown=True
            ),
        )
    elif self.narrow_sums and kind.this in _UP_TO_32_BITS:
        self._set_type(node, exp.DType.INT)
    elif self.exact_sums and kind.this in (exp.DType.BIGINT, exp.DType.UBIGINT):
        self._set_type(node, _decimal(20, 0, (), as_shown=True))


def _mean(self: Any, node: exp.Avg) -> None:
    kind = _kind(node.this)
    family = family_of_type(kind)
    if family in (Family.INTEGER, Family.DECIMAL) and self.exact_parts:
        exact = exp.DataType.build(f"DECIMAL({14 + MEAN_DIGITS}, {MEAN_DIGITS})", dialect="spark")
        exact.meta.update({_MEAN: True, _HIDDEN: True})
        self._set_type(node, exact)
    elif family is Family.INTEGER and self.whole_means:
        self._set_type(node, exp.DType.INT if kind.this in _UP_TO_32_BITS else kind)
    else:
        self._set_type(node, exp.DType.DOUBLE)


def _whole_part(self: Any, node: exp.Floor | exp.Ceil) -> None:
    kind = _kind(node.this)
    if family_of_type(kind) is Family.DECIMAL:
        self._set_type(node, _decimal(whole_digits_of_type(kind) + 1, 0, (), as_shown=True))
    else:
        self._set_type(node, kind)


def _round(self: Any, node: exp.Round) -> None:
    kind, digits = _kind(node.this), node.args.get("decimals")
    if family_of_type(kind) is not Family.DECIMAL:
        self._set_type(node, exp.DType.DOUBLE if family_of_type(kind) is Family.FLOAT else kind)
        return
    wanted = 0 if digits is None else int(digits.name) if digits.is_int else MOST_DIGITS
    scale = min(wanted, scale_of_type(kind))
    shown = wanted == scale_of_type(kind) or digits is None
    self._set_type(node, _decimal(whole_digits_of_type(kind) + 1, scale, (kind,), as_shown=shown))


def _part_of_time(self: Any, node: exp.Extract) -> None:
    self._annotate_extract(node)
    if self.exact_parts and family_of_type(node.type) is Family.INTEGER:
        self._set_type(node, _decimal(10, 0, (), as_shown=True))


def _quotient(self: Any, node: exp.Div) -> None:
    kinds = [_kind(node.this), _kind(node.expression)]
    families = {family_of_type(one.type) for one in (node.this, node.expression)}
    if families == {Family.INTEGER} and not self.exact_quotients:
        self._set_type(node, self._maybe_coerce(node.this.type, node.expression.type))
    elif Family.FLOAT in families:
        self._set_type(node, exp.DType.DOUBLE)
    elif families <= {Family.INTEGER, Family.DECIMAL}:
        self._set_type(node, _exact_quotient(kinds, short=self.short_quotients))
    else:
        self._annotate_div(node)


def _exact_quotient(kinds: list[exp.DataType], *, short: bool) -> exp.DataType:
    """Teradata's has the digits of the longer side, others have digits of their own."""
    whole = whole_digits_of_type(kinds[0]) + scale_of_type(kinds[1])
    if short:
        return _decimal(whole, max(map(scale_of_type, kinds)), kinds, as_shown=True)
    scale = max(min(MEAN_DIGITS, MOST_DIGITS - whole), 0)
    kind = exp.DataType.build(f"DECIMAL({min(whole + scale, MOST_DIGITS)}, {scale})", dialect="spark")
    kind.meta.update({_MEAN: True, _QUOTIENT: True, _HIDDEN: True})
    return kind


def _literal(self: Any, node: exp.Literal) -> None:
    self._annotate_literal(node)
    if not node.is_string and node.is_int and int(node.name) > _LARGEST_INT:
        self._set_type(node, exp.DType.BIGINT)


_METADATA: Final[dict[type[exp.Expr], Any]] = {
    exp.Sum: {"annotator": _sum},
    exp.Avg: {"annotator": _mean},
    exp.Count: {"returns": exp.DType.BIGINT},
    exp.Floor: {"annotator": _whole_part},
    exp.Ceil: {"annotator": _whole_part},
    exp.Round: {"annotator": _round},
    exp.Extract: {"annotator": _part_of_time},
    exp.Div: {"annotator": _quotient},
    exp.Literal: {"annotator": _literal},
}
