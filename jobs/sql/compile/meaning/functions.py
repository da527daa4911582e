"""Functions of other dialects, and their windows, in Spark's words. Pure.

What is not listed here for a dialect may give something else in Spark. Where a function counts characters, Spark counts
code points, as PostgreSQL, MySQL and Teradata do.
"""

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.annotation import is_as_shown
from lakewarden.jobs.sql.compile.type_families import (
    NUMBERS,
    Family,
    family_of,
    scale_of_type,
    typed,
    whole_digits_of_type,
)
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["FUNCTIONS", "Notes", "cast_to_text", "function_in_spark", "numbers_by_chance"]

Notes = dict[str, None]
"""What somebody should know, in order."""

_TEXTS: Final = frozenset({Family.TEXT, Family.NULL})
_JOINABLE: Final = frozenset({Family.TEXT, Family.INTEGER, Family.NULL})
_PARTS: Final = frozenset({"YEAR", "QUARTER", "MONTH", "DAY"})
_PARTS_OF_TIMES: Final = frozenset({"HOUR", "MINUTE"})
_RANKS: Final = (exp.Rank, exp.DenseRank)
_BY_CHANCE: Final = (exp.RowNumber, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
"""What gives rows of equal order different results."""
_OVER_ALL: Final = (exp.Sum, exp.Count, exp.Min, exp.Max)
_OPEN: Final = ("UNBOUNDED", "CURRENT ROW")
_LENGTH_IN_TSQL: Final = 30
_WIDTHS: Final = {exp.DType.TINYINT: 4, exp.DType.SMALLINT: 6, exp.DType.INT: 11, exp.DType.DATE: 10}
"""So many characters values of a type have at most."""
_WIDEST: Final = 20
"""The same of a BIGINT."""
_FRACTIONS: Final = {"0": "SECOND", "3": "MILLISECOND"}
_OTHER_LETTERS: Final = (
    "UPPER and LOWER go by Unicode: letters beyond ASCII, such as ß and İ, "
    "may become others than in {dialect}."
)
_EXACTLY: Final = "Texts are searched exactly, where tsql may ignore case."
_PART: Final = exp.DataType.build("DECIMAL(10, 0)", dialect="spark")
"""PostgreSQL's type for a part of a date or time, as far as there are digits in it."""


def function_in_spark(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    """A function of a dialect, whose arguments are in Spark's words already, in these words, too; None if it may mean
    something else there."""
    judge = next(judge for kinds, judge in _JUDGES.items() if isinstance(node, kinds))
    found = judge(node, dialect, notes)
    if found is not None and found.type is None:
        found.type = node.type
    return found


def numbers_by_chance(node: exp.Window) -> bool:
    """Whether rows of equal order may be told apart by it, each time in another way."""
    spec = node.args.get("spec")
    by_rows = isinstance(spec, exp.WindowSpec) and spec.args.get("kind") == "ROWS"
    return isinstance(node.this, _BY_CHANCE) or by_rows


def cast_to_text(node: exp.Cast, source: Family, dialect: Dialect) -> exp.Expr | None:
    """A cast of a number, a day, a text or NULL to text, cut off after as many characters as the type says.

    None where it would be padded, may fail, or has another form in Spark.
    """
    if not _has_one_form(node.this, source, dialect):
        return None
    kind = node.to
    endless = kind.is_type("text") or (dialect is Dialect.MYSQL and kind.is_type("char", "nchar"))
    if not endless and not kind.is_type("varchar", "nvarchar"):
        return None
    said = kind.expressions[0].this if kind.expressions else None
    if said is None and not endless and dialect is Dialect.TSQL:
        said = exp.Literal.number(_LENGTH_IN_TSQL)
    if said is None:
        return _text(node.this)
    if not _at_least(said, 1):
        return None
    if source is Family.TEXT:
        return exp.Left(this=node.this.copy(), expression=said.copy())
    if int(said.name) >= _width(node.this, source):
        return _text(node.this)
    return exp.Left(this=_text(node.this), expression=said.copy()) if dialect is Dialect.POSTGRES else None


def _has_one_form(value: exp.Expr, source: Family, dialect: Dialect) -> bool:
    """Whether a value becomes the same text in Spark."""
    if source in (Family.INTEGER, Family.TEXT, Family.NULL):
        return True
    shown = isinstance(value.type, exp.DataType) and is_as_shown(value.type) and bool(value.type.expressions)
    return dialect is not Dialect.TERADATA and (_is_date(value) or (source is Family.DECIMAL and shown))


def _width(value: exp.Expr, source: Family) -> int:
    kind = typed(value)
    if source is Family.DECIMAL:
        return whole_digits_of_type(kind) + scale_of_type(kind) + len("-0.")
    return _WIDTHS.get(kind.this, _WIDEST)


def _concat(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    parts = node.expressions
    if dialect is Dialect.POSTGRES and any(part.meta.get("padded") for part in parts):
        return None  # it keeps the blanks of a CHAR
    if not {family_of(part) for part in parts} <= (_TEXTS if dialect is Dialect.TERADATA else _JOINABLE):
        return None
    texts = [part if family_of(part) is Family.TEXT else _text(part) for part in parts]
    return exp.Concat(expressions=texts, safe=True, coalesce=node.args.get("coalesce"))


def _concat_ws(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    """Texts with another between them, without those that are NULL."""
    separator, *parts = node.expressions
    known = dialect in (Dialect.POSTGRES, Dialect.MYSQL, Dialect.TSQL)
    if not known or not (isinstance(separator, exp.Literal) and separator.is_string):
        return None
    texts = _concat(exp.Concat(expressions=parts), dialect, notes) if parts else None
    if texts is None:
        return None
    return exp.Anonymous(this="CONCAT_WS", expressions=[separator.copy(), *texts.expressions])


def _cased(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    if not _is_text(node.this):
        return None
    if not isinstance(node.this, exp.Literal) or not node.this.name.isascii():
        notes[_OTHER_LETTERS.format(dialect=dialect)] = None
    return node


def _moment(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    """The time of the statement; MySQL's has no fraction of a second unless it is asked for."""
    now, digits = exp.CurrentTimestamp(), node.this
    now.type = exp.DataType.build("timestamp", dialect="spark")
    if digits is None and dialect is not Dialect.MYSQL:
        return now
    if dialect not in (Dialect.MYSQL, Dialect.TERADATA):
        return None
    unit = _FRACTIONS.get("0" if digits is None else digits.name)
    if unit is None:
        return now if digits is not None and digits.name == "6" else None
    cut: exp.Expr = exp.Anonymous(this="DATE_TRUNC", expressions=[exp.Literal.string(unit), now])
    cut.type = now.type
    return cut


def _text(value: exp.Expr) -> exp.Expr:
    return exp.cast(value.copy(), exp.DataType.Type.TEXT)


def _trim(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    return node if _is_text(node.this) and node.args.get("expression") is None else None


def _part_of_text(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    first, count = (
        (node.args.get("start"), node.args.get("length"))
        if isinstance(node, exp.Substring)
        else (None, node.expression)
    )
    clear = (first is None or _at_least(first, 1)) and (count is None or _at_least(count, 0))
    if not clear or not _is_text(node.this):
        return None
    _note_characters(dialect, notes)
    return node


def _length(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    if not _is_text(node.this):
        return None
    _note_characters(dialect, notes)
    if node.args.get("binary"):
        return exp.Anonymous(this="OCTET_LENGTH", expressions=[node.this.copy()])
    if dialect is Dialect.TSQL:
        return exp.Length(this=exp.Trim(this=node.this.copy(), position="TRAILING"))
    return node


def _replace(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    exact = dialect in (Dialect.POSTGRES, Dialect.MYSQL)
    texts = all(_is_text(node.args.get(key)) for key in ("this", "replacement"))
    if dialect is Dialect.TSQL:
        notes[_EXACTLY] = None
    return node if (exact or dialect is Dialect.TSQL) and texts and _is_some_text(node.expression) else None


def _position(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    more = [key for key, value in node.args.items() if value and key not in ("this", "substr")]
    plain = not more and _is_text(node.this) and _is_some_text(node.args["substr"])
    if dialect is Dialect.TSQL:
        notes[_EXACTLY] = None
        _note_characters(dialect, notes)
    return node if plain and dialect in (Dialect.POSTGRES, Dialect.TSQL) else None


def _pad(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    fill = node.args.get("fill_pattern")
    clear = _is_text(node.this) and _at_least(node.expression, 0) and (fill is None or _is_some_text(fill))
    return node if clear and dialect in (Dialect.POSTGRES, Dialect.MYSQL) else None


def _round(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    digits, kind = node.args.get("decimals"), family_of(node.this)
    if dialect is Dialect.TERADATA or node.args.get("truncate") is not None:
        return None
    if digits is None and kind is Family.FLOAT and dialect is Dialect.POSTGRES:
        return exp.Anonymous(this="RINT", expressions=[node.this.copy()])
    return node if kind is Family.DECIMAL and (digits is None or _at_least(digits, 0)) else None


def _whole(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    if family_of(node.this) is not Family.DECIMAL or node.args.get("decimals") is not None:
        return None
    return node  # there it is a decimal without a fraction: it is divided as one


def _part_of_time(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    extracts = isinstance(node, exp.Extract)
    part = node.this.name.upper() if extracts else type(node).__name__.upper()
    of = node.expression if extracts else node.this
    if not isinstance(of, exp.Expr):
        return None
    known = _PARTS if _is_date(of) else _PARTS | _PARTS_OF_TIMES
    if part not in known or family_of(of) is not Family.TIME:
        return None
    found = exp.Extract(this=exp.Var(this=part), expression=of.copy())
    found.type = _PART if dialect is Dialect.POSTGRES else exp.DataType.build("int")
    return found


def _day(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    """What sqlglot puts into YEAR(...) and the like, which take a date or time as it is."""
    value: exp.Expr = node.this
    if isinstance(node.parent, (*_DATE_PARTS, exp.LastDay, exp.DayOfWeek, exp.DayOfYear)):
        return value
    if dialect is not Dialect.MYSQL or family_of(value) is not Family.TIME:
        return None
    day: exp.Expr = exp.cast(value.copy(), "date")  # MySQL's DATE(...)
    day.type = exp.DataType.build("date", dialect="spark")
    return day


def _window(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    assert isinstance(node, exp.Window)
    known = isinstance(node.this, (*_RANKS, *_BY_CHANCE, *_OVER_ALL))
    if not known or node.args.get("alias") is not None or node.args.get("first") is not None:
        return None
    select = node.find_ancestor(exp.Select)
    if select is None or select.parent is None:  # in a WHERE or SET of the change itself
        return None
    if numbers_by_chance(node):
        told = (
            f"{_name(node.this)} takes rows of equal order by chance; "
            "order them by more columns if that matters."
        )
        notes[told] = None
    return node


def _frame(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    ends = [node.args.get(key) for key in ("start", "end")]
    fixed = all(end is None or end in _OPEN for end in ends)
    by_rows = node.args.get("kind") == "ROWS" and all(
        end is None or end in _OPEN or (isinstance(end, exp.Expr) and _at_least(end, 0)) for end in ends
    )
    return node if (fixed or by_rows) and not node.args.get("exclude") else None


def _neighbour(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    distance, instead = node.args.get("offset"), node.args.get("default")
    if not isinstance(node.parent, exp.Window) or not (distance is None or _at_least(distance, 0)):
        return None
    return node if instead is None or family_of(instead) in (family_of(node.this), Family.NULL) else None


def _over(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    return node if isinstance(node.parent, exp.Window) else None


def _named(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    """What sqlglot has no word for."""
    arguments = node.expressions
    if dialect is Dialect.MYSQL and node.name.upper() == "NOW" and len(arguments) <= 1:
        return _moment(exp.CurrentTimestamp(this=next(iter(arguments), None)), dialect, notes)
    if dialect is Dialect.MYSQL:
        return _named_in_mysql(node)
    if dialect is not Dialect.TERADATA or len(arguments) != 1:
        return None
    (value,), zero = arguments, exp.Literal.number(0)
    match node.name.upper():
        case "ZEROIFNULL" | "NULLIFZERO" if family_of(value) in NUMBERS:
            found: exp.Expr = exp.Nullif(this=value.copy(), expression=zero)
            if node.name.upper() == "ZEROIFNULL":
                found = exp.Coalesce(this=value.copy(), expressions=[zero])
            found.type = typed(value)
            return found
        case "CHARACTERS" | "CHARS" if _is_text(value):
            return exp.Length(this=value.copy())
        case _:
            return None


def _named_in_mysql(node: exp.Expr) -> exp.Expr | None:
    """ADDDATE and SUBDATE with a number are DATE_ADD and DATE_SUB of days; WEEKDAY is 0 for Monday."""
    match node.name.upper(), node.expressions:
        case ("ADDDATE" | "SUBDATE") as name, [value, exp.Literal() as days] if days.is_int and _is_date(
            value
        ):
            found: exp.Expr = exp.Anonymous(this=f"DATE_{name[:3]}", expressions=[value.copy(), days.copy()])
            found.type = exp.DataType.build("date", dialect="spark")
        case "WEEKDAY", [value] if family_of(value) is Family.TIME:
            found = exp.Anonymous(this="WEEKDAY", expressions=[value.copy()])
            found.type = exp.DataType.build("int", dialect="spark")
        case _:
            return None
    return found


_DATE_PARTS: Final = (exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.Hour, exp.Minute)
_JUDGES: Final[Mapping[tuple[type[exp.Expr], ...], Callable[[exp.Expr, Dialect, Notes], exp.Expr | None]]] = {
    (exp.ConcatWs,): _concat_ws,  # which sqlglot takes for a kind of CONCAT
    (exp.Concat,): _concat,
    (exp.Lower, exp.Upper): _cased,
    (exp.CurrentTimestamp,): _moment,
    (exp.Trim,): _trim,
    (exp.Substring, exp.Left, exp.Right): _part_of_text,
    (exp.Length,): _length,
    (exp.Replace,): _replace,
    (exp.StrPosition,): _position,
    (exp.Pad,): _pad,
    (exp.Round,): _round,
    (exp.Floor, exp.Ceil): _whole,
    (exp.Extract, *_DATE_PARTS): _part_of_time,
    (exp.TsOrDsToDate,): _day,
    (exp.Window,): _window,
    (exp.WindowSpec,): _frame,
    (exp.Lag, exp.Lead): _neighbour,
    (exp.RowNumber, *_RANKS, exp.FirstValue, exp.LastValue): _over,
    (exp.Anonymous,): _named,
}
FUNCTIONS: Final = tuple(kind for kinds in _JUDGES for kind in kinds)
"""What is judged here."""


def _is_text(node: exp.Expr | None) -> bool:
    return family_of(node) in _TEXTS


def _is_some_text(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and bool(node.name)


def _is_date(node: exp.Expr) -> bool:
    return isinstance(node.type, exp.DataType) and node.type.this is exp.DataType.Type.DATE


def _at_least(node: exp.Expr, least: int) -> bool:
    return isinstance(node, exp.Literal) and node.is_int and int(node.name) >= least


def _name(node: exp.Expr) -> str:
    return node.sql_name() if isinstance(node, exp.Func) else node.key.upper()


def _note_characters(dialect: Dialect, notes: Notes) -> None:
    if dialect is Dialect.TSQL:
        notes["Characters beyond U+FFFF count as one, where tsql may count two."] = None
