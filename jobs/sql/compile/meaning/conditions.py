"""Conditions that hold queries, in words that Spark reads as SQL does: with the NULL that they may have. Pure."""

from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.meaning.reach import within_reach
from lakewarden.jobs.sql.compile.type_families import Family, family_of

__all__ = ["as_counts", "with_conditions"]

_CONDITIONS: Final = (exp.And, exp.Or, exp.Not, exp.Paren)
_COMPARED: Final = "compared"
_VALUE: Final = "value"
_MORE: Final = ("group", "having", "distinct", "limit", "offset", "qualify", "with_")
"""What makes a query give other rows than those that its WHERE lets pass."""


def with_conditions(query: exp.Select) -> exp.Select:
    """The query with ANY and ALL said by EXISTS, and each IN (SELECT ...) that is used as a value by conditions.

    Elsewhere Spark has no NULL for it, and would take it for false. In conditions -0.0 is made 0.0, which NOT IN of
    Spark's would tell apart. Raises `UsageError` for a column out of Spark's reach (reach.py).
    """
    for node in list(query.walk(bfs=False))[::-1]:  # what is inside comes first
        if isinstance(node, exp.Binary) and isinstance(node.expression, exp.Any | exp.All):
            if isinstance(node.expression.this, exp.Query):
                node.replace(_taken_apart(node, node.expression, _free_name(query)))
        elif isinstance(node, exp.In) and node.args.get("query") is not None:
            _resolve(node)
    return within_reach(query)


def as_counts(node: exp.Expr) -> exp.Expr | None:
    """IN (SELECT ...) and EXISTS as values that queries count, with the NULL that IN may have; None for a query whose
    rows cannot be counted like that, and for all other conditions."""
    held = (
        node.args.get("query")
        if isinstance(node, exp.In)
        else node.this
        if isinstance(node, exp.Exists)
        else None
    )
    query = held.unnest() if held is not None else None
    if (
        not isinstance(query, exp.Select)
        or any(query.args.get(one) for one in _MORE)
        or query.find(exp.AggFunc)
    ):
        return None
    if isinstance(node, exp.Exists):
        return exp.paren(_counts(query, None, exp.LT), copy=False)
    if isinstance(node.this, exp.Tuple):
        return None
    # Of the query only its values are seen beside what they are compared with: a column of its tables may have the name
    # of another table.
    name = _free_name(exp.Select(expressions=[node.copy()]))
    columns = exp.TableAlias(
        this=exp.to_identifier(name, quoted=True), columns=[exp.to_identifier(_VALUE, quoted=True)]
    )
    query = exp.Select(from_=exp.From(this=exp.Subquery(this=query.copy(), alias=columns)))
    same = exp.EQ(this=exp.column(_VALUE, table=name, quoted=True), expression=exp.paren(node.this))
    unknown = exp.Coalesce(this=same.copy(), expressions=[exp.true()])
    yes = exp.If(this=_counts(query, same, exp.LT), true=exp.true())
    no = exp.If(this=_counts(query, unknown, exp.EQ), true=exp.false())
    return exp.Case(ifs=[yes, no])


def _counts(query: exp.Select, condition: exp.Expr | None, kind: type[exp.Binary]) -> exp.Expr:
    """Zero, compared with the number of rows for which a condition holds."""
    counted = query.copy()
    counted.set("expressions", [exp.Count(this=exp.Star())])
    if condition is not None:
        counted = counted.where(condition)
    return kind(this=exp.Literal.number(0), expression=exp.Subquery(this=counted))


def _resolve(node: exp.In) -> None:
    if _is_condition(node):
        asked = {family_of(node.this), family_of(node.args["query"])}
        if Family.FLOAT in asked and not isinstance(node.this, exp.Tuple):
            node.set("this", _unsigned(node.this))
            _unsign_first(node.args["query"])
        return
    yes = exp.If(this=node.copy(), true=exp.true())
    no = exp.If(this=exp.not_(node.copy()), true=exp.false())
    node.replace(exp.Case(ifs=[yes, no]))


def _taken_apart(comparison: exp.Binary, quantifier: exp.Any | exp.All, name: str) -> exp.Expr:
    """`x < ANY (SELECT ...)` and the like by EXISTS: true, false, or else NULL; in a WHERE whether it is true."""
    holds = comparison.copy()
    holds.set("expression", exp.column(_VALUE, table=name, quoted=True))

    def exists(condition: exp.Expr) -> exp.Exists:
        """Whether there is a row for which this is true."""
        columns = exp.TableAlias(
            this=exp.to_identifier(name, quoted=True), columns=[exp.to_identifier(_VALUE, quoted=True)]
        )
        rows = exp.Subquery(this=quantifier.this.unnest().copy(), alias=columns)
        found = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=rows))
        return exp.Exists(this=found.where(condition))

    is_true: exp.Expr
    is_false: exp.Expr
    if isinstance(quantifier, exp.Any):
        is_true = exists(holds)
        is_false = exp.not_(exists(exp.Coalesce(this=holds.copy(), expressions=[exp.true()])))
    else:
        is_true = exp.not_(exists(exp.not_(exp.Coalesce(this=holds, expressions=[exp.false()]))))
        is_false = exists(exp.not_(exp.paren(holds.copy())))
    if _is_condition(comparison) and not _is_negated(comparison):
        return is_true
    return exp.Case(ifs=[exp.If(this=is_true, true=exp.true()), exp.If(this=is_false, true=exp.false())])


def _free_name(query: exp.Select) -> str:
    """A name that no table of the query has."""
    taken = {one.alias_or_name.lower() for one in query.find_all(exp.Table, exp.Subquery, exp.CTE)}
    name = _COMPARED
    while name in taken:
        name += "_"
    return name


def _unsigned(value: exp.Expr) -> exp.Expr:
    """-0.0 as 0.0, all else as it is."""
    return exp.Add(this=exp.paren(value.copy()), expression=exp.cast(exp.Literal.number(0), "double"))


def _unsign_first(query: exp.Expr) -> None:
    """Do that to the only column of a query."""
    match query:
        case exp.Subquery():
            _unsign_first(query.this)
        case exp.SetOperation():
            _unsign_first(query.this)
            _unsign_first(query.expression)
        case exp.Select():
            first = query.expressions[0]
            query.set(
                "expressions",
                [exp.alias_(_unsigned(first.unalias()), first.alias_or_name or "found", quoted=True)],
            )
        case _:
            pass


def _is_negated(node: exp.Expr) -> bool:
    above = node.parent
    while isinstance(above, _CONDITIONS):
        if isinstance(above, exp.Not):
            return True
        above = above.parent
    return False


def _is_condition(node: exp.Expr) -> bool:
    below, above = node, node.parent
    while isinstance(above, _CONDITIONS):
        below, above = above, above.parent
    return isinstance(above, exp.Where | exp.Having | exp.Join) or (
        isinstance(above, exp.If) and above.this is below
    )
