"""MySQL's ORDER BY ... LIMIT n of a change, as a condition about the number of a row. Pure."""

from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.numbered.row_numbers import DIFFERS, NumberedRows, compared
from lakewarden.jobs.sql.compile.places import wrong_in

__all__ = ["choose_first_rows"]

_NO_LIMIT: Final = "ORDER BY without LIMIT is left out: it changes no result."
_HINT: Final = "Write ORDER BY with columns of the table that tell its rows apart, and LIMIT with a number."


def choose_first_rows(tree: exp.Expr) -> tuple[str, ...]:
    """Put the ORDER BY and LIMIT of a change into its WHERE; what is to be told of it. Raises `UsageError`, with the
    place, where chance would choose."""
    order, limit = tree.args.get("order"), tree.args.get("limit")
    tree.set("order", None)
    if limit is None:
        return () if order is None else (_NO_LIMIT,)
    target, most = tree.this, limit.expression
    if order is None or order.find(exp.Column) is None:
        raise wrong_in(most, "LIMIT without ORDER BY chooses rows by chance.", hint=_HINT)
    if not isinstance(target, exp.Table) or target.args.get("joins") or tree.args.get("tables"):
        raise wrong_in(most, "LIMIT is for a change of one table, without others.", hint=_HINT)
    if not isinstance(most, exp.Literal) or not most.is_int or limit.args.get("offset") is not None:
        raise wrong_in(most, "LIMIT takes a number that is written.", hint=_HINT)
    where = tree.args.get("where")
    condition = None if where is None else where.this
    rows = NumberedRows(table=target, row=target.alias_or_name, where=condition)
    first = compared(rows, exp.Window(this=exp.RowNumber(), order=order), exp.LTE, most)
    tree.set("limit", None)
    tree.set("where", exp.Where(this=first if condition is None else exp.and_(condition, first)))
    return (DIFFERS.format("mysql"),)
