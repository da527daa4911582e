"""Values that meet: compared with one another, or one in the place of another. Pure.

Spark makes one type of them; where that is another one than the dialect's, or has no room for what they are, they are
refused.
"""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.annotation import have_room
from lakewarden.jobs.sql.compile.meaning.averages import FEW, has_own_digits, refuse_own_digits, require_exact
from lakewarden.jobs.sql.compile.meaning.functions import Notes
from lakewarden.jobs.sql.compile.meaning.storing import SPARKS_WORDS
from lakewarden.jobs.sql.compile.meaning.texts import (
    STRIPPING,
    is_padded,
    require_padding_alike,
    require_readable,
)
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.type_families import NUMBERS, Family, family_of, scale_of
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["FEWER_DIGITS", "is_real", "note_zones", "refuse_mixed", "refuse_real_beside_others"]

_ZONED: Final = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPTZ)
FEWER_DIGITS: Final = f"Cast one side to a DECIMAL with fewer digits. {SPARKS_WORDS}"


def refuse_mixed(parts: list[exp.Expr], node: exp.Expr, dialect: Dialect, *, compared: bool = True) -> None:
    """Raise `UsageError` for values that meet as another type in Spark: compared, or one instead of the other."""
    literals = [part for part in parts if isinstance(part, exp.Literal) and part.is_string]
    others = [part for part in parts if part not in literals]
    kinds = {family_of(part) for part in others} - {Family.NULL, Family.OTHER}
    if len(kinds) > 1 and not kinds <= NUMBERS:
        raise wrong_in(
            node,
            f"{' and '.join(sorted(kinds))} are compared by other rules in Spark than in {dialect}.",
            hint="Cast one side.",
        )  # fmt: skip
    if literals and kinds and kinds != {Family.TEXT}:
        _require_readable(literals, others, kinds, dialect, compared=compared)
    if not have_room(parts):
        raise wrong_in(node, "Spark has no room for all of their digits, and rounds them.", hint=FEWER_DIGITS)
    reals = [is_real(part) for part in others if family_of(part) is not Family.NULL]
    if not compared and dialect is Dialect.POSTGRES and any(reals) and not all(reals):
        raise wrong_in(
            node, "REAL beside another number is another one in Spark than in postgres.",
            hint="Cast it to DOUBLE PRECISION.",
        )  # fmt: skip
    refuse_real_beside_others(parts, node, dialect)
    means = [part for part in parts if has_own_digits(part)]
    if len(means) > 1 or (means and any(_has_many_digits(part) for part in parts if part not in means)):
        refuse_own_digits(means)
    for part in means:
        require_exact(part, max((scale_of(other) for other in parts if other is not part), default=0))
    if dialect is Dialect.TERADATA and compared and len({_has_time(part) for part in others} - {None}) > 1:
        raise wrong_in(
            node, "teradata may compare the days alone of a date and a time.", hint="Cast one side."
        )
    lengths = {str(part.type) for part in others if is_padded(part)}
    if not compared and len(lengths) > 1 and dialect not in STRIPPING:
        raise wrong_in(node, f"{dialect} pads the shorter text.", hint="Write RTRIM(column).")
    require_padding_alike(parts, node, dialect)


def note_zones(parts: Sequence[exp.Expr], dialect: Dialect, notes: Notes) -> None:
    """Say what a time without a zone is taken for where it meets a moment."""
    zoned = {
        part.type.this in _ZONED for part in parts if _has_time(part) and isinstance(part.type, exp.DataType)
    }
    if len(zoned) > 1:
        notes[
            "Of a local time that is there twice, when clocks go back, Spark takes the first, "
            f"{dialect} perhaps the second."
        ] = None


def _require_readable(
    literals: Sequence[exp.Expr], others: Sequence[exp.Expr], kinds: set[Family], dialect: Dialect,
    *, compared: bool
) -> None:  # fmt: skip
    for literal in literals:
        if not compared and not (dialect is Dialect.POSTGRES and kinds == {Family.TIME}):
            raise wrong_in(
                literal, f"A text and {' and '.join(sorted(kinds))} are not of one type in Spark.",
                hint="Write the value without quotes, or cast it.",
            )  # fmt: skip
        for other in others:
            if isinstance(other.type, exp.DataType):
                require_readable(literal, other.type, dialect, compared=compared)


def refuse_real_beside_others(parts: Sequence[exp.Expr], node: exp.Expr, dialect: Dialect) -> None:
    """Raise `UsageError` where SQL Server computes and compares with 32 bits, Spark with 64."""
    exact = any(family_of(part) in (Family.INTEGER, Family.DECIMAL) for part in parts)
    if dialect is Dialect.TSQL and exact and any(map(is_real, parts)):
        raise wrong_in(
            node,
            "tsql makes a REAL of the number beside one, Spark a double.",
            hint="Cast it to FLOAT.",
        )


def _has_many_digits(part: exp.Expr) -> bool:
    return family_of(part) is not Family.NULL and scale_of(part) > FEW


def _has_time(part: exp.Expr) -> bool | None:
    """Whether there is a time of day in it; None for what is neither a date nor a time."""
    if family_of(part) is not Family.TIME or not isinstance(part.type, exp.DataType):
        return None
    return not part.type.is_type("date")


def is_real(node: exp.Expr) -> bool:
    """Whether it is a floating-point number of 32 bits."""
    return isinstance(node.type, exp.DataType) and node.type.this is exp.DType.FLOAT
