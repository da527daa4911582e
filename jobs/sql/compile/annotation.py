"""Types of expressions, by sqlglot's annotator: what it lacks of numbers of several types. Pure."""

from sqlglot import exp
from sqlglot.optimizer.annotate_types import TypeAnnotator

from lakewarden.jobs.sql.compile.families import NUMBERS, Family, family_of_type, scale_of_type

__all__ = ["NumberAnnotator"]


class NumberAnnotator(TypeAnnotator):
    """A floating-point number beside a decimal makes one; a decimal beside a number has at most the digits of both."""

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
            scales = [scale_of_type(kind) for kind in kinds if family_of_type(kind) is Family.DECIMAL]
            return exp.DataType.build(f"DECIMAL(38, {min(sum(scales), 38)})", dialect="spark")
        return super()._maybe_coerce(type1, type2)
