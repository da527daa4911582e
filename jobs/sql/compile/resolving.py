"""Which column of which table does each name mean, and of what type is it? Pure.

The statement becomes the query for its matches: SELECT the values it assigns FROM everything that it reads, the target
among it. In it names are found by SQL's rules, wherever they stand.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, build_scope
from sqlglot.schema import MappingSchema

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.annotation import NumberAnnotator
from lakewarden.jobs.sql.compile.change import EXACT, MAYBE_REAL, Relation, RowChange, is_cte, name_of
from lakewarden.jobs.sql.compile.databases import captured
from lakewarden.jobs.sql.compile.dialects import PARSERS
from lakewarden.jobs.sql.compile.names.resolver import resolve
from lakewarden.jobs.sql.compile.names.spelling import refuse_unclear_columns
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.reading import Draft, ambiguous
from lakewarden.jobs.sql.compile.type_families import typed
from lakewarden.jobs.sql.compile.values import Dialect, MatchPolicy, TableName, TableSchema

__all__ = ["Resolved", "SetColumn", "columns_set", "looked_up", "resolved"]

_LARGEST_OF_ALL: Final = 2**63 - 1
_LARGEST: Final = {Dialect.TSQL: 2**31 - 1, Dialect.TERADATA: 2**31 - 1}
"""The largest number that is written as an integer."""
_REAL: Final = re.compile(r"\breal\b", re.IGNORECASE)
_STAND_IN: Final = "_t"
"""Tables are called _t0, _t1, ... while names are looked up: catalogs and databases are out of the way then."""

Schemas = Mapping[TableName, TableSchema]


@dataclass(frozen=True, kw_only=True)
class SetColumn:
    """A column that is set: its name and type in the table, and the value that it gets."""

    column: str
    type: exp.DataType
    value: exp.Expr


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """The query for the matches, each column qualified and each expression typed."""

    query: exp.Select
    """Its select list holds the values of the columns in their order, a query of several columns once, then what the
    policy goes by."""
    alias: str
    columns: tuple[tuple[str, exp.DataType], ...]
    by: bool
    tables: Mapping[str, TableName]
    """The stand-ins' real names."""
    places: tuple[int | None, ...] = ()
    """The columns' own in a query of several columns."""

    @property
    def values(self) -> tuple[SetColumn, ...]:
        """What is set. What a query of several columns gives is a field of its row in `rows`."""
        selected = iter(self.query.expressions)
        one: exp.Expr = self.query
        found: list[SetColumn] = []
        rows = -1
        for (name, kind), place in zip(self.columns, self.places, strict=True):
            if not place:
                one = next(selected)
                rows += place is not None
            value = _value(one) if place is None else _field(one, place, _row_name(rows))
            found.append(SetColumn(column=name, type=kind, value=value))
        return tuple(found)

    @property
    def rows(self) -> Mapping[str, exp.Expr]:
        """The queries that give several columns, each of which is asked once, by name."""
        first = [place for place in self.places if not place]
        asked = [
            _value(one)
            for one, place in zip(self.query.expressions, first, strict=False)
            if place is not None
        ]
        return {_row_name(number): query for number, query in enumerate(asked)}

    def target_columns(self) -> tuple[str, ...]:
        """The columns of the target that anything depends on, wherever it stands."""
        scope = build_scope(self.query)
        assert isinstance(scope, Scope)
        found = (column.name for column in scope.columns if column.table == self.alias)
        return tuple(dict.fromkeys(found))


def resolved(draft: Draft, schemas: Schemas, policy: MatchPolicy) -> Resolved:
    """Look every name up. Raises `UsageError`, with the place, for one that is not there or means several things."""
    change = draft.change
    set_ = columns_set(change, schemas[draft.tables[0]])
    by = policy.by if set_ and len(change.relations) > 1 else None
    query, tables = looked_up(draft, schemas, by)
    items = [query.args["from_"].this, *(join.this for join in query.args.get("joins") or ())]
    return Resolved(
        query=query,
        alias=items[change.place].alias,
        columns=set_,
        by=by is not None,
        tables=tables,
        places=tuple(assignment.place for assignment in change.assignments),
    )


def looked_up(
    draft: Draft, schemas: Schemas, by: str | None = None
) -> tuple[exp.Select, Mapping[str, TableName]]:
    """The query for the matches, resolved: it selects the values that are assigned; and the stand-ins' real names."""
    query, tables = _query(draft, schemas, by)
    dialect = draft.dialects[0]
    known = {name: tuple(_folded(one.name) for one in schemas[real]) for name, real in tables.items()}
    resolve(query, known, {_folded(real.parts[-1]) for real in tables.values()}, dialect)
    _refuse_aggregates(query)
    schema = MappingSchema(
        {
            name: {_folded(one.name): _type(one.type) for one in schemas[real]}
            for name, real in tables.items()
        },
        dialect=PARSERS[Dialect.SPARK],
        normalize=False,
    )
    return NumberAnnotator(schema, draft.dialects).annotate(query), tables


def columns_set(change: RowChange, schema: TableSchema) -> tuple[tuple[str, exp.DataType], ...]:
    """The columns that are set, as the table has them, with their types. Raises `UsageError` for one that is not
    there, or twice."""
    known = {one.name.lower(): one for one in schema}
    target = change.relations[change.place]
    found: dict[str, exp.DataType] = {}
    for assignment in change.assignments:
        column = assignment.column
        name = column.name.lower()
        if column.db or column.table.lower() not in ("", target.name, target.item.name.lower()):
            raise wrong_in(
                column,
                f"{column.table} is not the table that is changed.",
                hint="A field of a struct is set with the whole struct.",
            )
        if name not in known:
            raise wrong_in(
                column,
                f"{change.target.name} has no column {column.name}.",
                hint=f"It has: {', '.join(one.name for one in schema)}.",
            )
        if known[name].name in found:
            raise wrong_in(column, f"{column.name} is set twice.", hint="Set each column once.")
        found[known[name].name] = _type(known[name].type)
    return tuple(found.items())


def _query(draft: Draft, schemas: Schemas, by: str | None) -> tuple[exp.Select, Mapping[str, TableName]]:
    """The query for the matches as it is written, with stand-ins for the tables."""
    change = draft.change
    selected = [
        exp.alias_(assignment.value.copy(), f"lakewarden_v{number}")
        for number, assignment in enumerate(change.assignments)
        if not assignment.place
    ]
    if by is not None:
        selected.append(exp.alias_(_column(by), "lakewarden_by"))
    query = exp.Select(expressions=selected or [exp.alias_(exp.Literal.number(1), "lakewarden_v0")])
    items = [_joined(relation) for relation in change.relations]
    query.set("from_", exp.From(this=items[0].this))
    query.set("joins", items[1:])
    if change.where is not None:
        query.set("where", exp.Where(this=change.where.copy()))
    if change.ctes:
        query.set("with_", exp.With(expressions=[cte.copy() for cte in change.ctes]))
    if Dialect.SPARK not in draft.dialects:
        _mark_decimals(query, draft)
        _mark_reals(query, draft)
    for dialect in draft.dialects:
        refuse_unclear_columns(query, schemas, dialect)
    for column in query.find_all(exp.Column):
        if column.db and captured(column):
            raise wrong_in(
                column,
                f"Which table {column.sql()} is of cannot be told: "
                f"another one is called {column.table} here, too.",
                hint="Give each of them an alias, and write columns by these.",
            )
    return query, _stand_in(query)


def _refuse_aggregates(query: exp.Select) -> None:
    """Raise `UsageError` for an aggregate that is of no query: SET and WHERE are about one row."""
    for node in query.find_all(exp.AggFunc):
        above = node.find_ancestor(exp.Window, exp.Where, exp.Join, exp.Select)
        if above is query or isinstance(above, exp.Where | exp.Join):
            raise wrong_in(
                node,
                "An aggregate is about several rows, and SET, WHERE and ON are about one.",
                hint="Ask a query for it: (SELECT max(a) FROM t). In a query it stands in HAVING.",
            )


def _mark_decimals(query: exp.Select, draft: Draft) -> None:
    """Say of numbers that are written how many digits they have where they are decimals: 1.5 is one, and a whole number
    beyond the integers of the dialect."""
    most = {_LARGEST.get(dialect, _LARGEST_OF_ALL) for dialect in draft.dialects}
    for literal in list(query.find_all(exp.Literal)):
        if literal.is_string or "e" in literal.name.lower():
            continue
        whole, dot, digits = literal.name.partition(".")
        if not dot and int(whole) <= min(most):
            continue
        if not dot and int(whole) <= max(most):
            raise ambiguous(draft.dialects, f"{whole} is an integer in one, a decimal in another.")
        scale, precision = len(digits), max(len(whole.lstrip("0")) + len(digits), 1)
        kind = exp.DataType.build(f"DECIMAL({precision}, {scale})", dialect="spark")
        cast = exp.Cast(this=literal.copy(), to=kind)
        cast.meta[EXACT] = bool(dot)
        literal.replace(cast)


def _mark_reals(query: exp.Select, draft: Draft) -> None:
    if _REAL.search(draft.text):
        for cast in query.find_all(exp.Cast):
            cast.meta[MAYBE_REAL] = True


def _value(selected: exp.Expr) -> exp.Expr:
    """What is selected, without the name that it has there: a query carries it itself."""
    value = selected.unalias().copy()
    if isinstance(value, exp.Subquery):
        value.set("alias", None)
    return value


def _row_name(number: int) -> str:
    return f"lakewarden_row{number}"


def _field(selected: exp.Expr, place: int, row: str) -> exp.Expr:
    """A column of the row that a query gives, typed as what it is there."""
    query = selected.unalias().unnest()
    assert isinstance(query, exp.Query)
    column = query.selects[place].unalias()
    field = exp.column(f"c{place}", table=row, quoted=True)
    field.type = typed(column)
    return field


def _joined(relation: Relation) -> exp.Join:
    join = exp.Join() if relation.join is None else relation.join.copy()
    join.set("this", relation.item.copy())
    return join


def _column(text: str) -> exp.Expr:
    column = sqlglot.parse_one(text, dialect="spark")
    if not isinstance(column, exp.Column):
        raise UsageError(
            f"{text} is not a column.", hint="Write last by <column>, such as last by s.changed_at."
        )
    return column


def _stand_in(query: exp.Select) -> Mapping[str, TableName]:
    """Put stand-ins for the tables, and all names in lower case, as Spark and Delta compare them."""
    names: dict[TableName, str] = {}
    prefix = _STAND_IN
    while any(one.name.lower().startswith(prefix) for one in query.find_all(exp.Identifier)):
        prefix += "_"
    for table in [one for one in query.find_all(exp.Table) if not is_cte(one)]:
        real = name_of(table)
        if not table.alias:
            alias = table.args.get("alias") or exp.TableAlias()
            alias.set("this", table.this.copy())
            table.set("alias", alias)
        table.set("this", exp.to_identifier(names.setdefault(real, f"{prefix}{len(names)}")))
        table.set("db", None)
        table.set("catalog", None)
        table.set("only", None)
    known = {tuple(part.lower() for part in name.parts[-2:]) for name in names}
    for column in query.find_all(exp.Column):
        if (column.db.lower(), column.table.lower()) in known:
            column.set("db", None)
            column.set("catalog", None)
    for identifier in query.find_all(exp.Identifier):
        identifier.set("this", _folded(identifier.name))
    return {stand_in: name for name, stand_in in names.items()}


def _folded(name: str) -> str:
    """The same for all that Spark takes for one name, and one of them: an I with a dot in lower case is two characters,
    and another name."""
    return name.lower().replace("i\u0307", "\u0130")


@lru_cache(maxsize=1024)
def _type(name: str) -> exp.DataType:
    try:
        return exp.DataType.build(name, dialect="spark")
    except SqlglotError:
        return exp.DataType.build("unknown")
