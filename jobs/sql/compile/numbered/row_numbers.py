"""The number of a row in an order, told by its values: rows have no numbers of their own here. Pure.

Rows that are alike in the order have the numbers from their first to their last. Where a statement means some of these
and not others, nothing tells which of the rows: that is an error, found when it runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.places import wrong_in

__all__ = ["DIFFERS", "NumberedRows", "compared", "number_of", "refused_where_alike", "value_of"]

DIFFERS: Final = (
    "Rows that are alike in an order by which some of them are meant are an error, where {} takes any."
)
_ALIKE: Final = (
    "Rows that are alike in ORDER BY are on both sides of a limit: which of them are meant cannot be told. Order by "
    "more columns, until these tell them apart; of rows that are alike in all, write SELECT DISTINCT to a new table."
)
_MARK: Final = "alike"
_NAME: Final = "lakewarden_numbered"
_FIRST: Final = "lakewarden_first"
_LAST: Final = "lakewarden_last"
_VALUE: Final = "lakewarden_value"


@dataclass(frozen=True, kw_only=True)
class NumberedRows:
    """The rows of a table that are numbered."""

    table: exp.Table
    row: str
    """What the target is called whose number is asked for."""
    where: exp.Expr | None = None
    """None: all rows."""


def compared(rows: NumberedRows, window: exp.Window, kind: type[exp.Binary], most: exp.Literal) -> exp.Binary:
    """`ROW_NUMBER() OVER (...)` compared with a number; the window says the order."""
    first, last = exp.column(_FIRST), exp.column(_LAST)
    if kind in (exp.LTE, exp.GT):
        decides = exp.and_(_is(exp.LTE, first, most), _is(exp.GT, last, most))
    elif kind in (exp.LT, exp.GTE):
        decides = exp.and_(_is(exp.LT, first, most), _is(exp.GTE, last, most))
    else:
        decides = exp.and_(_is(exp.LTE, first, most), _is(exp.GTE, last, most), _is(exp.LT, first, last))
    return _is(kind, _number(rows, window, decides), most)


def number_of(rows: NumberedRows, window: exp.Window) -> exp.Subquery:
    """`ROW_NUMBER() OVER (...)` as a value: no rows may be alike in its order."""
    return _number(rows, window, _is(exp.LT, exp.column(_FIRST), exp.column(_LAST)))


def value_of(rows: NumberedRows, window: exp.Window) -> exp.Subquery:
    """A window that gives rows that are alike in its order the same."""
    return _asked(rows, window, {_VALUE: window}, exp.column(_VALUE))


def refused_where_alike(query: exp.Select) -> exp.Select:
    """The query, in Spark's words, with an error in place of what stands for it."""
    for node in list(query.find_all(exp.Literal)):
        if node.meta.get(_MARK):
            node.replace(exp.Anonymous(this="RAISE_ERROR", expressions=[exp.Literal.string(_ALIKE)]))
    return query


def _number(rows: NumberedRows, window: exp.Window, decides: exp.Expr) -> exp.Subquery:
    error = exp.Literal.number(0)
    error.meta[_MARK] = True
    number = exp.Case(ifs=[exp.If(this=decides, true=error)], default=exp.column(_FIRST))
    computed = {_FIRST: exp.Rank(), _LAST: exp.Count(this=exp.Star())}
    by = {key: window.args.get(key) for key in ("partition_by", "order")}
    return _asked(
        rows,
        window,
        {name: exp.cast(exp.Window(this=one, **by).copy(), "bigint") for name, one in computed.items()},
        number,
    )


def _asked(
    rows: NumberedRows, window: exp.Window, computed: Mapping[str, exp.Expr], value: exp.Expr
) -> exp.Subquery:
    """What `value` is, of what is computed over the rows, for the row that is changed."""
    keys = _columns(rows, window)
    numbered = exp.Select(
        expressions=[exp.alias_(one.copy(), name) for name, one in computed.items()],
        from_=exp.From(this=rows.table.copy()),
    )
    if rows.where is not None:
        numbered.set("where", exp.Where(this=rows.where.copy()))
    alike = list[exp.Expr]()
    for place, (name, column) in enumerate(keys.items()):
        numbered.append("expressions", exp.alias_(column.copy(), f"lakewarden_k{place}"))
        own = exp.column(name, table=rows.row)
        alike.append(exp.NullSafeEQ(this=exp.column(f"lakewarden_k{place}", table=_NAME), expression=own))
    found = exp.Select(expressions=[exp.Max(this=value)], from_=exp.From(this=numbered.subquery(_NAME)))
    for column in found.expressions[0].find_all(exp.Column):
        column.set("table", exp.to_identifier(_NAME))
    if alike:
        found.set("where", exp.Where(this=exp.and_(*alike)))
    return exp.Subquery(this=found)


def _columns(rows: NumberedRows, window: exp.Window) -> Mapping[str, exp.Column]:
    """The columns that the window depends on, by name."""
    if window.find(exp.Query) is not None:
        raise wrong_in(
            window,
            "Rows are numbered by columns of the table here.",
            hint="Write ORDER BY with columns of the table that tell its rows apart.",
        )
    found: dict[str, exp.Column] = {}
    for column in window.find_all(exp.Column):
        if column.table.lower() not in ("", rows.table.alias_or_name.lower()):
            raise wrong_in(
                column, f"{column.table} is not the table whose rows are numbered.", hint="Use its alias."
            )
        found.setdefault(column.name.lower(), column)
    return found


def _is(kind: type[exp.Binary], one: exp.Expr, other: exp.Expr) -> exp.Binary:
    return kind(this=one.copy(), expression=other.copy())
