"""What an expression of another dialect means in Spark's SQL: the same, the same said otherwise, or an error. Pure.

Only what is known to mean the same passes; it is better to ask for other words than to compute something else.
"""

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.change import EXACT
from lakewarden.jobs.sql.compile.families import (
    NUMBERS,
    Family,
    family_of,
    family_of_type,
    scale_of,
    scale_of_type,
)
from lakewarden.jobs.sql.compile.grouping import group_joins
from lakewarden.jobs.sql.compile.meaning.functions import FUNCTIONS, Notes, cast_to_text, function_in_spark
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.values import DIALECT_KEY, Dialect

__all__ = ["assigned", "translated"]

_SPARKS_WORDS: Final = (
    f"Write it in Spark's SQL after SET {DIALECT_KEY} = spark, or make a view that computes it."
)


_FRAME: Final = (
    exp.Select, exp.From, exp.Join, exp.Table, exp.TableAlias, exp.Alias, exp.Subquery, exp.Identifier,
    exp.Column, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Distinct, exp.SetOperation, exp.With,
    exp.CTE, exp.Values, exp.Version, exp.Tuple, exp.Paren, exp.Star, exp.Null, exp.Boolean, exp.DataType, exp.DataTypeParam,
    exp.Var, exp.Qualify,
)  # fmt: skip
_ALIKE: Final = (
    exp.Is, exp.Exists, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Count, exp.Min, exp.Max,
    exp.CurrentDate, exp.CurrentTimestamp,
)  # fmt: skip
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Sum)
_OF_POSTGRES: Final = (exp.Lower, exp.Upper, exp.Greatest, exp.Least)


def translated(query: exp.Select, dialect: Dialect, text: str) -> tuple[exp.Select, tuple[str, ...]]:
    """The query in Spark's words, and what somebody should know about it. Raises `UsageError` for what may mean
    something else."""
    if dialect is Dialect.SPARK:
        return query, ()
    notes: Notes = {}
    for node in list(query.walk(bfs=False))[::-1]:  # what is inside comes first
        if isinstance(node, exp.Select) and node is not query:
            group_joins(node)
        found = _in_spark(node, dialect, text, notes)
        if found is not node:
            node.replace(found)
    return query, tuple(notes)


def assigned(value: exp.Expr, kind: exp.DataType, dialect: Dialect, text: str) -> exp.Expr:
    """A value as it is stored in a column of this type: rounded where the dialect rounds and Spark cuts off."""
    if dialect is Dialect.SPARK:
        return value
    source, target = family_of(value), family_of_type(kind)
    if isinstance(value, exp.Literal) and value.is_string and target is not Family.TEXT:
        return exp.Cast(this=value, to=kind.copy())
    match source, target:
        case (Family.FLOAT, Family.TEXT) | (Family.TIME, Family.TEXT):
            raise wrong_in(
                text,
                value,
                "It would be written into text in another form.",
                hint="Cast it to text in a view.",
            )
        case (Family.DECIMAL | Family.FLOAT, Family.INTEGER):
            return _rounded(value, source, dialect, text)
        case (Family.DECIMAL | Family.FLOAT, Family.DECIMAL) if dialect in (Dialect.MYSQL, Dialect.TERADATA):
            longer = dialect is Dialect.TERADATA and scale_of(value) > scale_of_type(kind)
            if source is Family.FLOAT or longer:
                raise wrong_in(
                    text, value, f"{dialect} rounds it in another way than Spark.", hint=_SPARKS_WORDS
                )
        case _:
            pass
    return value


def _in_spark(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    for kinds, judge in _JUDGES.items():
        if isinstance(node, kinds):
            return judge(node, dialect, text, notes)
    if isinstance(node, (*_FRAME, *_ALIKE)):
        return node
    raise _unlike(node, dialect, text)


def _unlike(node: exp.Expr, dialect: Dialect, text: str) -> UsageError:
    return wrong_in(
        text, node, f"{_name(node)} may mean something else in Spark than in {dialect}.", hint=_SPARKS_WORDS
    )


def _function(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    found = function_in_spark(node, dialect, notes)
    if found is None:
        raise _unlike(node, dialect, text)
    return found


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        return node.sql_name()
    return (node.name if isinstance(node, exp.Anonymous) else node.key).upper()


def _literal(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    if not node.is_string and "e" in node.name.lower() and dialect is Dialect.POSTGRES:
        raise wrong_in(
            text, node, f"{node.name} is exact in postgres, not in Spark.", hint="Write all its digits."
        )
    return node


def _comparison(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    right = node.expression
    if isinstance(right, exp.Any | exp.All):
        return _quantified(node, right, dialect, text, notes)
    _refuse_mixed([node.this, right], node, dialect, text)
    ordered = not isinstance(node, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.NullSafeNEQ)
    _note_texts(node.this, dialect, notes, ordered=ordered)
    return node


def _connected(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    parts = [node.this] if isinstance(node, exp.Not | exp.Where) else [node.this, node.expression]
    odd = next((part for part in parts if family_of(part) in (*NUMBERS - {Family.NULL}, Family.TEXT)), None)
    if odd is not None:
        raise wrong_in(
            text, odd, f"Spark takes no {family_of(odd)} for a condition.", hint="Compare it: <> 0, or <> ''."
        )
    return node


def _quantified(
    node: exp.Expr, right: exp.Any | exp.All, dialect: Dialect, text: str, notes: Notes
) -> exp.Expr:
    """= ANY and <> ALL are IN and NOT IN; the others are taken apart later (conditions.py)."""
    query = right.this if isinstance(right.this, exp.Subquery) else exp.Subquery(this=right.this)
    if not isinstance(query.this, exp.Query):
        raise wrong_in(text, node, "ANY and ALL take a query here.", hint="Write ANY (SELECT ...).")
    _refuse_mixed([node.this, query], node, dialect, text)
    if isinstance(node, exp.EQ) and isinstance(right, exp.Any):
        return exp.In(this=node.this.copy(), query=query.copy())
    if isinstance(node, exp.NEQ) and isinstance(right, exp.All):
        return exp.Not(this=exp.In(this=node.this.copy(), query=query.copy()))
    _note_texts(node.this, dialect, notes, ordered=not isinstance(node, exp.EQ | exp.NEQ))
    return node


def _range(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    _refuse_mixed([node.this, node.args["low"], node.args["high"]], node, dialect, text)
    _note_texts(node.this, dialect, notes, ordered=True)
    return node


def _in(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    query = node.args.get("query")
    if query is None and not node.expressions:
        raise wrong_in(text, node, "IN takes a list or a query here.", hint="Write IN (SELECT ...).")
    if not isinstance(node.this, exp.Tuple):
        others = [query] if query is not None else node.expressions
        _refuse_mixed([node.this, *others], node, dialect, text)
    _note_texts(node.this, dialect, notes, ordered=False)
    return node


def _arithmetic(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    parts = [node.this] if isinstance(node, exp.Unary | exp.Func) else [node.this, node.expression]
    odd = next((part for part in parts if family_of(part) not in NUMBERS), None)
    if dialect is Dialect.TSQL and isinstance(node, exp.Add) and _are_texts(parts):
        return exp.DPipe(this=node.this.copy(), expression=node.expression.copy())
    if odd is not None:
        raise wrong_in(
            text, odd, "Only numbers are added, subtracted and multiplied here.", hint=_SPARKS_WORDS
        )
    return node


def _are_texts(parts: list[exp.Expr]) -> bool:
    kinds = {family_of(part) for part in parts}
    return Family.TEXT in kinds and kinds <= {Family.TEXT, Family.NULL}


def _division(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    _arithmetic(node, dialect, text, notes)
    kinds = {family_of(node.this), family_of(node.expression)} - {Family.NULL}
    if dialect is Dialect.MYSQL:
        raise wrong_in(text, node, "mysql divides by zero to NULL, Spark does not.", hint=_SPARKS_WORDS)
    if kinds <= {Family.INTEGER} and not isinstance(node, exp.Mod):
        return exp.IntDiv(this=node.this.copy(), expression=node.expression.copy())
    if isinstance(node, exp.Div) and Family.FLOAT in kinds:
        return node
    if isinstance(node, exp.Mod) and Family.FLOAT not in kinds:
        return node
    raise wrong_in(
        text, node, f"{dialect} gives such a quotient another number of digits than Spark.",
        hint="Cast one side to DOUBLE PRECISION.",
    )  # fmt: skip


def _cast(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    source, target = family_of(node.this), family_of_type(node.args["to"])
    is_text = isinstance(node.this, exp.Literal) and node.this.is_string
    if isinstance(node.this, exp.Literal) and EXACT in node.meta:
        return node.this
    match source, target:
        case _ if type(node) is not exp.Cast or node.args.get("format"):
            pass
        case (Family.DECIMAL | Family.FLOAT, Family.INTEGER):
            node.set("this", _rounded(node.this, source, dialect, text))
            return node
        case (Family.INTEGER | Family.NULL, Family.INTEGER | Family.DECIMAL | Family.FLOAT):
            return node
        case (Family.DECIMAL | Family.FLOAT, Family.FLOAT):
            return node
        case (Family.DECIMAL, Family.DECIMAL) if dialect in (Dialect.POSTGRES, Dialect.TSQL):
            return node
        case (Family.TEXT, Family.INTEGER | Family.TIME | Family.DECIMAL | Family.FLOAT) if is_text:
            return node
        case (Family.INTEGER | Family.TEXT | Family.NULL, Family.TEXT):
            cut = cast_to_text(node, source, dialect)
            if cut is not None:
                return cut
        case _:
            pass
    raise wrong_in(text, node, "This cast may give something else in Spark.", hint=_SPARKS_WORDS)


def _joined_texts(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    kinds = {family_of(node.this), family_of(node.expression)}
    if dialect not in (Dialect.POSTGRES, Dialect.TERADATA) or not kinds <= {Family.TEXT, Family.NULL}:
        raise wrong_in(text, node, "|| joins texts alone here.", hint=_SPARKS_WORDS)
    return node


def _of_postgres(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    if dialect is not Dialect.POSTGRES and not isinstance(node, exp.Lower | exp.Upper):
        raise _unlike(node, dialect, text)
    return node


def _like(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    pattern = node.expression
    special = "\\[" if dialect is Dialect.TSQL else "\\"
    if not (isinstance(pattern, exp.Literal) and pattern.is_string) or not set(special).isdisjoint(
        pattern.name
    ):
        raise wrong_in(
            text,
            node,
            f"LIKE with such a pattern may match something else than in {dialect}.",
            hint=_SPARKS_WORDS,
        )
    _note_texts(node.this, dialect, notes, ordered=False)
    return node


def _coalesced(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    parts = [node.this, *node.expressions]
    if node.args.get("is_null") and len({family_of(part) for part in parts} - {Family.NULL}) > 1:
        raise wrong_in(
            text, node, "ISNULL of different types takes that of the first.", hint="Write COALESCE."
        )
    _refuse_mixed(parts, node, dialect, text)
    return node


def _limit(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    if node.parent is None or node.parent.args.get("order") is None:
        raise wrong_in(text, node, "LIMIT without ORDER BY takes rows by chance.", hint="Write ORDER BY.")
    return node


def _order(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    _note_texts(node.this, dialect, notes, ordered=True)
    return node


def _extreme(node: exp.Expr, dialect: Dialect, text: str, notes: Notes) -> exp.Expr:
    _note_texts(node.this, dialect, notes, ordered=True)
    return node


_JUDGES: Final[Mapping[tuple[type[exp.Expr], ...], Callable[[exp.Expr, Dialect, str, Notes], exp.Expr]]] = {
    (exp.Literal,): _literal,
    _COMPARISONS: _comparison,
    (exp.And, exp.Or, exp.Not, exp.Where): _connected,
    (exp.Any, exp.All): lambda node, *_: node,  # judged with its comparison
    (exp.Between,): _range,
    (exp.In,): _in,
    _ARITHMETIC: _arithmetic,
    (exp.Div, exp.IntDiv, exp.Mod): _division,
    (exp.Cast,): _cast,
    (exp.DPipe,): _joined_texts,
    _OF_POSTGRES: _of_postgres,
    (exp.Like,): _like,
    (exp.Coalesce,): _coalesced,
    (exp.Limit,): _limit,
    (exp.Ordered,): _order,
    (exp.Min, exp.Max): _extreme,
    FUNCTIONS: _function,
}


def _rounded(value: exp.Expr, source: Family, dialect: Dialect, text: str) -> exp.Expr:
    if dialect in (Dialect.TSQL, Dialect.TERADATA):
        return value  # cut off, as Spark does
    if dialect is Dialect.POSTGRES:
        if source is Family.DECIMAL:
            return exp.Round(this=value.copy())
        return exp.Anonymous(this="RINT", expressions=[value.copy()])
    raise wrong_in(text, value, f"{dialect} rounds it, Spark cuts it off.", hint=_SPARKS_WORDS)


def _refuse_mixed(parts: list[exp.Expr], node: exp.Expr, dialect: Dialect, text: str) -> None:
    kinds = {family_of(part) for part in parts if not (isinstance(part, exp.Literal) and part.is_string)} - {
        Family.NULL,
        Family.OTHER,
    }
    if len(kinds) > 1 and not kinds <= NUMBERS:
        raise wrong_in(
            text, node, f"{' and '.join(sorted(kinds))} are compared by other rules in Spark than in {dialect}.",
            hint="Cast one side.",
        )  # fmt: skip


def _note_texts(node: exp.Expr, dialect: Dialect, notes: Notes, *, ordered: bool) -> None:
    if family_of(node) is not Family.TEXT:
        return
    if dialect is not Dialect.POSTGRES:
        notes[f"Texts are compared exactly, where {dialect} may ignore case and blanks at the end."] = None
    elif ordered:
        notes['Texts are ordered by their bytes, as postgres does with COLLATE "C".'] = None
