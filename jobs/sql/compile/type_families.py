"""Kinds of types that dialects treat alike, and the kind of an expression. Pure."""

from enum import StrEnum
from typing import Final

from sqlglot import exp

__all__ = [
    "INTEGER_BITS",
    "MOST_DIGITS",
    "NUMBERS",
    "Family",
    "decimal_of",
    "family_of",
    "family_of_type",
    "scale_of",
    "scale_of_type",
    "typed",
    "whole_digits_of_type",
]


class Family(StrEnum):
    """Kinds of types that dialects treat alike."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "floating-point"
    TEXT = "text"
    BOOLEAN = "boolean"
    TIME = "date or time"
    NULL = "NULL"
    OTHER = "other"


NUMBERS: Final = frozenset({Family.INTEGER, Family.DECIMAL, Family.FLOAT, Family.NULL})
_INTEGERS: Final = frozenset(exp.DataType.INTEGER_TYPES)
_TIMES: Final = frozenset(
    {
        exp.DataType.Type.DATE,
        exp.DataType.Type.TIMESTAMP,
        exp.DataType.Type.TIMESTAMPNTZ,
        exp.DataType.Type.TIMESTAMPLTZ,
        exp.DataType.Type.TIMESTAMPTZ,
    }
)
MOST_DIGITS: Final = 38
_NAMES: Final = {
    Family.INTEGER: "bigint",
    Family.FLOAT: "double",
    Family.TEXT: "string",
    Family.BOOLEAN: "boolean",
    Family.TIME: "timestamp",
    Family.NULL: "null",
}
_FLOATS: Final = frozenset({exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE})
_COUNTS: Final = (exp.IntDiv, exp.Count, exp.Length, exp.RowNumber, exp.Rank, exp.DenseRank)
_AS_THEIRS: Final = (
    exp.Alias, exp.Neg, exp.Abs, exp.Max, exp.Min, exp.Window, exp.Lag, exp.Lead, exp.FirstValue,
    exp.LastValue, exp.Trim, exp.Round,
)  # fmt: skip
"""What has the type of its argument."""
INTEGER_BITS: Final = {exp.DType.TINYINT: 8, exp.DType.SMALLINT: 16, exp.DType.INT: 32, exp.DType.BIGINT: 64}
_DIGITS: Final = {exp.DType.TINYINT: 3, exp.DType.SMALLINT: 5, exp.DType.INT: 10, exp.DType.BIGINT: 20}
"""How many digits Spark gives a whole number that becomes a decimal."""


def family_of(node: exp.Expr | None) -> Family:
    """The kind of type that an expression has."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return Family.INTEGER if node.is_int else Family.FLOAT if "e" in node.name.lower() else Family.DECIMAL
    if isinstance(node, exp.Subquery | exp.Paren):
        inner = node.this
        return family_of(inner.expressions[0] if isinstance(inner, exp.Select) else inner)
    if isinstance(node, exp.Cast):
        return family_of_type(node.args["to"])
    if isinstance(node, exp.Predicate | exp.Connector | exp.Not):
        return Family.BOOLEAN
    if isinstance(node, _COUNTS):
        return Family.INTEGER
    if isinstance(node, exp.Concat | exp.DPipe | exp.Left):
        return Family.TEXT
    if isinstance(node, exp.Sum) and family_of_type(node.type) is not Family.OTHER:
        return family_of_type(node.type)  # some dialects sum up to another type
    if isinstance(node, (*_AS_THEIRS, exp.Sum)):
        return family_of(node.this)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        return _joint(family_of(node.this), family_of(node.expression))
    if isinstance(node, exp.Coalesce):
        return _of_all([node.this, *node.expressions])
    if isinstance(node, exp.Case):
        return _of_all([*(one.args["true"] for one in node.args["ifs"]), node.args.get("default")])
    if isinstance(node, exp.Nullif) and family_of_type(node.type) is Family.OTHER:
        return family_of(node.this)  # made here, of what a dialect has another name for
    return family_of_type(node.type if node is not None else None)


def family_of_type(kind: exp.DataType | None) -> Family:
    """The kind of a type, `OTHER` where it is not known."""
    if kind is None:
        return Family.OTHER
    found = kind.this
    if found in _INTEGERS:
        return Family.INTEGER
    if found in (exp.DataType.Type.DECIMAL, exp.DataType.Type.BIGDECIMAL):
        return Family.DECIMAL
    if found in _FLOATS:
        return Family.FLOAT
    if found in exp.DataType.TEXT_TYPES:
        return Family.TEXT
    if found is exp.DataType.Type.BOOLEAN:
        return Family.BOOLEAN
    if found in _TIMES:
        return Family.TIME
    return Family.NULL if found is exp.DataType.Type.NULL else Family.OTHER


def scale_of(node: exp.Expr) -> int:
    """How many digits a decimal may have behind its point, at most."""
    if isinstance(node, exp.Neg | exp.Paren):
        return scale_of(node.this)
    if isinstance(node, exp.Literal):
        return len(node.name.partition(".")[2])
    return scale_of_type(node.type) if isinstance(node.type, exp.DataType) else MOST_DIGITS


def scale_of_type(kind: exp.DataType) -> int:
    """How many digits numbers of a type have behind their point; the most that there can be where it is not known."""
    if family_of_type(kind) is Family.DECIMAL:
        digits = kind.expressions
        return int(digits[1].name) if len(digits) > 1 else 0 if digits else MOST_DIGITS
    return 0 if family_of_type(kind) in (Family.INTEGER, Family.NULL) else MOST_DIGITS


def whole_digits_of_type(kind: exp.DataType) -> int:
    """How many digits exact numbers of a type may have before their point; the most there can be if it is not known."""
    match family_of_type(kind):
        case Family.DECIMAL if kind.expressions:
            return int(kind.expressions[0].name) - scale_of_type(kind)
        case Family.INTEGER:
            return _DIGITS.get(kind.this, MOST_DIGITS)
        case Family.NULL:
            return 0
        case _:
            return MOST_DIGITS


def decimal_of(digits: int, scale: int) -> exp.DataType:
    """A DECIMAL that may stand in a statement: what sqlglot builds of a text has places in that text."""
    both = [exp.DataTypeParam(this=exp.Literal.number(one)) for one in (digits, scale)]
    return exp.DataType(this=exp.DType.DECIMAL, expressions=both)


def typed(node: exp.Expr) -> exp.DataType:
    """A type of the kind that an expression has, its own where that is known."""
    family = family_of(node)
    if isinstance(node.type, exp.DataType) and family_of_type(node.type) is family:
        return node.type.copy()
    if family is Family.DECIMAL:
        return exp.DataType.build(f"DECIMAL({MOST_DIGITS}, {scale_of(node)})", dialect="spark")
    return exp.DataType.build(_NAMES.get(family, "unknown"), dialect="spark")


def _joint(one: Family, other: Family) -> Family:
    for kind in (Family.OTHER, Family.FLOAT, Family.DECIMAL, Family.INTEGER):
        if kind in (one, other):
            return kind
    return one


def _of_all(nodes: list[exp.Expr | None]) -> Family:
    kinds = {family_of(node) for node in nodes if node is not None} - {Family.NULL}
    if len(kinds) == 1:
        return kinds.pop()
    if kinds and kinds <= NUMBERS:
        return Family.FLOAT if Family.FLOAT in kinds else Family.DECIMAL
    return Family.OTHER if kinds else Family.NULL
