"""Whose columns are that are written with a database, `db1.t.a`, or in MySQL's SET without a table. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from lakewarden.jobs.sql.compile.change import (
    Relation,
    RowChange,
    always_there,
    name_of,
    refuse_outer_rows,
)
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.values import TableName, TableSchema

__all__ = ["captured", "means", "told_apart", "with_owner"]

Schemas = Mapping[TableName, TableSchema]


def means(column: exp.Column, relation: Relation) -> bool:
    """Whether the words before a column's name are this relation's: its alias, its name, or its database and name."""
    if column.table.lower() != relation.name:
        return False
    return not column.db or _is_of(column, relation)


def captured(column: exp.Column) -> bool:
    """Whether `t` alone would be another table than the `db.t` that a column in a query is written with: the nearest
    table of that name is of another database, has it as its alias, or is not the only one."""
    scope = column.find_ancestor(exp.Select)
    while scope is not None:
        items = [one for one in _items(scope) if one.alias_or_name.lower() == column.table.lower()]
        if items:
            return len(items) > 1 or not _is_of(column, Relation(item=items[0]))
        scope = scope.find_ancestor(exp.Select)
    return False


def told_apart(relations: Sequence[Relation], parts: Iterable[exp.Expr]) -> None:
    """Give tables of one name in several databases a name of their own each, and write the columns in `parts` that have
    a database by these. A column that has none stays as it is: whose it is may be unclear."""
    names = [relation.name for relation in relations]
    renamed: dict[int, str] = {}
    for place, relation in enumerate(relations):
        if _database(relation) and names.count(relation.name) > 1:
            name = f"{_database(relation)}_{relation.name}"
            while name in (*names, *renamed.values()):
                name += "_"
            renamed[place] = name
    for part in parts:
        for column in list(part.find_all(exp.Column)):
            owners = [
                place for place, relation in enumerate(relations) if column.db and _is_of(column, relation)
            ]
            if len(owners) == 1:
                name = renamed.get(owners[0], relations[owners[0]].name)
                if not _is_hidden(column, name):
                    _say(column, name)
    for place, name in renamed.items():
        relations[place].item.set("alias", exp.TableAlias(this=exp.to_identifier(name)))


def _is_of(column: exp.Column, relation: Relation) -> bool:
    if (column.db.lower(), column.table.lower()) != (_database(relation), relation.name):
        return False
    item = relation.item
    catalogs = {column.catalog.lower(), item.catalog.lower() if isinstance(item, exp.Table) else ""}
    return len(catalogs - {""}) < 2


def _database(relation: Relation) -> str:
    """The database that a table is written with, in lower case; none if it has an alias, which hides it."""
    item = relation.item
    return item.db.lower() if isinstance(item, exp.Table) and not item.alias else ""


def _is_hidden(column: exp.Column, name: str) -> bool:
    """Whether a query around the column reads the same table again, and means its own reading; or another table that
    has the name that the column would be written with."""
    around = list(_around(column))
    return any(one.alias_or_name.lower() == name for one in around) or any(
        _is_of(column, Relation(item=one)) for one in around
    )


def _around(column: exp.Column) -> Iterator[exp.Table | exp.Subquery]:
    """What the queries around a column read, the innermost first."""
    scope = column.find_ancestor(exp.Select)
    while scope is not None:
        yield from _items(scope)
        scope = scope.find_ancestor(exp.Select)


def _items(scope: exp.Select) -> Iterator[exp.Table | exp.Subquery]:
    """The tables and queries that a query reads itself, however its joins are nested."""
    for item in scope.find_all(exp.Table, exp.Subquery):
        if isinstance(item, exp.Table | exp.Subquery) and item.find_ancestor(exp.Select) is scope:
            yield item


def _say(column: exp.Column, name: str) -> None:
    table = column.args["table"].copy()
    table.set("this", name)
    column.set("table", table)
    column.set("db", None)
    column.set("catalog", None)


def with_owner(change: RowChange, schemas: Schemas) -> RowChange:
    """The change with its target, if MySQL's SET does not say whose its columns are: the table that has them. Raises
    `UsageError` for a column that several tables have, or none, and for columns of several tables."""
    owners = [_owner(one.column, change, schemas) for one in change.assignments]
    place = owners[0]
    other = next((one for one, owner in zip(change.assignments, owners, strict=True) if owner != place), None)
    if other is not None:
        raise wrong_in(
            other.column,
            "The columns that are set are of several tables.",
            hint="Write whose each of them is: SET t.a = ..., s.b = ...",
        )
    owner = change.relations[place]
    for one in change.assignments:
        one.column.set("table", exp.to_identifier(owner.name, quoted=True))
    found = replace(change, relations=always_there(change.relations, place), place=place, unowned=False)
    refuse_outer_rows(found)
    return found


def _owner(column: exp.Column, change: RowChange, schemas: Schemas) -> int:
    name = column.name.lower()
    found = [
        place
        for place, relation in enumerate(change.relations)
        if column.table.lower() in ("", relation.name) and name in _columns(relation, schemas)
    ]
    if len(found) == 1:
        return found[0]
    said = "Several of the tables before SET have" if found else "None of the tables before SET has"
    raise wrong_in(
        column, f"{said} a column {column.name}.", hint=f"Write whose it is: SET t.{column.name} = ..."
    )


def _columns(relation: Relation, schemas: Schemas) -> list[str]:
    """The columns of a table; what is no table is not changed."""
    item = relation.item
    known = schemas.get(name_of(item), ()) if isinstance(item, exp.Table) else ()
    return [one.name.lower() for one in known]
