"""A value as it is stored in a column: as the statement's dialect stores it, or not at all. Pure."""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.annotation import is_as_shown
from lakewarden.jobs.sql.compile.meaning.averages import FEW, refuse_own_digits, require_exact, to_even
from lakewarden.jobs.sql.compile.meaning.texts import require_readable
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.type_families import (
    INTEGER_BITS,
    NUMBERS,
    Family,
    family_of,
    family_of_type,
    scale_of,
    scale_of_type,
    whole_digits_of_type,
)
from lakewarden.jobs.sql.compile.values import DIALECT_KEY, Dialect

__all__ = ["SPARKS_WORDS", "assigned", "rounded", "stored_exactly"]

SPARKS_WORDS: Final = (
    f"Write it in Spark's SQL after SET {DIALECT_KEY} = spark, or make a view that computes it."
)
_TAKEN: Final[Mapping[Family, frozenset[Family]]] = {
    Family.INTEGER: NUMBERS | {Family.BOOLEAN},
    Family.DECIMAL: NUMBERS | {Family.BOOLEAN},
    Family.FLOAT: NUMBERS | {Family.BOOLEAN},
    Family.BOOLEAN: frozenset({Family.BOOLEAN}),
    Family.TIME: frozenset({Family.TIME}),
    Family.TEXT: frozenset(Family) - {Family.OTHER},
    Family.OTHER: frozenset({Family.OTHER}),
}
"""By the kind of a column: what is stored in it as every database does. Spark takes '240105' for a year and a number
for seconds since 1970, where others see a day."""


def assigned(value: exp.Expr, kind: exp.DataType, dialect: Dialect) -> exp.Expr:
    """A value as it is stored in a column of this type: rounded where the dialect rounds and Spark cuts off. Raises
    `UsageError` for what would be stored in another form."""
    if dialect is Dialect.SPARK:
        return value
    source, target = family_of(value), family_of_type(kind)
    _require_room(value, kind)
    if isinstance(value, exp.Literal) and value.is_string and target is not Family.TEXT:
        require_readable(value, kind, dialect)
        return exp.Cast(this=value, to=kind.copy())
    _require_taken(value, source, kind, dialect)
    if source is Family.DECIMAL and scale_of_type(kind) > FEW:
        refuse_own_digits([value])
    if target is Family.TEXT:
        _require_one_form(value, source, dialect)
    match source, target:
        case (Family.DECIMAL | Family.FLOAT, Family.INTEGER):
            return rounded(value, source, dialect)
        case (Family.FLOAT, Family.DECIMAL):
            raise wrong_in(
                value, f"{dialect} makes other digits of a floating-point number than Spark.",
                hint=SPARKS_WORDS,
            )  # fmt: skip
        case (Family.DECIMAL, Family.DECIMAL):
            return stored_exactly(value, kind, dialect)
        case _:
            pass
    return value


def _require_room(value: exp.Expr, kind: exp.DataType) -> None:
    """Raise `UsageError` for a value that is written and that a column of this type cannot hold."""
    bare = value.unnest()
    written = bare.this if isinstance(bare, exp.Neg) else bare
    if not isinstance(written, exp.Literal):
        return
    length = kind.expressions[0].name if kind.expressions else ""
    match family_of_type(kind):
        case Family.INTEGER if written.is_int:
            least = -(2 ** (INTEGER_BITS.get(kind.this, 64) - 1))
            number = int(written.name) * (1 if bare is written else -1)
            fits = least <= number < -least
        case Family.DECIMAL if not written.is_string and "e" not in written.name.lower():
            fits = len(written.name.partition(".")[0].lstrip("0")) <= whole_digits_of_type(kind)
        case Family.TEXT if written.is_string and length.isdigit():
            fits = len(written.name.rstrip(" ")) <= int(length)
        case _:
            return
    if not fits:
        raise wrong_in(
            value,
            f"This has no room in a column of type {kind.sql(dialect='spark')}.",
            hint="Write a value that has, or make the column wider.",
        )


def _require_taken(value: exp.Expr, source: Family, kind: exp.DataType, dialect: Dialect) -> None:
    """Raise `UsageError` for a value of a kind that becomes another value in a column of this type."""
    target = family_of_type(kind)
    unknown = source is Family.OTHER and not _is_binary(value.type)
    is_bit = target is Family.BOOLEAN and isinstance(value, exp.Literal) and value.name in ("0", "1")
    taken = is_bit or source in _TAKEN[target]
    if dialect is Dialect.POSTGRES and target is not Family.TEXT and Family.BOOLEAN in (source, target):
        taken = source is target
    if not (unknown or source is Family.NULL or taken):
        raise wrong_in(
            value, f"{source} becomes {target} by other rules in {dialect} than in Spark.",
            hint=f"Cast it in a view. {SPARKS_WORDS}",
        )  # fmt: skip
    loses_time = kind.is_type("date") and source is Family.TIME and not _is_type(value.type, "date")
    if loses_time and dialect in (Dialect.MYSQL, Dialect.TERADATA):
        raise wrong_in(
            value, f"{dialect} may take another day of a time than Spark.", hint="Cast it in a view."
        )


def _is_binary(kind: exp.DataType | None) -> bool:
    return isinstance(kind, exp.DataType) and kind.is_type("binary", "varbinary")


def _is_type(kind: exp.DataType | None, name: str) -> bool:
    return isinstance(kind, exp.DataType) and kind.is_type(name)


def rounded(value: exp.Expr, source: Family, dialect: Dialect) -> exp.Expr:
    """A number as it becomes a whole one."""
    require_exact(value, 0)
    if dialect in (Dialect.TSQL, Dialect.TERADATA):
        return value  # cut off, as Spark does
    if source is Family.DECIMAL:
        return value if scale_of(value) == 0 else exp.Round(this=value.copy())
    return exp.Anonymous(this="RINT", expressions=[value.copy()])


def stored_exactly(value: exp.Expr, kind: exp.DataType, dialect: Dialect) -> exp.Expr:
    """A decimal as it becomes one with as many digits as its type says: halves are rounded up, in Teradata to even
    digits."""
    scale = scale_of_type(kind)
    require_exact(value, scale)
    if dialect is not Dialect.TERADATA or scale_of(value) <= scale:
        return value
    return to_even(value, scale)


def _require_one_form(value: exp.Expr, source: Family, dialect: Dialect) -> None:
    """Raise `UsageError` for what is written into a text in another form than Spark's."""
    other_form = source in (Family.FLOAT, Family.TIME)
    hint = "Cast it to text in a view."
    if source is Family.BOOLEAN and dialect is not Dialect.POSTGRES:
        other_form, hint = True, "Write CASE WHEN ... THEN '1' ELSE '0' END."
    if source is Family.INTEGER and dialect is Dialect.TERADATA:
        other_form, hint = True, "Write CAST(... AS VARCHAR(20)): else teradata puts blanks before it."
    if source is Family.DECIMAL:
        kind = value.type
        fixed = isinstance(value, exp.Literal) or (isinstance(kind, exp.DataType) and is_as_shown(kind))
        if dialect is Dialect.TERADATA or not fixed:
            other_form = True
            hint = (
                hint
                if dialect is Dialect.TERADATA
                else "Say how many digits it has: CAST(... AS DECIMAL(10, 2))."
            )
    if other_form:
        raise wrong_in(value, "It would be written into text in another form.", hint=hint)
