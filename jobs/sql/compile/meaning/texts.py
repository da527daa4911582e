"""Texts that stand for other values, texts of fixed length, and what texts are compared by. Pure.

A text that becomes a date or a number is taken only in the form that every database reads alike. A column of type CHAR
is padded with blanks in Spark: PostgreSQL and MySQL take them away wherever it is read, others where it is compared.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.meaning.functions import Notes
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.type_families import Family, family_of, family_of_type, scale_of_type
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = [
    "STRIPPING",
    "is_padded",
    "note_texts",
    "require_padding_alike",
    "require_readable",
    "stripped",
    "unpadded",
    "was_padded",
]

STRIPPING: Final = frozenset({Dialect.POSTGRES, Dialect.MYSQL})
"""What reads a CHAR without the blanks at its end."""
_PADDED: Final = "padded"
_PADDED_TYPES: Final = (exp.DataType.Type.CHAR, exp.DataType.Type.NCHAR)
_DAY: Final = r"(?!0000)\d{4}-\d{1,2}-\d{1,2}"
_DATE: Final = re.compile(_DAY)
_TIME: Final = re.compile(rf"{_DAY}([ T]\d{{1,2}}:\d{{2}}(:\d{{2}}(\.\d{{1,6}})?)?)?")
_WHOLE: Final = re.compile(r"\s*[+-]?\d+\s*")
_NUMBER: Final = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")
_TRUTHS: Final[Mapping[Dialect, frozenset[str]]] = {
    Dialect.POSTGRES: frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"}),
    Dialect.TSQL: frozenset({"true", "1", "false", "0"}),
}
"""The texts that a database and Spark take for the same truth. For MySQL 'true' is zero."""
_EXACT_DIGITS: Final = 15
"""So many digits of a decimal a floating-point number keeps, which Spark makes of a text beside a decimal."""


def require_readable(
    literal: exp.Expr, kind: exp.DataType, dialect: Dialect, *, compared: bool = False
) -> None:
    """Raise `UsageError` for a text that a database would read as another value of this type than Spark, or may."""
    said = literal.name
    match family_of_type(kind):
        case Family.TIME if kind.this is exp.DType.DATE:
            if not _DATE.fullmatch(said):
                raise wrong_in(
                    literal, f"'{said}' may be another day in Spark than in {dialect}.",
                    hint="Write a day as '2024-01-05', and cast the other side if its time of day matters.",
                )  # fmt: skip
        case Family.TIME:
            if not _TIME.fullmatch(said):
                raise wrong_in(
                    literal, f"'{said}' may be another time in Spark than in {dialect}.",
                    hint="Write a time as '2024-01-05 10:00:00'.",
                )  # fmt: skip
        case Family.INTEGER if not _WHOLE.fullmatch(said):
            raise _no_number(literal, said, dialect)
        case Family.FLOAT if not _NUMBER.fullmatch(said):
            raise _no_number(literal, said, dialect)
        case Family.DECIMAL:
            if not _NUMBER.fullmatch(said) or (compared and not _compares_exactly(said, kind, dialect)):
                raise _no_number(literal, said, dialect)
        case Family.BOOLEAN if said.strip().lower() not in _TRUTHS.get(dialect, ()):
            raise wrong_in(
                literal, f"'{said}' may be another truth in Spark than in {dialect}.",
                hint="Write TRUE or FALSE without quotes; or 1 = 1, where there are no such words.",
            )  # fmt: skip
        case Family.OTHER if kind.is_type("binary", "varbinary") and dialect is not Dialect.MYSQL:
            raise wrong_in(
                literal, f"A text may be other bytes in Spark than in {dialect}.",
                hint="Write the bytes in Spark's SQL: X'00FF'.",
            )  # fmt: skip
        case _:
            pass


def _no_number(literal: exp.Expr, said: str, dialect: Dialect) -> Exception:
    return wrong_in(
        literal, f"'{said}' may be another number in Spark than in {dialect}.",
        hint="Write the number without quotes.",
    )  # fmt: skip


def _compares_exactly(said: str, kind: exp.DataType, dialect: Dialect) -> bool:
    digits = sum(one.isdigit() for one in said)
    of_type = int(kind.expressions[0].name) if kind.expressions else _EXACT_DIGITS + 1
    longer = len(said.partition(".")[2].rstrip()) > scale_of_type(kind)
    rounds = dialect in (Dialect.TSQL, Dialect.TERADATA)  # to the other side's digits
    return max(digits, of_type) <= _EXACT_DIGITS and "e" not in said.lower() and not (longer and rounds)


def is_padded(node: exp.Expr | None) -> bool:
    """Whether its value has blanks at its end, up to the length of its type."""
    return (
        isinstance(node, exp.Expr) and isinstance(node.type, exp.DataType) and node.type.this in _PADDED_TYPES
    )


def was_padded(node: exp.Expr | None) -> bool:
    """Whether it is a column of type CHAR that `stripped` took the blanks from."""
    return isinstance(node, exp.Trim) and bool(node.meta.get(_PADDED))


def stripped(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """A column as the dialect reads it wherever it stands."""
    if dialect not in STRIPPING or not is_padded(node):
        return node
    found = _trimmed(node)
    found.meta[_PADDED] = True
    return found


def unpadded(node: exp.Expr, dialect: Dialect) -> None:
    """Take the blanks at the end from the texts of fixed length that `node` compares: nobody counts them there."""
    if dialect in STRIPPING:
        return  # it was done where the columns are read
    for key in ("this", "expression", "low", "high"):
        part = node.args.get(key)
        if isinstance(part, exp.Expr) and is_padded(part):
            node.set(key, _trimmed(part))
    if isinstance(node, exp.In | exp.Case):
        for one in node.args.get("ifs") or ():
            if is_padded(one.this):
                one.set("this", _trimmed(one.this))
        node.set("expressions", [_trimmed(one) if is_padded(one) else one for one in node.expressions])


def require_padding_alike(parts: Sequence[exp.Expr], node: exp.Expr, dialect: Dialect) -> None:
    """Raise `UsageError` where texts of fixed length meet others whose blanks at the end may count, or not."""
    padded = [part for part in parts if is_padded(part) or was_padded(part)]
    blanks = [
        part for part in parts if isinstance(part, exp.Literal) and part.is_string and part.name.endswith(" ")
    ]
    if padded and blanks:
        raise wrong_in(
            blanks[0], f"{dialect} may not count the blanks at the end of this text here.",
            hint="Leave them out.",
        )  # fmt: skip
    queries = [part.unnest() for part in parts if isinstance(part, exp.Subquery)]
    if dialect not in STRIPPING and any(
        isinstance(query, exp.Query) and is_padded(query.selects[0]) for query in queries
    ):
        raise wrong_in(
            node, f"{dialect} does not count the blanks at the end of a CHAR here, Spark does.",
            hint="Write RTRIM(column) in the query.",
        )  # fmt: skip


def _trimmed(node: exp.Expr) -> exp.Trim:
    found = exp.Trim(this=node.copy(), position="TRAILING")
    found.type = exp.DataType.build("string", dialect="spark")
    return found


def note_texts(nodes: Iterable[exp.Expr | None], dialect: Dialect, notes: Notes, *, ordered: bool) -> None:
    """Say what texts are told apart, or ordered, by; a text that is written may stand for something else."""
    asked = [node for node in nodes if node is not None]
    texts = [node for node in asked if family_of(node) is Family.TEXT]
    if not texts or (len(texts) < len(asked) and all(isinstance(node, exp.Literal) for node in texts)):
        return  # a text that is written stands for what it meets
    if dialect is not Dialect.POSTGRES:
        notes[f"Texts are compared exactly, where {dialect} may ignore case and blanks at the end."] = None
    elif ordered:
        notes['Texts are ordered by their bytes, as postgres does with COLLATE "C".'] = None
