"""What an expression of another dialect means in Spark's SQL: the same, the same said otherwise, or an error. Pure.

Only what is known to mean the same passes; it is better to ask for other words than to compute something else.
"""

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.annotation import loses_digits
from lakewarden.jobs.sql.compile.grouping import group_joins
from lakewarden.jobs.sql.compile.meaning.arithmetic import arithmetic, counted, division, mean, summed
from lakewarden.jobs.sql.compile.meaning.averages import refuse_own_digits, refuse_quotient, require_exact
from lakewarden.jobs.sql.compile.meaning.casts import cast_as_there, day_by_format
from lakewarden.jobs.sql.compile.meaning.comparisons import (
    FEWER_DIGITS,
    is_real,
    note_zones,
    refuse_mixed,
)
from lakewarden.jobs.sql.compile.meaning.dates import DATES, date_in_spark
from lakewarden.jobs.sql.compile.meaning.first_type import as_first
from lakewarden.jobs.sql.compile.meaning.functions import FUNCTIONS, Notes, function_in_spark
from lakewarden.jobs.sql.compile.meaning.integers import totalled, unfolded
from lakewarden.jobs.sql.compile.meaning.limits import require_plain_limits
from lakewarden.jobs.sql.compile.meaning.row_comparisons import with_columns
from lakewarden.jobs.sql.compile.meaning.storing import SPARKS_WORDS
from lakewarden.jobs.sql.compile.meaning.texts import (
    is_padded,
    note_texts,
    stripped,
    unpadded,
    was_padded,
)
from lakewarden.jobs.sql.compile.places import WRITTEN, wrong_in
from lakewarden.jobs.sql.compile.type_families import NUMBERS, Family, family_of
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["translated"]

_FRAME: Final = (
    exp.Select, exp.From, exp.Join, exp.Table, exp.TableAlias, exp.Alias, exp.Subquery, exp.Identifier,
    exp.Having, exp.Order, exp.With, exp.CTE, exp.Values, exp.Version, exp.Tuple, exp.Paren, exp.Star,
    exp.Null, exp.Boolean, exp.DataType, exp.DataTypeParam, exp.Var, exp.Qualify,
)  # fmt: skip
_ALIKE: Final = (exp.Exists, exp.CurrentDate)
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs)


def translated(query: exp.Select, dialect: Dialect) -> tuple[exp.Select, tuple[str, ...]]:
    """The query in Spark's words, and what somebody should know about it. Raises `UsageError` for what may mean
    something else."""
    require_plain_limits(query)
    if dialect is Dialect.SPARK:
        return query, ()
    notes: Notes = {}
    with_columns(query, dialect)
    for node in list(query.walk(bfs=False))[::-1]:  # what is inside comes first
        if isinstance(node, exp.Select) and node is not query:
            group_joins(node)
        found = _in_spark(node, dialect, notes)
        if found is not node:
            node.replace(found)
    return query, tuple(notes)


def _in_spark(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    if loses_digits(node.type):
        raise wrong_in(node, "Spark has no room for all of its digits, and rounds it.", hint=FEWER_DIGITS)
    for kinds, judge in _JUDGES.items():
        if isinstance(node, kinds):
            return judge(node, dialect, notes)
    if isinstance(node, (*_FRAME, *_ALIKE)):
        return node
    raise _unlike(node, dialect)


def _unlike(node: exp.Expr, dialect: Dialect) -> UsageError:
    return wrong_in(node, f"{WRITTEN} may mean something else in Spark than in {dialect}.", hint=SPARKS_WORDS)


def _function(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    found = function_in_spark(node, dialect, notes)
    if found is None:
        raise _unlike(node, dialect)
    return found


def _literal(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    if not node.is_string and "e" in node.name.lower() and dialect is Dialect.POSTGRES:
        raise wrong_in(node, f"{node.name} is exact in postgres, not in Spark.", hint="Write all its digits.")
    return node


def _column(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    if is_real(node) and dialect in (Dialect.MYSQL, Dialect.TERADATA):  # which compute with 64 bits alone
        widened = exp.cast(node.copy(), "double")
        widened.type = widened.to.copy()
        return widened
    return stripped(node, dialect)


def _comparison(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    right = node.expression
    if isinstance(right, exp.Any | exp.All):
        return _quantified(node, right, dialect, notes)
    refuse_mixed([node.this, right], node, dialect)
    note_zones([node.this, right], dialect, notes)
    ordered = not isinstance(node, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.NullSafeNEQ)
    note_texts([node.this, right], dialect, notes, ordered=ordered)
    unpadded(node, dialect)
    unfolded([node.this, node.expression])
    return node


def _connected(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    if isinstance(node, exp.Where) and isinstance(node.this.unnest(), exp.Null):
        node.set("this", exp.false())  # Spark takes no NULL for a condition
    for key in ("this",) if isinstance(node, exp.Not | exp.Where) else ("this", "expression"):
        node.set(key, _as_condition(node.args[key], dialect))
    return node


def _as_condition(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    """MySQL takes a number for a condition: whether it is another one than zero."""
    if dialect is Dialect.MYSQL and family_of(node) in NUMBERS - {Family.NULL}:
        found = exp.NEQ(this=exp.paren(node.copy(), copy=False), expression=exp.Literal.number(0))
        return exp.paren(found, copy=False)
    _require_condition(node)
    return node


def _require_condition(node: exp.Expr) -> None:
    if family_of(node) in (*NUMBERS - {Family.NULL}, Family.TEXT):
        raise wrong_in(
            node,
            f"Spark takes no {family_of(node)} for a condition.",
            hint="Compare it: <> 0, or <> ''.",
        )


def _is(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    """IS NULL asks of anything, IS TRUE of a condition."""
    if isinstance(node.expression, exp.Boolean):
        _require_condition(node.this)
    return node


def _quantified(node: exp.Expr, right: exp.Any | exp.All, dialect: Dialect, notes: Notes) -> exp.Expr:
    """= ANY and <> ALL are IN and NOT IN; the others are taken apart later (conditions.py)."""
    query = right.this if isinstance(right.this, exp.Subquery) else exp.Subquery(this=right.this)
    if not isinstance(query.this, exp.Query):
        raise wrong_in(node, "ANY and ALL take a query here.", hint="Write ANY (SELECT ...).")
    refuse_mixed([node.this, query], node, dialect)
    note_texts([node.this], dialect, notes, ordered=not isinstance(node, exp.EQ | exp.NEQ))
    unpadded(node, dialect)
    if isinstance(node, exp.EQ) and isinstance(right, exp.Any):
        return exp.In(this=node.this.copy(), query=query.copy())
    if isinstance(node, exp.NEQ) and isinstance(right, exp.All):
        return exp.Not(this=exp.In(this=node.this.copy(), query=query.copy()))
    return node


def _range(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    refuse_mixed([node.this, node.args["low"], node.args["high"]], node, dialect)
    note_texts([node.this], dialect, notes, ordered=True)
    unpadded(node, dialect)
    unfolded([node.this, node.args["low"], node.args["high"]])
    return node


def _in(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    query = node.args.get("query")
    if query is None and not node.expressions:
        raise wrong_in(node, "IN takes a list or a query here.", hint="Write IN (SELECT ...).")
    if not isinstance(node.this, exp.Tuple):
        others = [query] if query is not None else node.expressions
        refuse_mixed([node.this, *others], node, dialect)
    elif query is not None:
        for one, other in zip(node.this.expressions, query.unnest().selects, strict=False):
            refuse_mixed([one, other.unalias()], node, dialect)
    asked = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    note_texts(asked, dialect, notes, ordered=False)
    unpadded(node, dialect)
    if not isinstance(node.this, exp.Tuple):
        unfolded([node.this, *node.expressions])
    return node


def _joined_texts(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    kinds = {family_of(node.this), family_of(node.expression)}
    if dialect is Dialect.POSTGRES and Family.TEXT in kinds:
        for key in ("this", "expression"):  # a whole number has one form as text
            if family_of(node.args[key]) is Family.INTEGER:
                node.set(key, exp.cast(node.args[key].copy(), "string"))
        kinds -= {Family.INTEGER}
    if dialect not in (Dialect.POSTGRES, Dialect.TERADATA) or not kinds <= {Family.TEXT, Family.NULL}:
        raise wrong_in(node, "|| joins texts, and in postgres a text and a whole number.", hint=SPARKS_WORDS)
    return node


def _extreme_of(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    if dialect not in (Dialect.POSTGRES, Dialect.MYSQL):
        raise _unlike(node, dialect)
    parts = [node.this, *node.expressions]
    refuse_mixed(parts, node, dialect, compared=False)
    note_texts(parts, dialect, notes, ordered=True)
    if dialect is Dialect.POSTGRES:
        return node
    if {family_of(part) for part in parts} - NUMBERS - {Family.TIME}:
        raise _unlike(node, dialect)  # texts have an order of their own there
    # Of NULL and others MySQL makes NULL, Spark leaves it out.
    lacks = exp.or_(*(exp.Is(this=part.copy(), expression=exp.Null()) for part in parts), copy=False)
    found = exp.Case(ifs=[exp.If(this=lacks, true=exp.Null())], default=node.copy())
    found.type = node.type
    return found


def _like(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    pattern, kind = node.expression, family_of(node.this)
    reads_numbers = kind is Family.INTEGER and dialect in (Dialect.MYSQL, Dialect.TSQL)
    if kind not in (Family.TEXT, Family.NULL) and not reads_numbers:
        raise wrong_in(node, f"LIKE is for texts here, and this is {kind}.", hint="Cast it to text.")
    special = "\\[" if dialect is Dialect.TSQL else "\\"
    if not (isinstance(pattern, exp.Literal) and pattern.is_string) or not set(special).isdisjoint(
        pattern.name
    ):
        raise wrong_in(
            node,
            f"LIKE with such a pattern may match something else than in {dialect}.",
            hint=SPARKS_WORDS,
        )
    if (was_padded(node.this) and dialect is Dialect.POSTGRES) or is_padded(node.this):
        raise wrong_in(
            node, "LIKE counts the blanks at the end of a CHAR.", hint="Write RTRIM(column) LIKE ..."
        )
    note_texts([node.this], dialect, notes, ordered=False)
    return node


def _coalesced(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    if node.args.get("is_null") and dialect is Dialect.TSQL:
        second = as_first(node.this, node.expressions[0]) if node.expressions else None
        if second is None:
            raise wrong_in(
                node, "ISNULL takes the type of its first value, and rounds or cuts the second.",
                hint="Write COALESCE.",
            )  # fmt: skip
        node.set("expressions", [second])
        node.type = node.this.type
    refuse_mixed([node.this, *node.expressions], node, dialect, compared=False)
    return node


def _case(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    ifs = node.args["ifs"]
    values = [*(one.args["true"] for one in ifs), node.args.get("default")]
    refuse_mixed([one for one in values if one is not None], node, dialect, compared=False)
    if node.this is not None:
        refuse_mixed([node.this, *(one.this for one in ifs)], node, dialect)
        note_texts([node.this], dialect, notes, ordered=False)
        unpadded(node, dialect)
        unfolded([node.this, *(one.this for one in ifs)])
    return node


def _if(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    if not isinstance(node.parent, exp.Case) or node.parent.this is None:
        node.set("this", _as_condition(node.this, dialect))
    if not isinstance(node.parent, exp.Case):
        values = [node.args["true"], node.args.get("false")]
        refuse_mixed([one for one in values if one is not None], node, dialect, compared=False)
    return node


def _nullif(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    parts = [node.this, node.expression]
    if any(is_padded(part) for part in parts):
        raise wrong_in(node, "NULLIF of a CHAR counts blanks in Spark.", hint="Write RTRIM(column).")
    refuse_mixed(parts, node, dialect)
    note_texts(parts, dialect, notes, ordered=False)
    return node


def _told_apart(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    """What leaves one of several values that are alike."""
    if isinstance(node, exp.SetOperation):
        parts = node.selects if node.args.get("distinct") or not isinstance(node, exp.Union) else []
    elif isinstance(node, exp.Distinct) and isinstance(node.parent, exp.Select):
        parts = node.parent.selects
    else:
        parts = node.expressions
    refuse_own_digits(parts)
    note_texts(parts, dialect, notes, ordered=False)
    return node


def _windowed(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    parts = node.args.get("partition_by") or ()
    note_texts(parts, dialect, notes, ordered=False)
    for part in parts:
        refuse_quotient(part)
    return totalled(_function(node, dialect, notes), dialect)


def _limit(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    if node.parent is None or node.parent.args.get("order") is None:
        raise wrong_in(node, "LIMIT without ORDER BY takes rows by chance.", hint="Write ORDER BY.")
    return node


def _order(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    refuse_quotient(node.this)
    note_texts([node.this], dialect, notes, ordered=True)
    return node


def _rounded(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    digits = node.args.get("decimals")
    require_exact(node.this, int(digits.name) if digits is not None and digits.name.isdigit() else 0)
    return _function(node, dialect, notes)


def _selected(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    """PostgreSQL's EXISTS (SELECT FROM ...) selects nothing, which Spark cannot read."""
    if not node.expressions:
        node.set("expressions", [exp.Literal.number(1)])
    return node


def _extreme(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    if family_of(node.this) is Family.BOOLEAN and dialect in (Dialect.POSTGRES, Dialect.TSQL):
        raise wrong_in(
            node, f"{dialect} takes no boolean here.", hint="Write MAX(CASE WHEN ... THEN 1 ELSE 0 END)."
        )
    note_texts([node.this], dialect, notes, ordered=True)
    return node


_JUDGES: Final[Mapping[tuple[type[exp.Expr], ...], Callable[[exp.Expr, Dialect, Notes], exp.Expr]]] = {
    (exp.Literal,): _literal,
    (exp.Column,): _column,
    _COMPARISONS: _comparison,
    (exp.And, exp.Or, exp.Not, exp.Where): _connected,
    (exp.Is,): _is,
    (exp.Select,): _selected,
    (exp.Any, exp.All): lambda node, *_: node,  # judged with its comparison
    (exp.Between,): _range,
    (exp.In,): _in,
    (exp.Sum,): summed,
    (exp.Count,): counted,
    (exp.Avg,): mean,
    _ARITHMETIC: arithmetic,
    (exp.Div, exp.IntDiv, exp.Mod): division,
    (exp.Cast,): cast_as_there,
    (exp.StrToDate,): day_by_format,
    (exp.DPipe,): _joined_texts,
    (exp.Greatest, exp.Least): _extreme_of,
    (exp.Like,): _like,
    (exp.Coalesce,): _coalesced,
    (exp.Case,): _case,
    (exp.If,): _if,
    (exp.Nullif,): _nullif,
    (exp.Group, exp.Distinct, exp.SetOperation): _told_apart,
    (exp.Window,): _windowed,
    (exp.Limit,): _limit,
    (exp.Ordered,): _order,
    (exp.Min, exp.Max): _extreme,
    (exp.Round, exp.Floor, exp.Ceil): _rounded,
    DATES: lambda node, dialect, notes: date_in_spark(node, dialect),
    FUNCTIONS: _function,
}
