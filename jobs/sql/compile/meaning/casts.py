"""Casts: which of them make of a value in Spark what they make of it in its dialect. Pure."""

from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.change import EXACT, MAYBE_REAL
from lakewarden.jobs.sql.compile.meaning.averages import has_own_digits
from lakewarden.jobs.sql.compile.meaning.functions import Notes, cast_to_text
from lakewarden.jobs.sql.compile.meaning.readings import read_as, read_or_null
from lakewarden.jobs.sql.compile.meaning.storing import SPARKS_WORDS, rounded, stored_exactly
from lakewarden.jobs.sql.compile.meaning.texts import require_readable
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.type_families import Family, decimal_of, family_of, family_of_type
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["cast_as_there", "day_by_format"]

_PART_OF_REAL: Final = 24
"""So many bits a FLOAT has at most that is a REAL."""
_FORMAT: Final = "%Y-%m-%d"
_DIGITS: Final = {Dialect.MYSQL: 10, Dialect.TSQL: 18}
"""So many digits a DECIMAL has that does not say it, none of them a fraction."""


def cast_as_there(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    """The cast in Spark's words. Raises `UsageError` for one that may give something else."""
    assert isinstance(node, exp.Cast)
    source, target = family_of(node.this), family_of_type(node.to)
    is_text = isinstance(node.this, exp.Literal) and node.this.is_string
    if isinstance(node.this, exp.Literal) and node.meta.get(EXACT):
        return node.this
    if target is Family.DECIMAL and not node.args["to"].expressions:
        node.set("to", _with_digits(node, dialect))
        node.type = node.args["to"].copy()
    tries = type(node) is exp.TryCast and dialect is Dialect.TSQL
    match source, target:
        case Family.TEXT, _ if tries and target is not Family.TEXT:
            return read_or_null(node, dialect, notes)
        case _ if _is_unsigned(node.args["to"]) and dialect is Dialect.MYSQL:
            raise wrong_in(node, "Spark has no UNSIGNED numbers.", hint="Write SIGNED.")
        case _ if (
            not (tries or type(node) is exp.Cast) or node.args.get("format") or _is_unsigned(node.args["to"])
        ):
            pass
        case (Family.DECIMAL | Family.FLOAT, Family.INTEGER):
            node.set("this", rounded(node.this, source, dialect))
            return node
        case (Family.INTEGER | Family.NULL, Family.INTEGER | Family.DECIMAL):
            return node
        case (Family.INTEGER | Family.NULL | Family.DECIMAL | Family.FLOAT, Family.FLOAT) if (
            not has_own_digits(node.this)
        ):
            node.set("to", _floating(node, dialect))
            return node
        case (Family.DECIMAL, Family.DECIMAL):
            node.set("this", stored_exactly(node.this, node.args["to"], dialect))
            return node
        case (Family.TEXT, Family.INTEGER | Family.TIME | Family.DECIMAL | Family.FLOAT) if is_text:
            if target is Family.FLOAT:
                node.set("to", _floating(node, dialect))
            require_readable(node.this, node.args["to"], dialect)
            return node if target is not Family.TIME else _without_zone(node, dialect)
        case (Family.TEXT, Family.INTEGER) if dialect in (Dialect.POSTGRES, Dialect.TSQL):
            if dialect is Dialect.TSQL:
                notes["An empty text is an error here, where tsql reads it as 0."] = None
            return node  # what both read, they read alike, and all else is an error
        case Family.TEXT, _ if (found := _read(node, dialect, notes)) is not None:
            return found
        case (Family.TIME, Family.TIME) if (
            dialect in (Dialect.POSTGRES, Dialect.TSQL) and not node.to.expressions
        ):
            return _without_zone(node, dialect)
        case (_, Family.TEXT):
            cut = cast_to_text(node, source, dialect)
            if cut is not None:
                return cut
        case _:
            pass
    raise wrong_in(node, "This cast may give something else in Spark.", hint=SPARKS_WORDS)


def day_by_format(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    """Teradata's CAST(s AS DATE FORMAT 'YYYY-MM-DD')."""
    cast = exp.Cast(this=node.this.copy(), to=exp.DataType.build("date", dialect="spark"))
    cast.type = cast.to.copy()
    said = node.args.get("format")
    known = dialect is Dialect.TERADATA and said is not None and said.name == _FORMAT
    found = read_as(cast, dialect, notes) if known else None
    if found is None or family_of(node.this) is not Family.TEXT:
        raise wrong_in(
            node,
            "This may be another day in Spark.",
            hint="Cast texts to DATE, in teradata with FORMAT 'YYYY-MM-DD'.",
        )
    return found


def _read(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr | None:
    """A text that is read as a value of another type."""
    assert isinstance(node, exp.Cast)
    if family_of_type(node.to) is Family.FLOAT:
        node.set("to", _floating(node, dialect))
        if node.to.is_type("float") and dialect is not Dialect.POSTGRES:
            return None  # which may read 64 bits first, and round twice
    return read_as(node, dialect, notes)


def _without_zone(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """A time that has no zone in the dialect. Spark's TIMESTAMP has one: beside a column without, it would take that
    through the session's zone, where an hour of spring is not there."""
    kind: exp.DataType = node.args["to"]
    fraction = node.this.name.partition(".")[2].rstrip()
    if kind.expressions and len(fraction) > int(kind.expressions[0].name):
        raise wrong_in(node, f"{dialect} rounds its fraction of a second.", hint="Write it rounded.")
    # Its parser takes MySQL's TIMESTAMP '...' for the type of that name, which has one; a literal is a DATETIME.
    if kind.this is exp.DType.TIMESTAMP or (dialect is Dialect.MYSQL and kind.this is exp.DType.TIMESTAMPTZ):
        node.set("to", exp.DataType.build("TIMESTAMP_NTZ", dialect="spark"))
        node.type = node.args["to"].copy()
    return node


def _with_digits(node: exp.Expr, dialect: Dialect) -> exp.DataType:
    """What a DECIMAL is that does not say its digits: Spark and MySQL have ten, SQL Server 18. PostgreSQL keeps all
    that there are, and Teradata's are a setting of the server."""
    digits = _DIGITS.get(dialect)
    if digits is None:
        raise wrong_in(
            node,
            f"In {dialect} a number is not rounded to whole ones by this, in Spark it is.",
            hint="Say how many digits it has: DECIMAL(20, 4).",
        )
    return decimal_of(digits, 0)


def _is_unsigned(kind: exp.DataType) -> bool:
    return kind.this in exp.DataType.UNSIGNED_INTEGER_TYPES


def _floating(node: exp.Expr, dialect: Dialect) -> exp.DataType:
    """How many bits a floating-point type has: FLOAT is another one in Spark than in most dialects."""
    kind: exp.DataType = node.args["to"]
    double = exp.DataType.build("DOUBLE", dialect="spark")
    if kind.this is not exp.DType.FLOAT or dialect is Dialect.TERADATA:
        return double
    bits = int(kind.expressions[0].name) if kind.expressions else None
    unclear = dialect is not Dialect.POSTGRES and bits is None and node.meta.get(MAYBE_REAL)
    if unclear:  # the parser takes it for FLOAT
        raise wrong_in(node, "REAL is not told from FLOAT here.", hint="Cast it to DOUBLE PRECISION.")
    if dialect is Dialect.TSQL and (bits is None or bits > _PART_OF_REAL):
        return double
    return exp.DataType.build("FLOAT", dialect="spark")
