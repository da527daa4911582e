"""A MERGE whose conditions or values ask queries, which Delta runs none of: the source answers them beforehand. Pure.

Each query that names no column of the target becomes a column of the source, asked for each of its rows. IN and EXISTS
become one as a whole, with the NULL that they may have.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, build_scope

from lakewarden.jobs.sql.compile.change import Assignment, Change, Relation
from lakewarden.jobs.sql.compile.emission import with_names
from lakewarden.jobs.sql.compile.meaning.chance import chances
from lakewarden.jobs.sql.compile.meaning.conditions import with_conditions
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.precedence import refuse_unclear
from lakewarden.jobs.sql.compile.reading import Draft, outer_tokens, refuse_system, tables_read
from lakewarden.jobs.sql.compile.resolving import looked_up
from lakewarden.jobs.sql.compile.values import (
    Compiled,
    Dialect,
    MatchPolicy,
    Step,
    StepKind,
    TableName,
    TableSchema,
)

__all__ = ["merge_compiled", "merge_draft"]

_SPARK: Final = Spark()
_ANSWER: Final = "lakewarden_q"
_BECAUSE: Final = "Delta allows no queries in the conditions of a MERGE: its source answers them."
_NOTE: Final = (
    "A query in a condition is asked for each row of the source, whether the row has a match or not."
)


def merge_draft(text: str) -> Draft | None:
    """Read a MERGE with queries in ON, WHEN, SET or VALUES; None for every other, which is Spark's as it is."""
    words = outer_tokens(text)
    if not words or words[0].text.upper() != "MERGE":
        return None
    try:
        trees = _SPARK.parse(text)
    except SqlglotError:
        return None
    merge = trees[0] if len(trees) == 1 else None
    if not isinstance(merge, exp.Merge) or merge.args.get("with_") or not _is_supported(merge):
        return None
    units = list(_units(merge))
    if not units:
        return None
    refuse_unclear(_compared(merge), Dialect.SPARK, text)
    change = Change(
        relations=(Relation(item=merge.this), Relation(item=merge.args["using"])),
        place=0,
        assignments=tuple(Assignment(column=exp.column(_ANSWER), value=one) for one in units),
    )
    tables = tables_read(change)
    draft = Draft(text=text, dialects=(Dialect.SPARK,), change=change, tables=tables, merge=merge)
    refuse_system(draft)
    return draft


def merge_compiled(draft: Draft, schemas: Mapping[TableName, TableSchema]) -> Compiled:
    """The plain MERGE. Raises `UsageError`, with the place, for a query that names a column of the target."""
    assert draft.merge is not None
    query, tables = looked_up(draft, schemas)
    target, source = query.args["from_"].this, query.args["joins"][0].this
    scope = build_scope(query)
    assert isinstance(scope, Scope)
    for column in scope.columns:
        if column.table == target.alias:
            raise wrong_in(
                draft.text,
                column.this,
                f"A query in a MERGE may not depend on {column.name}, a column of the table that is changed.",
                hint="UPDATE and DELETE may ask such queries: write the MERGE without it, and one of these.",
            )
    for unit in (one.unalias() for one in query.expressions):
        _refuse_target_in_condition(draft, unit, tables)
    told = dict.fromkeys((_NOTE, *(note for _, note in chances(query, Dialect.SPARK))))
    answers = with_conditions(query).expressions
    everything = exp.Column(this=exp.Star(), table=source.args["alias"].this.copy())
    select = exp.Select(
        expressions=[
            everything,
            *(exp.alias_(one.unalias().copy(), f"{_ANSWER}{n}") for n, one in enumerate(answers)),
        ],
        from_=exp.From(this=source.copy()),
    )
    name = exp.to_identifier(draft.change.relations[1].item.alias_or_name)
    merge = draft.merge.copy()
    for number, unit in enumerate(list(_units(merge))):
        unit.replace(exp.column(f"{_ANSWER}{number}", table=name.copy()))
    merge.set("using", exp.Subquery(this=with_names(select, tables), alias=exp.TableAlias(this=name.copy())))
    step = Step(
        kind=StepKind.MERGE,
        target=draft.tables[0],
        sql=merge.sql(dialect=_SPARK, identify=True, comments=False),
        because=_BECAUSE,
    )
    return Compiled(
        dialect=Dialect.SPARK, target=draft.tables[0], matches=MatchPolicy(), steps=(step,), notes=tuple(told)
    )


def _refuse_target_in_condition(draft: Draft, unit: exp.Expr, tables: Mapping[str, TableName]) -> None:
    """Delta 4.4 cannot read its target where Spark makes an existence join of IN or EXISTS; scalar queries are fine."""
    if isinstance(unit, exp.Query | exp.Subquery):
        return
    asked = next((one for one in unit.find_all(exp.Table) if tables.get(one.name) == draft.tables[0]), None)
    if asked is not None:
        raise wrong_in(
            draft.text,
            asked,
            f"IN and EXISTS in a MERGE may not ask {draft.tables[0]}, the table that is changed.",
            hint="Count instead, as in 0 < (SELECT count(*) FROM ...), or ask in the "
            "WHERE of a query in USING.",
        )


def _is_supported(merge: exp.Merge) -> bool:
    """Whether a column more of the source is seen by nothing but the conditions and values that ask for it."""
    using = merge.args["using"]
    if not isinstance(using, exp.Table | exp.Subquery | exp.Values) or not using.alias_or_name:
        return False
    for when in merge.args["whens"].expressions:
        then = when.args["then"]
        if isinstance(then.this, exp.Star) or any(isinstance(one, exp.Star) for one in then.expressions):
            return False
        if when.args.get("source") and any(True for _ in _units_in(when)):
            return False
    parts = _parts(merge)
    return not any(part.find(exp.Any, exp.All) or _written_with_database(part) for part in parts)


def _written_with_database(part: exp.Expr) -> bool:
    return any(column.args.get("db") for column in part.find_all(exp.Column))


def _parts(merge: exp.Merge) -> list[exp.Expr]:
    return [merge.args["on"], *merge.args["whens"].expressions]


def _units(merge: exp.Merge) -> Iterator[exp.Expr]:
    """What is asked outside USING: scalar queries, and IN and EXISTS as a whole."""
    for part in _parts(merge):
        yield from _units_in(part)


def _units_in(part: exp.Expr) -> Iterator[exp.Expr]:
    for node in part.walk(bfs=False, prune=_is_unit):
        if _is_unit(node):
            yield node


def _compared(merge: exp.Merge) -> Iterator[exp.Expr]:
    """Everything with an order in it, but not what assigns."""
    for part in _parts(merge):
        for node in part.find_all(exp.Binary, exp.In):
            above = node.parent
            assigns = isinstance(above, exp.Update) and isinstance(node, exp.EQ)
            if not assigns:
                yield node


def _is_unit(node: exp.Expr) -> bool:
    asks = isinstance(node, exp.In) and node.args.get("query") is not None
    return asks or isinstance(node, exp.Exists | exp.Query)
