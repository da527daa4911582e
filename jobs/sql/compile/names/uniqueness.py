"""Names that could be taken for another thing are changed. Pure.

Spark takes `s.k` in a query inside for the field k of a column s of its own, or for the k of its own s; and a query
behind WITH for a table of its name.
"""

from collections.abc import Collection, Iterable, Iterator

from sqlglot import exp

from lakewarden.jobs.sql.compile.names.bindings import Bindings
from lakewarden.jobs.sql.compile.names.levels import CommonTable, Item, Level, Use

__all__ = ["tell_apart"]


def tell_apart(
    query: exp.Select, bindings: Bindings, *, columns: Collection[str], tables: Collection[str]
) -> None:
    """Rename tables that queries inside name and could not find, and queries behind WITH that hide something. `columns`
    and `tables` are the names of all that there are."""
    made = {one.alias for one in query.find_all(exp.Alias)}
    listed = {name.name for one in query.find_all(exp.TableAlias) for name in one.columns}
    fields = {*columns, *made, *listed}
    names = {*fields, *tables, *(one.name for one in query.find_all(exp.Identifier))}
    uses = list(bindings.uses.values())
    for item in {id(use.item): use.item for use in uses if _is_hidden(use, fields)}.values():
        new = _free(item.name, names)
        for node in item.nodes:
            node.args["alias"].this.set("this", new)
        for use in uses:
            if use.item is item:
                use.column.args["table"].set("this", new)
    _tell_queries_apart(bindings.named.values(), tables, names)


def _is_hidden(use: Use, columns: Collection[str]) -> bool:
    """Whether a column of a query around would be taken for something of a query inside, or another table in its own
    query has the name of its table."""
    *inside, own = _out_to(use.level, use.item)
    taken = use.item.name in columns or any(level.called(use.item.name) for level in inside)
    return len(own.called(use.item.name)) > 1 or (bool(inside) and taken)


def _out_to(level: Level, item: Item) -> Iterator[Level]:
    """The queries from where a column stands out to the one that reads its table."""
    one: Level | None = level
    while one is not None:
        yield one
        one = None if item in one.items else one.outer


def _tell_queries_apart(named: Iterable[CommonTable], tables: Collection[str], names: set[str]) -> None:
    seen = set(tables)
    for one in named:
        name = one.nodes[0].alias
        if name in seen:
            name = _free(name, names)
            for node in one.nodes:
                node.args["alias"].this.set("this", name)
            for table in (node for item in one.readers for node in item.nodes):
                table.this.set("this", name)
        seen.add(name)


def _free(name: str, names: set[str]) -> str:
    found = f"{name}_"
    while found in names:
        found += "_"
    names.add(found)
    return found
