"""Texts that become numbers, dates and times, row by row: what every database reads alike is read, all else is an
error. Pure.

Where a text cannot be read, PostgreSQL, SQL Server, Teradata and MySQL in its strict mode raise an error, too. Some
read more than is read here (an empty text, a day in another form), and Spark more than they.
"""

from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.meaning.functions import Notes
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.type_families import Family, family_of_type, scale_of_type
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["read_as", "read_or_null"]

_LOCAL: Final = {
    Dialect.POSTGRES: exp.DType.TIMESTAMP,
    Dialect.MYSQL: exp.DType.DATETIME,
    Dialect.TSQL: exp.DType.DATETIME2,
    Dialect.TERADATA: exp.DType.TIMESTAMP,
}
"""Each dialect's time without a zone. How SQL Server reads a text as DATETIME is a matter of language."""
_NO_NUMBERS: Final = frozenset({*exp.DataType.UNSIGNED_INTEGER_TYPES, exp.DType.BIT})
_OTHER_FORMS: Final = "A text in another form than {} is an error here, where {} may read it."
_END: Final = "(?!(?s:.))"
"""$ may stand before a last line break."""
_SIX: Final = 6
"""So many digits of a second there are at most."""
_EXAMPLES: Final = {
    Family.INTEGER: "-15",
    Family.DECIMAL: "-1.5",
    Family.FLOAT: "-1.5e3",
    Family.TIME: "2024-01-05 10:00:00",
}
_NONE: Final = {
    Family.INTEGER: r"[^ 0-9+\p{Cntrl}-]",
    Family.DECIMAL: r"[^ 0-9+.,eEdD\p{Cntrl}\p{Sc}-]",
    Family.TIME: r"^ *[^ 0-9\p{Cntrl}][^0-9]*" + _END,
}
"""What is surely no whole number, no decimal, no date or time in any form."""


def read_as(node: exp.Cast, dialect: Dialect, notes: Notes, none: str | None = None) -> exp.Expr | None:
    """A cast of a text that reads what the dialect reads as this type, too, and raises an error for all else, but for
    what is `none`, by a regular expression; None for a type that no text is read as here."""
    kind = node.to
    form = _form(kind, dialect)
    if form is None:
        return None
    if kind.this is _LOCAL[dialect]:
        node.set("to", exp.DataType.build("TIMESTAMP_NTZ", dialect="spark"))
        node.type = node.to.copy()
    notes[_OTHER_FORMS.format(_example(kind), dialect)] = None
    node.set("this", _guarded(node.this, kind, f"^{form}{_END}", none))
    return node


def read_or_null(node: exp.Cast, dialect: Dialect, notes: Notes) -> exp.Expr:
    """SQL Server's TRY_CAST of a text to a whole number, a decimal, a day or a time: NULL for what is surely none. What
    that server may read, and Spark does not, is an error. Raises `UsageError` for another type."""
    none = _NONE.get(Family.TIME if node.to.this is _LOCAL[dialect] else family_of_type(node.to))
    found = None if none is None else read_as(node, dialect, notes, none)
    if found is None:
        raise wrong_in(
            node,
            "TRY_CAST reads texts as whole numbers, decimals, days and times here.",
            hint="Write TRY_CAST(... AS DECIMAL(18, 2)), or CAST.",
        )
    return found


def _form(kind: exp.DataType, dialect: Dialect) -> str | None:
    """How texts are written that this type has, and the dialect and Spark read alike: as a regular expression."""
    behind = "" if dialect is Dialect.MYSQL else " *"
    strict = dialect in (Dialect.TSQL, Dialect.TERADATA)
    two = "[0-9]{2}" if strict else "[0-9]{1,2}"
    day = f"(?!0000)[0-9]{{4}}-{two}-{two}"
    match family_of_type(kind):
        case Family.INTEGER if kind.this not in _NO_NUMBERS:
            return f" *[+-]?[0-9]+{behind}"
        case Family.DECIMAL:
            digits = f"{{0,{scale_of_type(kind)}}}" if strict else "*"
            return f" *[+-]?[0-9]+([.][0-9]{digits})?{behind}"
        case Family.FLOAT:
            return f" *[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?{behind}"
        case Family.TIME if kind.is_type("date"):
            return day
        case _ if kind.this is _LOCAL[dialect]:
            time = f" {two}:[0-9]{{2}}:[0-9]{{2}}{_fraction(kind, dialect)}"
            return f"{day}{time}" if dialect is Dialect.TERADATA else f"{day}({time})?"
        case _:
            return None


def _example(kind: exp.DataType) -> str:
    if kind.is_type("date"):
        return "2024-01-05"
    return _EXAMPLES.get(family_of_type(kind), _EXAMPLES[Family.TIME])


def _fraction(kind: exp.DataType, dialect: Dialect) -> str:
    """Digits of a second that the type keeps: more of them would be rounded."""
    usual = 0 if dialect is Dialect.MYSQL else _SIX
    digits = min(int(kind.expressions[0].name), _SIX) if kind.expressions else usual
    return f"([.][0-9]{{1,{digits}}})?" if digits else ""


def _guarded(text: exp.Expr, kind: exp.DataType, form: str, none: str | None) -> exp.Expr:
    """The text where it has this form, NULL where it is none, else an error."""
    example = f"It is read in this form: {_example(kind)}."
    said = f"' is not read as {kind.sql(dialect='spark')} alike by every database. {example}"
    error = exp.Concat(
        expressions=[exp.Literal.string("'"), text.copy(), exp.Literal.string(said)], safe=True
    )
    refused = exp.Anonymous(this="RAISE_ERROR", expressions=[error])
    ifs = [exp.If(this=exp.Not(this=_is_like(text, form)), true=refused)]
    if none is not None:
        ifs.insert(0, exp.If(this=_is_like(text, none), true=exp.Null()))
    found = exp.Case(ifs=ifs, default=text.copy())
    found.type = exp.DataType.build("string", dialect="spark")
    return found


def _is_like(text: exp.Expr, form: str) -> exp.Expr:
    return exp.paren(exp.RegexpLike(this=text.copy(), expression=exp.Literal.string(form)), copy=False)
