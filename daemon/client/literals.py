"""Python's values as Spark's literals. Pure. The gateway takes finished statements only."""

import math
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Final
from uuid import UUID

from lakewarden.catalog.errors import UsageError

__all__ = ["literal"]

_ESCAPES: Final = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"})


def literal(value: object) -> str:
    """A value as it stands in a statement. Raises `UsageError` for one that has no literal."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case Integral():
            return str(int(value))
        case Decimal():
            return f"CAST('{value:f}' AS DECIMAL({_digits(value)}))"
        case Real():
            return _number(float(value))
        case str() | UUID():
            return f"'{str(value).translate(_ESCAPES)}'"
        case bytes() | bytearray() | memoryview():
            return f"X'{bytes(value).hex()}'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            raise UsageError(
                f"A value of type {type(value).__name__} has no literal.",
                hint="Convert it before it is bound.",
            )


def _number(value: float) -> str:
    if math.isfinite(value):
        return f"{value!r}D"
    return f"CAST('{value}' AS DOUBLE)"


def _digits(value: Decimal) -> str:
    if not value.is_finite():
        raise UsageError(f"{value} is not a decimal number.", hint="Bind None or a float.")
    whole, _, fraction = f"{value:f}".lstrip("-").partition(".")
    return f"{max(len(whole.lstrip('0')) + len(fraction), 1)}, {len(fraction)}"
