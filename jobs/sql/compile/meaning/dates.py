"""Days, months and hours that are added to dates and times, and what is between two of them, in Spark's words. Pure.

PostgreSQL makes a time of a date and an interval, the others a date. SQL Server and MySQL reckon with local clocks,
PostgreSQL with those of a zone where there is one. A month later, the 31st is the last day of a shorter month, but for
Teradata's INTERVAL, which is an error then. Spark takes 24 hours for a day, also where clocks change.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.meaning.integers import bits_of
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.type_families import Family, family_of
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["DATES", "date_in_spark", "is_shift", "shifted"]

_DATE: Final = exp.DataType.build("date", dialect="spark")
_LOCAL: Final = exp.DataType.build("timestamp_ntz", dialect="spark")
_MOMENT: Final = exp.DataType.build("timestamp", dialect="spark")
_COUNT: Final = exp.DataType.build("int", dialect="spark")
_WITH_ZONE: Final = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
_UNITS: Final = {
    "YEAR": ("MONTH", 12),
    "QUARTER": ("MONTH", 3),
    "MONTH": ("MONTH", 1),
    "WEEK": ("DAY", 7),
    "DAY": ("DAY", 1),
    "HOUR": ("SECOND", 3600),
    "MINUTE": ("SECOND", 60),
    "SECOND": ("SECOND", 1),
}
"""By the name of a unit: months, days or seconds, and how many of them."""
_DAY_IN_SECONDS: Final = 86_400
_WHOLE: Final = re.compile(r"\s*[+-]?\d{1,9}\s*")
_TRUNCATED: Final = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})
_OTHER_DAYS: Final = frozenset({"W", "Y"})
"""SQL Server's weekday and dayofyear, which elsewhere are weeks and years."""
_LONG_IN_TERADATA: Final = frozenset({"QUARTER", "WEEK"})
_DIGITS_IN_TERADATA: Final = 2
_BITS_OF_DAYS: Final = 32
_SHIFTS: Final = (exp.DateAdd, exp.DateSub, exp.TimestampAdd, exp.AddMonths)
_HINT: Final = (
    "Write a number of days, months or years: INTERVAL '30 days', or 30 in the place of the number."
)

_Span = Mapping[str, int]
"""So many months, days and seconds."""


def is_shift(node: exp.Expr) -> bool:
    """Whether a sum or a difference is one of a date or a time."""
    if not isinstance(node, exp.Add | exp.Sub):
        return False
    sides = (node.this, node.expression)
    return any(isinstance(side, exp.Interval) or family_of(side) is Family.TIME for side in sides)


def shifted(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """A sum or a difference of dates, times, intervals and numbers."""
    left, right, sign = node.this, node.expression, -1 if isinstance(node, exp.Sub) else 1
    if isinstance(node, exp.Add) and family_of(left) is not Family.TIME:
        left, right = right, left
    if family_of(left) is not Family.TIME:
        raise _unclear(node, dialect)
    if isinstance(right, exp.Interval):
        return _moved(left, _span_of(right, sign, node, dialect), node, dialect, of_interval=True)
    if dialect not in (Dialect.POSTGRES, Dialect.TERADATA) or not _is(left, exp.DType.DATE):
        raise _unclear(node, dialect)
    if _is(right, exp.DType.DATE) and sign < 0:
        return _days_between(left, right)
    if family_of(right) is not Family.INTEGER:
        raise _unclear(node, dialect)
    if dialect is Dialect.POSTGRES and bits_of(right) > _BITS_OF_DAYS:
        raise wrong_in(right, "postgres adds no BIGINT to a date.", hint="Write CAST(... AS INTEGER).")
    name = "DATE_ADD" if sign > 0 else "DATE_SUB"
    return _made(name, _DATE, left, _as_int(right))


def date_in_spark(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """A function of dates and times, whose arguments are in Spark's words already."""
    judge = next(judge for kinds, judge in _JUDGES.items() if isinstance(node, kinds))
    return judge(node, dialect)


def _moved(value: exp.Expr, span: _Span, node: exp.Expr, dialect: Dialect, *, of_interval: bool) -> exp.Expr:
    """A date or time so much later."""
    months, days, seconds = (span.get(unit, 0) for unit in ("MONTH", "DAY", "SECOND"))
    if of_interval and months and dialect is Dialect.TERADATA:
        raise wrong_in(
            node, "teradata refuses a month later where it has no such day, Spark takes its last one.",
            hint="Write ADD_MONTHS(d, 1).",
        )  # fmt: skip
    if _is(value, exp.DType.DATE) and not (dialect is Dialect.POSTGRES and of_interval) and not seconds:
        found = value
        if months:
            found = _made("ADD_MONTHS", _DATE, found, _number(months))
        return _made("DATE_ADD", _DATE, found, _number(days)) if days else found
    if _is(value, exp.DType.DATE):
        if dialect not in (Dialect.POSTGRES, Dialect.MYSQL):
            raise wrong_in(node, f"{dialect} adds no hours to a date.", hint="Cast it to a time first.")
        found = _cast(value, _LOCAL)
    elif _has_zone(value) and (dialect is Dialect.MYSQL or _is_local_clock(value, dialect)):
        found = _cast(value, _LOCAL)
    else:
        found = value
    if abs(seconds) >= _DAY_IN_SECONDS and _has_zone(found):
        raise wrong_in(
            node,
            "Spark takes 24 hours for a day, also where clocks change.",
            hint="Write days, or fewer hours.",
        )
    for unit, count in (("MONTH", months), ("DAY", days), ("SECOND", seconds)):
        if count:
            kind = found.unnest().type
            found = exp.Anonymous(
                this="TIMESTAMPADD", expressions=[exp.Var(this=unit), _number(count), found.copy()]
            )
            found.type = kind
    return found


def _span_of(interval: exp.Expr, sign: int, node: exp.Expr, dialect: Dialect) -> _Span:
    """What an INTERVAL says that `node` adds. Raises `UsageError` for one that is computed, or has fractions."""
    said, unit = interval.this, interval.args.get("unit")
    text = said.name if isinstance(said, exp.Literal) else None
    if isinstance(said, exp.Neg) and isinstance(said.this, exp.Literal):
        text = f"-{said.this.name}"
    if text is None or (unit is not None and not isinstance(unit, exp.Var)):
        raise _unclear(node, dialect)
    if unit is not None:
        return _span(text, unit.name, sign, node, dialect)
    found: dict[str, int] = {}
    words = text.split()
    if not words or len(words) % 2:
        raise _unclear(node, dialect)
    for number, unit_word in zip(words[::2], words[1::2], strict=True):
        for one, count in _span(number, unit_word, sign, node, dialect).items():
            found[one] = found.get(one, 0) + count
    return found


def _span(count: str, unit: str, sign: int, node: exp.Expr, dialect: Dialect) -> _Span:
    name = unit.upper().removesuffix("S")
    if name not in _UNITS or not _WHOLE.fullmatch(count):
        raise _unclear(node, dialect)
    if dialect is Dialect.TERADATA and (
        name in _LONG_IN_TERADATA or len(count.strip().lstrip("+-")) > _DIGITS_IN_TERADATA
    ):
        raise _unclear(node, dialect)
    base, times = _UNITS[name]
    return {base: sign * times * int(count)}


def _function_shift(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """DATE_ADD, DATE_SUB, DATEADD, TIMESTAMPADD, ADD_MONTHS."""
    value, count, unit = node.this, node.expression, node.args.get("unit")
    sign = -1 if isinstance(node, exp.DateSub) else 1
    is_other_day = dialect is Dialect.TSQL and unit is not None and unit.name.upper() in _OTHER_DAYS
    if family_of(value) is not Family.TIME or is_other_day:
        raise _unclear(node, dialect)
    if isinstance(node, exp.AddMonths):
        if not _is(value, exp.DType.DATE) or family_of(count) is not Family.INTEGER:
            raise _unclear(node, dialect)
        return _made("ADD_MONTHS", _DATE, value, _as_int(count))
    if unit is None and dialect is not Dialect.TSQL and isinstance(count, exp.Interval):
        return _moved(value, _span_of(count, sign, node, dialect), node, dialect, of_interval=True)
    written = exp.Interval(this=count.copy(), unit=exp.Var(this=unit.name if unit is not None else "DAY"))
    return _moved(value, _span_of(written, sign, node, dialect), node, dialect, of_interval=False)


def _difference(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """MySQL's DATEDIFF, which counts days; SQL Server's, which counts the midnights, first of months and years."""
    later, earlier, unit = node.this, node.expression, node.args.get("unit")
    sides = (later, earlier)
    if any(family_of(side) is not Family.TIME for side in sides):
        raise _unclear(node, dialect)
    name = "DAY" if unit is None else unit.name.upper()
    if name == "DAY":
        return _days_between(later, earlier)
    if dialect is not Dialect.TSQL or name not in ("MONTH", "YEAR"):
        raise wrong_in(node, "Days, months and years are counted here.", hint="Write DATEDIFF(day, a, b).")
    years = exp.Sub(this=_extracted("YEAR", later), expression=_extracted("YEAR", earlier))
    if name == "YEAR":
        found: exp.Expr = exp.paren(years, copy=False)
    else:
        months = exp.Sub(this=_extracted("MONTH", later), expression=_extracted("MONTH", earlier))
        twelve = exp.Mul(this=exp.paren(years, copy=False), expression=exp.Literal.number(12))
        found = exp.paren(exp.Add(this=twelve, expression=exp.paren(months, copy=False)), copy=False)
    for one in found.walk():
        one.type = _COUNT.copy()
    return found


def _truncated(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """PostgreSQL's date_trunc, which makes a moment of a date, and SQL Server's DATETRUNC."""
    value, unit = node.this, node.args["unit"].name.upper()
    if family_of(value) is not Family.TIME or unit not in _TRUNCATED or node.args.get("zone") is not None:
        raise _unclear(node, dialect)
    if dialect is Dialect.TSQL and unit == "WEEK":
        raise wrong_in(
            node, "SQL Server's weeks begin with the day that DATEFIRST says.", hint="Reckon in days."
        )
    found = _made("DATE_TRUNC", _MOMENT, exp.Literal.string(unit), value)
    if _is(value, exp.DType.DATE):
        return found if dialect is Dialect.POSTGRES else _cast(found, _DATE)
    return found if _has_zone(value) else _cast(found, _LOCAL)


def _last_day(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    if family_of(node.this) is not Family.TIME or node.args.get("unit") is not None:
        raise _unclear(node, dialect)
    return _made("LAST_DAY", _DATE, node.this)


def _as_it_is(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """What sqlglot puts around the arguments of DATEDIFF, which are dates and times themselves."""
    if family_of(node.this) is not Family.TIME:
        raise _unclear(node, dialect)
    value: exp.Expr = node.this
    return value


def _interval(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Judged with what it is added to."""
    if not isinstance(node.parent, (exp.Add, exp.Sub, *_SHIFTS)):
        raise _unclear(node.parent or node, dialect)
    return node


def _day_of(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """MySQL's day of the week, 1 for Sunday, and of the year."""
    if family_of(node.this) is not Family.TIME:
        raise _unclear(node, dialect)
    return _made(node.key.upper(), _COUNT, node.this)


_JUDGES: Final[Mapping[tuple[type[exp.Expr], ...], Callable[[exp.Expr, Dialect], exp.Expr]]] = {
    _SHIFTS: _function_shift,
    (exp.DateDiff,): _difference,
    (exp.TimestampTrunc, exp.DateTrunc): _truncated,
    (exp.LastDay,): _last_day,
    (exp.TimeStrToTime,): _as_it_is,
    (exp.Interval,): _interval,
    (exp.DayOfWeek, exp.DayOfYear): _day_of,
}
DATES: Final = tuple(kind for kinds in _JUDGES for kind in kinds)
"""What is judged here."""


def _unclear(node: exp.Expr, dialect: Dialect) -> Exception:
    return wrong_in(node, f"This may be another date or time in Spark than in {dialect}.", hint=_HINT)


def _made(name: str, kind: exp.DataType, *arguments: exp.Expr) -> exp.Expr:
    found = exp.Anonymous(this=name, expressions=[one.copy() for one in arguments])
    found.type = kind.copy()
    return found


def _days_between(later: exp.Expr, earlier: exp.Expr) -> exp.Expr:
    return _made("DATEDIFF", _COUNT, later, earlier)


def _extracted(part: str, value: exp.Expr) -> exp.Expr:
    return exp.Extract(this=exp.Var(this=part), expression=value.copy())


def _cast(value: exp.Expr, kind: exp.DataType) -> exp.Expr:
    found = exp.Cast(this=value.copy(), to=kind.copy())
    found.type = kind.copy()
    return found


def _as_int(value: exp.Expr) -> exp.Expr:
    written = value.this if isinstance(value, exp.Neg) else value
    return value if isinstance(written, exp.Literal) else _cast(value, _COUNT)


def _number(count: int) -> exp.Expr:
    found = exp.Literal.number(abs(count))
    return found if count >= 0 else exp.Neg(this=found)


def _is(node: exp.Expr, *kinds: exp.DType) -> bool:
    kind = node.unnest().type
    return isinstance(kind, exp.DataType) and kind.this in kinds


def _has_zone(node: exp.Expr) -> bool:
    return _is(node, *_WITH_ZONE)


def _is_local_clock(node: exp.Expr, dialect: Dialect) -> bool:
    """Whether it is SQL Server's GETDATE(), which has no zone."""
    return dialect is Dialect.TSQL and isinstance(node, exp.CurrentTimestamp)
