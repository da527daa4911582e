"""What a query gives: * said by columns, and a name for each result. Pure."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from lakewarden.jobs.sql.compile.names.bindings import Bindings
from lakewarden.jobs.sql.compile.names.levels import Item, Level
from lakewarden.jobs.sql.compile.places import wrong_in

__all__ = ["columns_given", "name_result", "say_numbers", "with_columns_named"]


def columns_given(select: exp.Select, level: Level, bindings: Bindings) -> list[tuple[exp.Expr, str]]:
    """The SELECT list, with columns for each *, and what each result is called; nothing where it has no name."""
    found: list[tuple[exp.Expr, str]] = []
    for one in select.expressions:
        star = one.this if isinstance(one, exp.Column) else one
        if not isinstance(star, exp.Star):
            found.append((one, one.output_name))
            continue
        listed = level.selected() if star is one else _of_one(one, level)
        left_out = {name.name for name in star.args.get("except_") or ()}
        if any(value for key, value in star.args.items() if key != "except_"):
            raise wrong_in(one, "What * gives is changed here.", hint="Write the names of columns.")
        found += [
            (bindings.column(name, items, level), name) for name, items in listed if name not in left_out
        ]
    return found


def _of_one(column: exp.Expr, level: Level) -> Sequence[tuple[str, tuple[Item, ...]]]:
    table = column.args["table"].name
    items = level.called(table)
    if len(items) != 1:
        raise wrong_in(column, f"There is no table {table} here.", hint="Look at the aliases.")
    return [(name, (items[0],)) for name in items[0].columns]


def name_result(select: exp.Select, number: int, name: str) -> exp.Expr:
    """Give a result a name of its own, the one that it has anyway if it has one."""
    result: exp.Expr = select.expressions[number]
    identifier = exp.to_identifier(name or f"_col_{number}", quoted=True)
    if isinstance(result, exp.Subquery):
        result.set("alias", exp.TableAlias(this=identifier))
    elif isinstance(result, exp.Alias):
        result.set("alias", identifier)
    else:
        select.set("expressions", exp.Alias(this=result, alias=identifier), index=number)
    named: exp.Expr = select.expressions[number]
    return named


def say_numbers(query: exp.Expr, results: Sequence[exp.Expr], bindings: Bindings) -> None:
    """Name the results that GROUP BY and ORDER BY give the numbers of, where a name can mean no other."""
    group, order = query.args.get("group"), query.args.get("order")
    parts = [] if group is None else list(group.expressions)
    for part in (*parts, *(() if order is None else (one.this for one in order.expressions))):
        if not isinstance(part, exp.Literal) or not part.is_int:
            continue
        if not 1 <= int(part.name) <= len(results):
            raise wrong_in(
                part, f"The query has no result {part.name}.", hint=f"It has {len(results)} of them."
            )
        result = results[int(part.name) - 1]
        value, name = result.unalias(), result.alias_or_name
        if part.parent is not group:
            if [one.alias_or_name for one in results].count(name) == 1:
                part.replace(exp.column(name, quoted=True))
        elif not isinstance(value, exp.Literal) and value.find(exp.Query) is None:
            part.replace(bindings.copied(value))


def with_columns_named(node: exp.Expr, given: Sequence[str]) -> tuple[str, ...]:
    """What the columns of a query in FROM or WITH are called: the names that its alias gives them become its own."""
    alias = node.args.get("alias")
    names = [] if alias is None else [one.name for one in alias.columns]
    if alias is None or not names:
        return tuple(given)
    if len(names) > len(given):
        raise wrong_in(
            node, "There are more names than columns.", hint="Give each column of the query one name."
        )
    alias.set("columns", None)
    _rename(node.this, names)
    return (*names, *given[len(names) :])


def _rename(query: exp.Expr, names: Sequence[str]) -> None:
    if not isinstance(query, exp.Subquery | exp.SetOperation | exp.Select):
        return
    before = [one.alias_or_name for one in query.selects]
    if isinstance(query, exp.Select):
        for number, name in enumerate(names):
            name_result(query, number, name)
    else:
        _rename(query.this, names)
    if isinstance(query, exp.SetOperation):
        _rename(query.expression, names)
    _rename_order(query, dict(zip(before, names, strict=False)))


def _rename_order(query: exp.Expr, names: Mapping[str, str]) -> None:
    """Results that ORDER BY and the like name are called otherwise now."""
    for key in ("order", "group", "distinct"):
        part = query.args.get(key)
        for column in list(part.find_all(exp.Column)) if isinstance(part, exp.Expr) else ():
            if not column.table and column.name in names:
                column.this.set("this", names[column.name])
