"""Tables whose name a column has, too, get another one where a query asks about them: Spark would take `s.k` for the
field k of its own table's column s. Pure."""

from collections.abc import Collection

from sqlglot import exp

__all__ = ["rename_what_columns_hide"]


def rename_what_columns_hide(query: exp.Select, columns: Collection[str]) -> None:
    """Rename the tables of a resolved query that queries inside it name, and that are called like one of `columns`, or
    of what the query itself makes."""
    made = {one.alias for one in query.find_all(exp.Alias)}
    listed = (name.name for one in query.find_all(exp.TableAlias) for name in one.columns)
    hiding = {*columns, *made, *listed}
    uses: dict[int, list[exp.Column]] = {}
    hidden: dict[int, exp.Expr] = {}
    for column in query.find_all(exp.Column):
        owner, asked_inside = _owner(column)
        if owner is not None:
            uses.setdefault(id(owner), []).append(column)
            if asked_inside and column.table in hiding:
                hidden[id(owner)] = owner
    taken = hiding | {one.name for one in query.find_all(exp.Identifier)}
    for key, item in hidden.items():
        name = f"{item.alias_or_name}_"
        while name in taken:
            name += "_"
        taken.add(name)
        item.args["alias"].this.set("this", name)
        for column in uses[key]:
            column.args["table"].set("this", name)


def _owner(column: exp.Column) -> tuple[exp.Expr | None, bool]:
    """The table that a column is of, and whether it is one of a query around the column's own."""
    own = scope = column.find_ancestor(exp.Select)
    while scope is not None and column.table:
        for item in _read_by(scope):
            if item.alias_or_name == column.table:
                return item, scope is not own
        scope = scope.find_ancestor(exp.Select)
    return None, False


def _read_by(scope: exp.Select) -> list[exp.Expr]:
    """What FROM and the joins of a query have."""
    from_ = scope.args.get("from_")
    return [*([] if from_ is None else [from_.this]), *(join.this for join in scope.args.get("joins") or ())]
