"""Types of expressions, by sqlglot's annotator: what it lacks of numbers of several types. Pure."""

from typing import TypeVar

from sqlglot import exp
from sqlglot.optimizer.annotate_types import TypeAnnotator

from lakewarden.jobs.sql.compile.families import (
    MOST_DIGITS,
    NUMBERS,
    Family,
    family_of_type,
    scale_of,
    scale_of_type,
)

__all__ = ["NumberAnnotator"]


_B = TypeVar("_B", bound=exp.Binary)


class NumberAnnotator(TypeAnnotator):
    """A floating-point number beside a decimal makes one; decimals have as many digits as what they are made of."""

    def _annotate_binary(self, expression: _B) -> _B:
        found = super()._annotate_binary(expression)
        if isinstance(found, exp.Mul) and family_of_type(found.type) is Family.DECIMAL:
            self._set_type(found, _decimal(scale_of(found.this) + scale_of(found.expression)))
        return found

    def _maybe_coerce(
        self, type1: exp.DataType | exp.DType, type2: exp.DataType | exp.DType
    ) -> exp.DataType | exp.DType:
        kinds = [one if isinstance(one, exp.DataType) else exp.DataType(this=one) for one in (type1, type2)]
        families = {family_of_type(kind) for kind in kinds}
        if Family.NULL in families or not families <= NUMBERS:
            return super()._maybe_coerce(type1, type2)
        if Family.FLOAT in families:
            return exp.DType.DOUBLE
        if Family.DECIMAL in families:
            return _decimal(max(map(scale_of_type, kinds)))
        return super()._maybe_coerce(type1, type2)


def _decimal(scale: int) -> exp.DataType:
    return exp.DataType.build(f"DECIMAL({MOST_DIGITS}, {min(scale, MOST_DIGITS)})", dialect="spark")
