"""The forms that UPDATE and DELETE have in each dialect, made into one. Pure."""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.change import (
    Assignment,
    Relation,
    RowChange,
    always_there,
    assignments_of,
    refuse_default,
    refuse_outer_rows,
    with_joins,
)
from lakewarden.jobs.sql.compile.databases import means, told_apart
from lakewarden.jobs.sql.compile.dialects import OWN, STRAIGHT
from lakewarden.jobs.sql.compile.numbered.first_rows import choose_first_rows
from lakewarden.jobs.sql.compile.numbered.with_queries import change_its_table
from lakewarden.jobs.sql.compile.places import refuse_long_name, wrong_in
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["RETURNING", "ForeignError", "leave_hints_out", "refuse_item", "shapes_of"]

RETURNING: Final = "RETURNING and OUTPUT return rows, which a governed statement does not."

_CLAUSES: Final = {
    "this": "",
    "expressions": "",
    "from_": "",
    "where": "",
    "with_": "",
    "tables": "",
    "using": "",
    "returning": RETURNING,
    "order": "ORDER BY and LIMIT choose rows by their order.",
    "limit": "ORDER BY and LIMIT choose rows by their order.",
    "hint": "Hints are for another database's planner.",
}
_HINTS: Final = (
    "Hints about tables are left out: each table is read at one version, without locks or indexes."
)
_OPTIONS: Final = "OPTION is left out: it is for another database's planner."
_MATERIALIZED: Final = "[NOT] MATERIALIZED is left out: it changes no result."
_STRAIGHT: Final = "STRAIGHT_JOIN is read as JOIN: it changes no result."
_TABLE_PARTS: Final = frozenset({"this", "db", "catalog", "alias", "joins", "only", "version", "when"})


class ForeignError(Exception):
    """The statement has not the form that it would have in this dialect."""


_Found = tuple[tuple[Relation, ...], tuple[int, ...]]
"""What a statement reads, and the places of what it changes among that."""


def shapes_of(tree: exp.Expr, dialect: Dialect) -> tuple[RowChange, ...]:
    """The statement in one form, one change for each table that it changes. Takes the tree apart. Raises `ForeignError`
    where the dialect has no such statement, `UsageError` for one that it has and that is not supported."""
    if isinstance(tree.this, exp.Table) and isinstance(tree.this.this, exp.Func):
        raise ForeignError("a function for a table")
    notes = leave_hints_out(tree)
    if dialect is Dialect.MYSQL:
        notes += choose_first_rows(tree)
    if dialect is Dialect.TSQL:
        notes += change_its_table(tree)
    _refuse_clauses(tree)
    with_ = tree.args.get("with_")
    ctes = () if with_ is None else tuple(with_.expressions)
    if with_ is not None and with_.recursive:
        raise wrong_in(
            with_,
            "WITH RECURSIVE is not supported in UPDATE and DELETE.",
            hint="Write its result to a table first.",
        )
    relations, places = _relations_of(tree, dialect)
    for relation in relations:
        refuse_item(relation)
    for place in places:
        _refuse_target(relations[place].item, ctes)
    for column in tree.find_all(exp.Column):
        if column.meta.get(OWN) and not column.table:
            column.set("table", exp.to_identifier(relations[places[0]].item.alias_or_name))
    if dialect is Dialect.MYSQL:
        told_apart(relations, _parts_of(tree, relations))
    assignments = assignments_of(tree) if isinstance(tree, exp.Update) else ()
    where = tree.args.get("where")
    several = dialect is Dialect.MYSQL and len(relations) > 1
    unowned = several and any(not one.column.table for one in assignments)
    changes = tuple(
        RowChange(
            relations=relations if unowned else always_there(relations, place),
            place=place,
            assignments=assignments if len(places) == 1 else _of(relations[place], assignments),
            where=None if where is None else where.this,
            ctes=ctes,
            notes=notes,
            unowned=unowned,
        )
        for place in places
    )
    for change in () if unowned else changes:
        refuse_outer_rows(change)
        if dialect is not Dialect.SPARK or not change.is_plain:
            for one in change.assignments:
                refuse_default(one.value)
    return changes


def leave_hints_out(tree: exp.Expr) -> tuple[str, ...]:
    """Words for another database's planner: SQL Server's and MySQL's hints about tables are about locks and indexes,
    which Delta has none of."""
    hinted = [table for table in tree.find_all(exp.Table) if table.args.get("hints")]
    for table in hinted:
        table.set("hints", None)
    options = tree.args.get("options")
    tree.set("options", None)
    kept = [cte for cte in tree.find_all(exp.CTE) if cte.args.get("materialized") is not None]
    for cte in kept:
        cte.set("materialized", None)
    found = {_OPTIONS: options, _HINTS: hinted, _MATERIALIZED: kept, _STRAIGHT: tree.meta.get(STRAIGHT)}
    return tuple(note for note, parts in found.items() if parts)


def _refuse_target(target: exp.Expr, ctes: Sequence[exp.CTE]) -> None:
    if not isinstance(target, exp.Table):
        hint = "Name the table itself."
        raise wrong_in(target, "A query in parentheses cannot be changed.", hint=hint)
    if target.args.get("version"):
        hint = "ROLLBACK TABLE makes an older version head."
        raise wrong_in(target, "Only what is read has a version; what is changed is head.", hint=hint)
    named = "" if target.db else target.name.lower()
    if named in [cte.alias.lower() for cte in ctes]:
        hint = "Name the table that it reads, and say the rest in WHERE; or give the query another name."
        raise wrong_in(target, f"{target.name} is a query behind WITH, and no table.", hint=hint)
    names = {target.alias.lower()}
    twice = next((cte.alias for cte in ctes if cte.alias.lower() in names), None)
    if twice is not None:
        hint = "Give the query behind WITH another name."
        raise wrong_in(target, f"WITH has a query of the name {twice}, too.", hint=hint)


def _of(target: Relation, assignments: Sequence[Assignment]) -> tuple[Assignment, ...]:
    return tuple(one for one in assignments if one.column.table.lower() == target.name)


def _relations_of(tree: exp.Expr, dialect: Dialect) -> _Found:
    match tree, dialect:
        case exp.Update(), Dialect.MYSQL:
            return _mysql_update(tree)
        case exp.Update(), _:
            return _update(tree, dialect)
        case exp.Delete(), _ if tree.args.get("tables"):
            return _delete_tables(tree, dialect)
        case exp.Delete(), _:
            return _delete(tree, dialect)
        case _:
            raise ForeignError("no UPDATE or DELETE")


def _update(tree: exp.Update, dialect: Dialect) -> _Found:
    (target, *joined) = with_joins(tree.this)
    from_ = tree.args.get("from_")
    if joined:
        raise ForeignError("tables before SET")
    if from_ is None:
        return (target,), (0,)
    if dialect is Dialect.SPARK:
        raise ForeignError("FROM")
    if (dialect is Dialect.TERADATA) != _stands_before(from_, tree.expressions):
        raise ForeignError("FROM on the other side of SET")
    sources = tuple(with_joins(from_.this))
    _refuse_query_called(target, sources)
    if dialect is Dialect.POSTGRES:
        if any(source.name == target.name for source in sources):
            raise ForeignError("a name twice")
        return (target, *sources), (0,)
    if dialect is Dialect.TSQL and target.item.alias:
        raise ForeignError("an alias of the target")
    found, place = _among(target, sources, dialect)
    return found, (place,)


def _parts_of(tree: exp.Expr, relations: tuple[Relation, ...]) -> list[exp.Expr]:
    """Whatever may name columns of the relations."""
    conditions = (one.join and one.join.args.get("on") for one in relations)
    return [part for part in (*tree.expressions, tree.args.get("where"), *conditions) if part]


def _mysql_update(tree: exp.Update) -> _Found:
    if tree.args.get("from_") is not None:
        raise ForeignError("FROM")
    relations = tuple(with_joins(tree.this))
    if len(relations) == 1:
        return relations, (0,)
    columns = [assignment.column for assignment in assignments_of(tree)]
    places: list[int] = []
    if any(not column.table for column in columns):
        tables = [place for place, one in enumerate(relations) if isinstance(one.item, exp.Table)]
        return relations, tuple(tables[:1])
    for column in columns:
        named = [place for place, one in enumerate(relations) if means(column, one)]
        if len(named) > 1:
            raise wrong_in(
                column,
                f"Several tables before SET are called {column.table}.",
                hint=f"Write the database, too (db.{column.table}.{column.name}), or give each an alias.",
            )
        if not named:
            raise wrong_in(
                column,
                f"There is no table {column.table} before SET.",
                hint="Use the alias of the table, where it has one.",
            )
        places += named
    return relations, tuple(dict.fromkeys(places))


def _delete(tree: exp.Delete, dialect: Dialect) -> _Found:
    (target, *more) = with_joins(tree.this)
    using = tuple(relation for item in tree.args.get("using") or () for relation in with_joins(item))
    if more and dialect is Dialect.TERADATA:
        raise wrong_in(
            target.item,
            "Several tables are named, and not from which of them rows are deleted.",
            hint=f"Write DELETE {target.name} FROM ... before them.",
        )
    if more and (dialect is not Dialect.MYSQL or not using or any(one.join is not None for one in more)):
        raise ForeignError("a join after DELETE FROM")
    if not using:
        return (target,), (0,)
    _refuse_query_called(target, using)
    again = [place for place, relation in enumerate(using) if relation.name == target.name]
    if dialect is Dialect.POSTGRES and not again:
        return (target, *using), (0,)
    if dialect is Dialect.MYSQL and len(again) == 1:
        return using, _places_of((target, *more), using)
    raise ForeignError("USING")


def _delete_tables(tree: exp.Delete, dialect: Dialect) -> _Found:
    if dialect in (Dialect.SPARK, Dialect.POSTGRES) or tree.args.get("using"):
        raise ForeignError("tables before FROM")
    targets = [target for table in tree.args["tables"] for target in with_joins(table)]
    if any(target.item.args.get("alias") for target in targets):
        raise ForeignError("an alias before FROM")
    if len(targets) > 1:
        if dialect is not Dialect.MYSQL or not isinstance(tree.this, exp.Expr):
            raise ForeignError("several tables before FROM")
        sources = tuple(with_joins(tree.this))
        return sources, _places_of(targets, sources)
    (target,) = targets
    if not isinstance(tree.this, exp.Expr):
        if dialect is Dialect.MYSQL:
            raise ForeignError("no FROM")
        return (target,), (0,)
    sources = tuple(with_joins(tree.this))
    _refuse_query_called(target, sources)
    found, place = _among(target, sources, dialect)
    if len(found) > 1 and found[0] is target and dialect is not Dialect.TERADATA:
        raise _not_in_from(target)
    return found, (place,)


def _refuse_query_called(target: Relation, sources: Sequence[Relation]) -> None:
    """Raise `UsageError` for a query in FROM that has the name of what is changed."""
    item = target.item
    if any(one.name == target.name and not isinstance(one.item, exp.Table) for one in sources):
        raise wrong_in(
            item,
            f"{target.name} is a query in FROM, and no table.",
            hint="Name the table that it reads, and say the rest in WHERE; or give the query another name.",
        )


def _places_of(targets: Sequence[Relation], sources: tuple[Relation, ...]) -> tuple[int, ...]:
    """Where FROM has the tables that MySQL's DELETE names."""
    places: list[int] = []
    for target in targets:
        found, place = _among(target, sources, Dialect.MYSQL)
        if found is not sources:
            raise _not_in_from(target)
        if place in places:
            raise wrong_in(target.item, f"{target.name} is named twice.", hint="Name it once.")
        places.append(place)
    return tuple(places)


def _not_in_from(target: Relation) -> UsageError:
    return wrong_in(
        target.item,
        f"FROM has no table {target.name}.",
        hint="DELETE names a table of its FROM, by its alias where it has one.",
    )


def _among(
    target: Relation, sources: tuple[Relation, ...], dialect: Dialect
) -> tuple[tuple[Relation, ...], int]:
    """The target where FROM has it: by the alias; in T-SQL also by the name behind one, if only one has it."""
    item = target.item
    assert isinstance(item, exp.Table)
    by_name = [place for place, source in enumerate(sources) if _is_named(source, item)]
    if len(by_name) == 1:
        return sources, by_name[0]
    behind = [place for place, source in enumerate(sources) if _is_same(source.item, item)]
    if not behind:
        return (target, *sources), 0
    if dialect is Dialect.TSQL and len(behind) == 1:
        return sources, behind[0]
    raise wrong_in(
        sources[behind[0]].item,
        f"Is {sources[behind[0]].name} the table that is changed, or another reading of it?",
        hint="Name the table to change by its alias in FROM.",
    )


def _is_named(source: Relation, target: exp.Table) -> bool:
    """Whether the target's name, of one part or of all that the source has, is what the source is called."""
    if not isinstance(source.item, exp.Table):
        return False
    if not target.db:
        return source.name == target.name.lower()
    return not source.item.alias and _is_same(source.item, target)


def _is_same(one: exp.Expr, other: exp.Table) -> bool:
    names = [[part.name.lower() for part in t.parts] for t in (one, other) if isinstance(t, exp.Table)]
    return len(names) == 2 and names[0] == names[1]


def _stands_before(one: exp.Expr, others: Sequence[exp.Expr]) -> bool:
    first = [min(_starts(part), default=0) for part in (one, others[0])]
    return first[0] < first[1]


def _starts(node: exp.Expr) -> list[int]:
    return [part.meta["start"] for part in node.walk() if "start" in part.meta]


def _refuse_clauses(tree: exp.Expr) -> None:
    for clause, value in tree.args.items():
        if not value or _CLAUSES.get(clause) == "":
            continue
        where = value if isinstance(value, exp.Expr) else None
        reason = _CLAUSES.get(clause, "This clause is not supported here.")
        raise wrong_in(where, reason, hint="Leave it out.")


def refuse_item(relation: Relation) -> None:
    """Raise `UsageError` for what is no table, query or VALUES with a name, and for joins of another kind."""
    item, join = relation.item, relation.join
    odd = [name for name, value in item.args.items() if value and name not in _TABLE_PARTS]
    is_table = isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier) and not odd
    is_query = isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query)
    if not is_table and not is_query and not isinstance(item, exp.Values):
        refuse_long_name(item)
        raise wrong_in(
            item, "Expected a table, a query or VALUES.", hint="Name a table, or write (SELECT ...) AS s."
        )
    if not relation.name:
        raise wrong_in(item, "What is read here needs a name.", hint="Write (SELECT ...) AS s.")
    if join is not None and (join.method or join.kind not in ("", "INNER", "CROSS", "OUTER")):
        raise wrong_in(
            join.this,
            f"{join.method or join.kind} JOIN is not supported here.",
            hint="Write JOIN, LEFT JOIN, RIGHT JOIN or FULL JOIN with ON.",
        )
