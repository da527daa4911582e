"""What a query gives by chance: rows that are alike in its order, and what depends on the order of tasks. Pure."""

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.meaning.functions import numbers_by_chance
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["chances", "with_distinct_on"]

_TIES: Final = "{} takes rows of equal order by chance; order them by more columns if that matters."
_ORDERLESS: Final = "LIMIT without ORDER BY takes rows by chance."
_SAMPLE: Final = "TABLESAMPLE takes rows by chance."
_FIRST_COME: Final = "{} depends on the order in which rows come, which is one of chance."
_BY_COMING: Final = (
    exp.First, exp.Last, exp.AnyValue, exp.FirstValue, exp.LastValue, exp.ArrayAgg, exp.ArrayUniqueAgg,
    exp.GroupConcat, exp.ArgMax, exp.ArgMin, exp.Mode,
)  # fmt: skip

_BY_COMING_NAMES: Final = frozenset(
    {"FIRST", "LAST", "ANY_VALUE", "MODE", "MAX_BY", "MIN_BY", "LISTAGG", "STRING_AGG"}
)


def chances(query: exp.Expr, dialect: Dialect) -> Iterator[tuple[exp.Expr, str]]:
    """What chance decides, and what should be said of it, in a query whose names are resolved. Windows of other
    dialects are told of where they are translated."""
    for node in query.walk(bfs=False):
        match node:
            case exp.Select() | exp.SetOperation():
                yield from _of_rows(node)
            case exp.TableSample():
                yield node, _SAMPLE
            case exp.Window() if dialect is Dialect.SPARK and numbers_by_chance(node):
                yield node, _TIES.format(node.this.sql_name())
            case exp.Func() if _goes_by_coming(node) and node.find_ancestor(exp.Window) is None:
                yield node, _FIRST_COME.format(_name(node))
            case _:
                pass


def with_distinct_on(query: exp.Select) -> exp.Select:
    """The query with each DISTINCT ON as sqlglot can make a window of it: what its order says by the names of results
    is said by what they are. Raises `UsageError` for one with LIMIT, as a window leaves the rows without an order."""
    for node in query.find_all(exp.Select):
        if not _on(node):
            continue
        known = {one.alias_or_name: one.unalias() for one in node.selects}
        for part in (node.args["distinct"], node.args.get("order")):
            for column in () if part is None else list(part.find_all(exp.Column)):
                if not column.table and column.name in known:
                    column.replace(known[column.name].copy())
        if node.args.get("limit") is not None:
            raise wrong_in(
                node.args["limit"],
                "DISTINCT ON with LIMIT is not supported.",
                hint="Use row_number() in a query in FROM, and ORDER BY and LIMIT around it.",
            )
    return query


def _goes_by_coming(node: exp.Func) -> bool:
    return isinstance(node, _BY_COMING) or _name(node) in _BY_COMING_NAMES


def _name(node: exp.Func) -> str:
    return node.name.upper() if isinstance(node, exp.Anonymous) else node.sql_name()


def _of_rows(query: exp.Select | exp.SetOperation) -> Iterator[tuple[exp.Expr, str]]:
    distinct = query.args.get("distinct")
    if _on(query) and isinstance(distinct, exp.Expr) and not _is_determined(query):
        yield distinct, _TIES.format("DISTINCT ON")
    limit, offset = query.args.get("limit"), query.args.get("offset")
    cut = limit or offset
    if not isinstance(cut, exp.Expr) or _has_one_row(query):
        return
    if offset is None and isinstance(query.parent, exp.Exists):
        return
    if query.args.get("order") is None:
        yield cut, _ORDERLESS
    elif not _is_determined(query):
        yield cut, _TIES.format("LIMIT")


def _on(query: exp.Expr) -> list[exp.Expr]:
    """What DISTINCT ON names."""
    distinct = query.args.get("distinct")
    on = distinct.args.get("on") if isinstance(distinct, exp.Expr) else None
    return [] if on is None else on.expressions


def _has_one_row(query: exp.Select | exp.SetOperation) -> bool:
    if not isinstance(query, exp.Select) or query.args.get("group") is not None:
        return False
    return any(
        one.find_ancestor(exp.Select) is query and one.find_ancestor(exp.Window) is None
        for selected in query.selects
        for one in selected.find_all(exp.AggFunc)
    )


def _is_determined(query: exp.Select | exp.SetOperation) -> bool:
    """Whether rows of equal order are equal in all that is selected."""
    order = query.args.get("order")
    by = [*_on(query), *(one.this for one in (order.expressions if order is not None else ()))]
    names = {one.name for one in by if isinstance(one, exp.Column) and not one.table}
    return all(
        one.alias_or_name in names
        or (isinstance(query, exp.Select) and (one.unalias() in by or isinstance(one.unalias(), exp.Literal)))
        for one in query.selects
    )
