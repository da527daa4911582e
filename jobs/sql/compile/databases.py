"""Columns written with their database, `db1.t.a`: whose they are, also where two tables have one name. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from lakewarden.jobs.sql.compile.change import Relation

__all__ = ["means", "told_apart"]


def means(column: exp.Column, relation: Relation) -> bool:
    """Whether the words before a column's name are this relation's: its alias, its name, or its database and name."""
    if column.table.lower() != relation.name:
        return False
    return not column.db or _is_of(column, relation)


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
            for place, relation in enumerate(relations):
                if column.db and _is_of(column, relation) and not _is_read_anew(column, relation):
                    _say(column, renamed.get(place, relation.name))
                    break
    for place, name in renamed.items():
        relations[place].item.set("alias", exp.TableAlias(this=exp.to_identifier(name)))


def _is_of(column: exp.Column, relation: Relation) -> bool:
    return (column.db.lower(), column.table.lower()) == (_database(relation), relation.name)


def _database(relation: Relation) -> str:
    """The database that a table is written with, in lower case; none if it has an alias, which hides it."""
    item = relation.item
    return item.db.lower() if isinstance(item, exp.Table) and not item.alias else ""


def _is_read_anew(column: exp.Column, relation: Relation) -> bool:
    """Whether a query around the column reads the same table again, and means its own reading."""
    return any(_is_of(column, Relation(item=table)) for table in _tables_around(column))


def _tables_around(column: exp.Column) -> Iterator[exp.Table]:
    query = column.find_ancestor(exp.Select)
    while query is not None:
        from_ = query.args.get("from_")
        for item in (from_, *(query.args.get("joins") or ())):
            if item is not None and isinstance(item.this, exp.Table):
                yield item.this
        query = query.find_ancestor(exp.Select)


def _say(column: exp.Column, name: str) -> None:
    table = column.args["table"].copy()
    table.set("this", name)
    column.set("table", table)
    column.set("db", None)
    column.set("catalog", None)
