"""An upsert and the schemas of its tables: the one MERGE that does it. Pure.

The source gives each row the values that it will have in the table, so that keys are compared and new values used
as they are stored. Several rows with one key are an error, or one is chosen, before anything is matched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.change import Assignment, Relation, RowChange, name_of
from lakewarden.jobs.sql.compile.clauses import Placement, Seen
from lakewarden.jobs.sql.compile.emission import named, sql_of
from lakewarden.jobs.sql.compile.keyed_merge import KeyedMerge, MergeAction, lacks_key, rank
from lakewarden.jobs.sql.compile.meaning.conditions import with_conditions
from lakewarden.jobs.sql.compile.meaning.expressions import translated
from lakewarden.jobs.sql.compile.meaning.nondeterminism import chances, with_distinct_on
from lakewarden.jobs.sql.compile.meaning.storing import assigned
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.reading import Draft
from lakewarden.jobs.sql.compile.resolving import Resolved, SetColumn, resolved
from lakewarden.jobs.sql.compile.type_families import (
    NUMBERS,
    Family,
    family_of,
    family_of_type,
    scale_of,
    scale_of_type,
)
from lakewarden.jobs.sql.compile.values import (
    MATCHES_KEY,
    Compiled,
    Dialect,
    MatchPolicy,
    MatchRule,
    SqlStep,
    StepKind,
    TableName,
    TableSchema,
    quoted,
)

__all__ = ["upsert_compiled"]

_BECAUSE: Final = "Rows are matched by {keys}; what is not there is added."
_ONE: Final = "Rows are found by the WHERE; if there are none, one is added."
_RANK: Final = "`lakewarden_rank`"
_SEVERAL: Final = (
    "Several rows of the source have one key. "
    f"Make keys unique, or choose: SET {MATCHES_KEY} = any, or last by <column>."
)

_STORED: Final = TableName(parts=("lakewarden_rows",))
"""Stands for the rows of the source as they will be stored: in the types of the table's columns."""

Schemas = Mapping[TableName, TableSchema]


@dataclass(frozen=True, kw_only=True)
class _Halves:
    """The statement's halves, resolved alike: what is added, and what becomes of what is there."""

    placement: Placement
    keys: tuple[str, ...]
    adds: Resolved
    added: tuple[SetColumn, ...]
    changes: Resolved
    changed: tuple[SetColumn, ...]


def upsert_compiled(
    draft: Draft, schemas: Schemas, policy: MatchPolicy, table_keys: Sequence[str]
) -> Compiled:
    """The MERGE. `table_keys` are the keys that the table itself names. Raises `UsageError` as for other changes."""
    placement, dialect = draft.placement, draft.dialects[0]
    assert placement is not None
    target = schemas[draft.tables[0]]
    columns = placement.columns or tuple(one.name for one in target)
    keys = _keys(draft, placement, columns, table_keys)
    if placement.whole and len(columns) < len(target):
        raise UsageError(
            "REPLACE gives columns that are not named their defaults, and nobody says here what these are.",
            hint="Name all columns, or write UPSERT INTO t ON (keys): it leaves the others as they are.",
        )
    by = (policy.by or "").rpartition(".")[2].lower()
    if by and not placement.is_one_row and by not in [name.lower() for name in columns]:
        raise UsageError(
            f"The last row is told by {by}, and that is not among the columns that are given.",
            hint=f"They are: {', '.join(columns)}. SET lakewarden.matches = any, or last by one of these.",
        )
    item = _named_source(placement, columns)
    if dialect is not Dialect.SPARK and isinstance(item, exp.Values):
        _read_texts(item, columns, target)
    source = Relation(item=item)
    target_item = draft.change.relations[0]
    adds = RowChange(
        relations=(target_item, source),
        place=0,
        assignments=tuple(
            Assignment(column=exp.column(name), value=exp.column(name, table=placement.alias))
            for name in columns
        ),
        ctes=draft.change.ctes,
    )
    found, added, notes = _resolved(replace(draft, change=adds), schemas, dialect)
    _refuse_queries(draft)
    draft = replace(draft, change=_as_given(draft, columns, schemas))
    _refuse_not_given(draft, placement, columns)
    changes = replace(draft.change, relations=(target_item, _as_stored(placement)), ctes=())
    if placement.replaces:
        changes = replace(
            changes, assignments=tuple(one for one in adds.assignments if one.column.name.lower() not in keys)
        )
    own = {draft.tables[0]: target, _STORED: _columns(columns, target)}
    seen, changed, more = _resolved(replace(draft, change=changes), own, dialect)
    parts = _Halves(placement=placement, keys=keys, adds=found, added=added, changes=seen, changed=changed)
    return Compiled(
        dialect=dialect,
        target=draft.tables[0],
        matches=policy,
        steps=(
            SqlStep(
                kind=StepKind.MERGE,
                target=draft.tables[0],
                sql=_merge(parts, policy),
                because=_ONE if not keys else _BECAUSE.format(keys=", ".join(keys)),
            ),
        ),
        notes=tuple(dict.fromkeys((*draft.change.notes, *notes, *more, *_said(placement, policy)))),
    )


def _keys(
    draft: Draft, placement: Placement, columns: Sequence[str], table_keys: Sequence[str]
) -> tuple[str, ...]:
    if placement.on is not None:
        return ()
    keys = tuple(key.lower() for key in placement.keys or table_keys)
    if not keys:
        raise UsageError(
            f"Nobody says which columns are the keys of {draft.tables[0]}.",
            hint="Write UPSERT INTO t ON (keys) ..., or set the table's property lakewarden.keys = 'k1,k2'.",
        )
    lacking = next((key for key in keys if key not in [name.lower() for name in columns]), None)
    if lacking is not None:
        raise UsageError(
            f"The key {lacking} is not among the columns that are given.",
            hint=f"They are: {', '.join(columns)}.",
        )
    return keys


def _as_stored(placement: Placement) -> Relation:
    (name,) = _STORED.parts
    alias = exp.TableAlias(this=exp.to_identifier(placement.alias))
    return Relation(item=exp.Table(this=exp.to_identifier(name), alias=alias))


def _columns(names: Sequence[str], target: TableSchema) -> TableSchema:
    wanted = [name.lower() for name in names]
    return tuple(one for one in target if one.name.lower() in wanted)


def _named_source(placement: Placement, columns: Sequence[str]) -> exp.Expr:
    names = exp.TableAlias(
        this=exp.to_identifier(placement.alias), columns=[exp.to_identifier(name) for name in columns]
    )
    if isinstance(placement.source, exp.Values):
        rows = placement.source.copy()
        odd = next((row for row in rows.expressions if len(row.expressions) != len(columns)), None)
        if odd is not None:
            raise UsageError(
                f"A row of VALUES has {len(odd.expressions)} values, and there are {len(columns)} columns.",
                hint=f"They are: {', '.join(columns)}.",
            )
        rows.set("alias", names)
        return rows
    query = placement.source
    assert isinstance(query, exp.Query)
    if not query.is_star and len(query.selects) != len(columns):
        raise UsageError(
            f"The query gives {len(query.selects)} values, and there are {len(columns)} columns.",
            hint=f"They are: {', '.join(columns)}.",
        )
    return exp.Subquery(this=query.copy(), alias=names)


def _read_texts(rows: exp.Values, columns: Sequence[str], target: TableSchema) -> None:
    """Read texts in VALUES as what their columns hold, as databases do: Spark takes no '3' for a number there."""
    kinds = {one.name.lower(): exp.DataType.build(one.type, dialect="spark") for one in target}
    for row in rows.expressions:
        for name, value in zip(columns, list(row.expressions), strict=True):
            kind = kinds.get(name.lower())
            if kind is not None and value.is_string and family_of_type(kind) is not Family.TEXT:
                value.replace(exp.Cast(this=value.copy(), to=kind.copy()))


def _resolved(
    draft: Draft, schemas: Schemas, dialect: Dialect
) -> tuple[Resolved, tuple[SetColumn, ...], tuple[str, ...]]:
    found = resolved(draft, schemas, MatchPolicy())
    query = with_distinct_on(found.query.copy())
    query, notes = translated(query, dialect)
    mine = replace(found, query=with_conditions(query))
    values = tuple(replace(one, value=assigned(one.value, one.type, dialect)) for one in mine.values)
    return mine, values, (*notes, *(note for _, note in chances(found.query, dialect)))


def _as_given(draft: Draft, columns: Sequence[str], schemas: Schemas) -> RowChange:
    """MySQL's ON DUPLICATE KEY UPDATE a = q.b, where q.b is a column of the query's tables: the new row has its value.
    Raises `UsageError` where the row has it as another type, or not at all."""
    change, placed = draft.change, draft.placement
    assert placed is not None
    source = placed.source
    if not isinstance(source, exp.Select) or draft.dialects != (Dialect.MYSQL,):
        return change
    kinds = {one.name.lower(): one.type for one in schemas[draft.tables[0]]}
    tables = _columns_read(source, schemas)
    given = {
        (one.table.lower() or next(iter(tables)), one.name.lower()): name
        for name, one in zip(columns, (one.unalias() for one in source.selects), strict=False)
        if isinstance(one, exp.Column) and (one.table or len(tables) == 1)
    }
    grouped = any(source.args.get(key) for key in ("group", "distinct", "having"))
    assignments = tuple(replace(one, value=one.value.copy()) for one in change.assignments)
    for column in (column for one in assignments for column in one.value.find_all(exp.Column)):
        said = column.sql()
        if not column.table and all(tables.values()) and change.relations[0].name not in tables:
            _say_whose(column, {change.relations[0].name: kinds, **tables})
        table, name = column.table.lower(), column.name.lower()
        if table in (placed.alias, change.relations[0].name) or table not in tables:
            continue
        into = given.get((table, name))
        if into is None or grouped or tables[table].get(name) != kinds[into.lower()]:
            raise wrong_in(
                column,
                f"The new row does not have {said} as it is.",
                hint=f"Select it for a column of its type, or write VALUES({into or column.name}): what is inserted.",
            )
        column.set("this", exp.to_identifier(into))
        column.set("table", exp.to_identifier(placed.alias))
    return replace(change, assignments=assignments)


def _columns_read(source: exp.Select, schemas: Schemas) -> Mapping[str, Mapping[str, str]]:
    """The columns of what a query reads, with their types as far as these are known; none where nobody knows them."""
    found: dict[str, Mapping[str, str]] = {}
    for item in source.find_all(exp.Table, exp.Subquery, exp.Values):
        name, query = item.alias_or_name.lower(), item.this
        if item.parent_select is not source:
            continue
        if isinstance(item, exp.Table):
            found[name] = {one.name.lower(): one.type for one in schemas.get(name_of(item), ())}
        elif item.find_ancestor(exp.From, exp.Join):
            known = isinstance(query, exp.Query) and not query.is_star
            found[name] = dict.fromkeys(map(str.lower, query.named_selects), "") if known else {}
    return found


def _say_whose(column: exp.Column, tables: Mapping[str, Mapping[str, str]]) -> None:
    """Qualify a column that one table has. Raises `UsageError` for one that several have."""
    owners = [table for table, columns in tables.items() if column.name.lower() in columns]
    if len(owners) > 1:
        raise wrong_in(
            column,
            f"{column.name} is a column of {' and of '.join(owners)}.",
            hint=f"Write whose it is: {owners[0]}.{column.name}.",
        )
    if owners:
        column.set("table", exp.to_identifier(owners[0]))


def _refuse_not_given(draft: Draft, placement: Placement, columns: Sequence[str]) -> None:
    """Raise `UsageError` for a column of the new row that INSERT does not name."""
    given = [name.lower() for name in columns]
    for part in (draft.change.where, *(one.value for one in draft.change.assignments)):
        for column in () if part is None else part.find_all(exp.Column):
            if column.table.lower() == placement.alias.lower() and column.name.lower() not in given:
                raise wrong_in(
                    column,
                    f"INSERT does not name {column.name}: the new row has none.",
                    hint=f"It names: {', '.join(columns)}.",
                )


def _refuse_queries(draft: Draft) -> None:
    for node in (draft.change.where, *(one.value for one in draft.change.assignments)):
        query = None if node is None else node.find(exp.Query)
        if query is not None:
            raise wrong_in(
                query,
                "What becomes of a row that is there may not ask a query.",
                hint="Ask it in the query that the rows come from.",
            )


def _merge(parts: _Halves, policy: MatchPolicy) -> str:
    alias, source = parts.changes.alias, parts.placement.alias
    target = named(parts.changes.tables[_target(parts.changes).name])
    where = parts.changes.query.args.get("where")
    condition = "" if where is None else sql_of(where.this, parts.changes.tables)
    given = {one.column.lower(): one.column for one in parts.added}
    if parts.keys:
        matches = [
            f"{quoted(alias)}.{quoted(given[key])} = {quoted(source)}.{quoted(given[key])}"
            for key in parts.keys
        ]
        when = f"({condition})" if condition else ""
    else:
        matches, when = [condition], ""
    tables = parts.changes.tables
    sets = [(quoted(one.column), sql_of(one.value, tables)) for one in parts.changed]
    added = [(quoted(one.column), f"{quoted(source)}.{quoted(one.column)}") for one in parts.added]
    return KeyedMerge(
        target=f"{target} AS {quoted(alias)}",
        source=f"({_source(parts, policy)}) AS {quoted(source)}",
        matches=matches,
        actions=[
            *([MergeAction(seen=Seen.BOTH, condition=when, sets=sets)] if sets else []),
            MergeAction(seen=Seen.SOURCE, sets=added),
        ],
    ).sql()


def _source(parts: _Halves, policy: MatchPolicy) -> str:
    """The rows as they will be stored; of those with one key one, or an error."""
    tables = parts.adds.tables
    rows = parts.adds.query.args["joins"][0].this
    with_ = parts.adds.query.args.get("with_")
    before = "" if with_ is None else f"{sql_of(with_, tables)} "
    stored = ", ".join(
        f"{sql_of(_typed(one, given), tables)} AS {quoted(one.column)}"
        for one, given in zip(parts.added, parts.adds.values, strict=True)
    )
    query = f"{before}SELECT {stored} FROM {sql_of(rows, tables)}"
    if not parts.keys or parts.placement.is_one_row:
        return query
    names = [quoted(one.column) for one in parts.added]
    keys = [quoted(one.column) for one in parts.added if one.column.lower() in parts.keys]
    lacking = lacks_key(keys)
    if policy.rule is not MatchRule.ERROR:
        by = quoted(str(policy.by).rpartition(".")[2]) if policy.rule is MatchRule.LAST else None
        ranked = f"SELECT *, {rank(keys, last_by=by, smallest=names)} AS {_RANK} FROM ({query})"
        query = f"SELECT {', '.join(names)} FROM ({ranked}) WHERE {_RANK} = 1 OR {lacking}"
    if policy.rule is MatchRule.ANY:
        return query
    once = (
        f"CASE WHEN count(*) OVER (PARTITION BY {', '.join(keys)}) > 1 AND NOT ({lacking}) "
        f"THEN raise_error('{_SEVERAL}') ELSE {keys[0]} END"
    )
    listed = ", ".join(f"{once} AS {name}" if name == keys[0] else name for name in names)
    return f"SELECT {listed} FROM ({query})"


def _typed(one: SetColumn, given: SetColumn) -> exp.Expr:
    """A value in the type of its column, where it was `given` as a number of another."""
    source, kind = family_of(given.value), family_of_type(one.type)
    differs = source is not kind and kind in (*NUMBERS, Family.TEXT)
    longer = kind is Family.DECIMAL and scale_of(given.value) > scale_of_type(one.type)
    if source in NUMBERS - {Family.NULL} and (differs or longer):
        # As what a CHAR or VARCHAR is cast, Spark decides by its settings.
        to = exp.DataType.build("string", dialect="spark") if kind is Family.TEXT else one.type.copy()
        return exp.Cast(this=one.value.copy(), to=to)
    return one.value


def _target(found: Resolved) -> exp.Table:
    item = found.query.args["from_"].this
    assert isinstance(item, exp.Table)
    return item


def _said(placement: Placement, policy: MatchPolicy) -> tuple[str, ...]:
    if placement.is_one_row:
        return ()
    match policy.rule:
        case MatchRule.ERROR:
            return ("Several rows with one key are an error; SET lakewarden.matches = any chooses one.",)
        case MatchRule.ANY:
            return ("Of several rows with one key the one with the smallest values is taken.",)
        case MatchRule.LAST:
            return (f"Of several rows with one key the one with the largest {policy.by} is taken.",)
