"""Values of many types as text: how each is written in SQL, read back, compared and ordered. Shares nothing with the
product."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

__all__ = ["KINDS", "TWICE", "Kind", "Value", "same", "smaller_first"]

Value = str | None
"""As `Kind.said` gives it; None for NULL."""


class Kind:
    """A type of Spark's: `made` makes a value of the column {} of texts, `said` is the text of the column {}; `values`
    are some, `measure` gives what they are ordered by."""

    def __init__(
        self,
        name: str,
        values: tuple[str, ...],
        *,
        made: str = "",
        said: str = "",
        measure: Callable[[str], Any] = str,
    ) -> None:
        self.name, self.values, self.measure = name, values, measure
        self.made = made or f"CAST({{}} AS {name})"
        self.said = said or "CAST({} AS STRING)"


def _double(text: str) -> tuple[int, float]:
    return (1, 0.0) if text == "NaN" else (0, float(text.replace("Infinity", "inf")))


TWICE: Final = ("1792888200000000", "1792891800000000")
"""Half past two on 2026-10-25 in Berlin, in summer and in winter: one moment in partitions, as the docs say."""
_MOMENTS: Final = ("-62135596800000000", "0", "1", "1767225600000001", "253402300799999999")

KINDS: Final[Mapping[str, Kind]] = {
    one.name: one
    for one in (
        Kind(
            "bigint",
            ("0", "1", "2", "-5", "40", "41", "100000", "9223372036854775807", "-9223372036854775808"),
            measure=int,
        ),
        Kind("int", ("0", "1", "-1", "7", "2147483647", "-2147483648"), measure=int),
        Kind("string", ("a", "A", "a ", "", "é", "e\u0301", "it's \\", "A%/=: ?", "z" * 99, "\u20ac")),
        Kind("date", ("2026-10-25", "1970-01-01", "0001-01-01", "9999-12-31", "2026-10-26")),
        Kind(
            "timestamp",
            (*_MOMENTS, *TWICE, "1792895400000000"),
            made="timestamp_micros(CAST({} AS BIGINT))",
            said="CAST(unix_micros({}) AS STRING)",
            measure=int,
        ),
        Kind(
            "timestamp_ntz",
            ("2026-03-29 02:30:00", "1582-10-10 00:00:00", "0001-01-01 00:00:00", "9999-12-31 23:59:59"),
        ),
        Kind("decimal(10,2)", ("0.00", "1.50", "-0.01", "99999999.99", "-99999999.99"), measure=Decimal),
        Kind("double", ("0.0", "-0.0", "1.5", "NaN", "Infinity", "-Infinity"), measure=_double),
        Kind("boolean", ("true", "false")),
        Kind("binary", ("", "00", "FF80"), made="unhex({})", said="hex({})"),
    )
}


def same(value: Value) -> Value:
    """One text for values that are equal: zeros below zero are zeros."""
    return "0.0" if value == "-0.0" else value


def smaller_first(kind: str, value: Value) -> tuple[bool, Any]:
    """What values are ordered by: NULL comes first, NaN last."""
    return (False, 0) if value is None else (True, KINDS[kind].measure(value))
