"""The plain statements for what was resolved: as they are where they can be, as one MERGE where not. Pure.

A MERGE joins the target directly with its sources where inner joins lead to them and no condition holds a query. In all
other cases its source is the query for the matches itself, asked for each distinct combination of the target's columns
that anything depends on: two rows that agree in these have the same matches, and are found again by them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.change import RowChange
from lakewarden.jobs.sql.compile.clauses import Seen
from lakewarden.jobs.sql.compile.grouping import ask_in_where, group_joins
from lakewarden.jobs.sql.compile.keyed_merge import KeyedMerge, MergeAction, rank
from lakewarden.jobs.sql.compile.meaning.inline import as_queries
from lakewarden.jobs.sql.compile.meaning.row_comparisons import as_struct
from lakewarden.jobs.sql.compile.precedence import in_parentheses
from lakewarden.jobs.sql.compile.resolving import Resolved, SetColumn
from lakewarden.jobs.sql.compile.spark_words import in_spark, without_choices
from lakewarden.jobs.sql.compile.type_families import NUMBERS, Family, family_of
from lakewarden.jobs.sql.compile.values import MatchPolicy, MatchRule, SqlStep, StepKind, TableName, quoted

__all__ = ["distinct_rows", "key_of", "named", "sql_of", "step_of"]

_PLAIN: Final = "Nothing but the target is read."
_DIRECT: Final = "The target is joined with what it is changed by; Delta refuses a second match of a row."
_DELETED: Final = "The target is joined with what decides; a row that matches several times is deleted once."
_ASKED: Final = "Delta allows no queries in the conditions of a change: the rows are found first."
_AGREEING: Final = "Matches of a row that say the same are one; if others are left, it is an error."
_CHOSEN: Final = "Of several matches of a row one is chosen: {policy}."
_BLIND_TO_SIGNS: Final = (
    exp.And, exp.Or, exp.Not, exp.Coalesce, exp.Case, exp.If, exp.Nullif, exp.Min, exp.Max, exp.Sum,
    exp.Count, exp.Abs, exp.Greatest, exp.Least, exp.Exists, exp.Round, exp.Floor, exp.Ceil,
)  # fmt: skip
_OUTER: Final = "The target takes part in an outer join: the matches are found first."


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """The resolved statement taken apart."""

    change: RowChange
    found: Resolved
    values: tuple[SetColumn, ...]
    policy: MatchPolicy

    @property
    def item(self) -> exp.Table:
        """The target among what is read."""
        item = _items(self.found.query)[self.change.place]
        assert isinstance(item, exp.Table)
        return item

    @property
    def table(self) -> TableName:
        """The target's name."""
        return self.found.tables[self.item.name]

    @property
    def target(self) -> str:
        """The target as SQL."""
        return named(self.table)

    @property
    def where(self) -> exp.Expr | None:
        """The WHERE, None where there is none."""
        where = self.found.query.args.get("where")
        return where.this if isinstance(where, exp.Where) else None

    @property
    def asks(self) -> bool:
        """Whether a condition or a value holds a query."""
        joins = self.found.query.args.get("joins") or ()
        return bool(self.found.rows) or any(
            node is not None and node.find(exp.Query) is not None
            for node in (
                self.where,
                *(join.args.get("on") for join in joins),
                *(one.value for one in self.values),
            )
        )


def step_of(
    change: RowChange, found: Resolved, values: tuple[SetColumn, ...], policy: MatchPolicy
) -> SqlStep:
    """The one statement. `values` are those of `found`, as they are stored."""
    parts = _Parts(change=change, found=found, values=values, policy=policy)
    if change.is_plain:
        return _plain(parts)
    several = len(change.relations) > 1
    asks, chooses = parts.asks, bool(values) and several and policy.chooses
    joined = several and (change.stands_alone or change.joins_inside)
    if joined and not asks and not chooses:
        return _direct(parts)
    reasons = [_ASKED] if asks or not several else []
    if several and not joined:
        reasons.append(_OUTER)
    if chooses:
        reasons.append(_AGREEING if policy.rule is MatchRule.ERROR else _CHOSEN.format(policy=policy))
    return SqlStep(
        kind=StepKind.MERGE,
        target=parts.table,
        sql=_asked(parts, chooses=chooses),
        because=" ".join(reasons),
    )


def _plain(parts: _Parts) -> SqlStep:
    where = "" if parts.where is None else f" WHERE {_sql(parts.where, parts)}"
    target = f"{parts.target} AS {quoted(parts.found.alias)}"
    if not parts.values:
        sql = f"DELETE FROM {target}{where}"
        return SqlStep(kind=StepKind.DELETE, target=parts.table, sql=sql, because=_PLAIN)
    sets = ", ".join(f"{quoted(one.column)} = {_sql(one.value, parts)}" for one in parts.values)
    sql = f"UPDATE {target} SET {sets}{where}"
    return SqlStep(kind=StepKind.UPDATE, target=parts.table, sql=sql, because=_PLAIN)


def _direct(parts: _Parts) -> SqlStep:
    alias = parts.found.alias
    sources, conditions = _sources(parts)
    only = sources.args["from_"].this
    plain = isinstance(only, exp.Table) and not sources.args.get("joins") and not _is_special(only, parts)
    values = [one.value for one in parts.values]
    if plain and not _asks_padded((*conditions, *values), alias):
        source = f"{named(parts.found.tables[only.name])} AS {quoted(only.alias)}"
    else:
        name = _other_name(alias)
        used = _columns_of_others((*conditions, *values), alias)
        names = {column: f"c{number}" for number, column in enumerate(used)}
        sources.set("expressions", [_renamed(column, new) for column, new in names.items()] or [_one()])
        source = f"({_sql(sources, parts)}) AS {quoted(name)}"
        conditions = [_from_source(node, names, name) for node in conditions]
        values = [_from_source(node, names, name) for node in values]
    matches = [_sql(_wrapped(node), parts) for node in conditions]
    sets = [(one.column, _sql(value, parts)) for one, value in zip(parts.values, values, strict=True)]
    return SqlStep(
        kind=StepKind.MERGE,
        target=parts.table,
        sql=_matched(parts, alias, source, matches, sets),
        because=_DIRECT if parts.values else _DELETED,
    )


def _sources(parts: _Parts) -> tuple[exp.Select, list[exp.Expr]]:
    """Everything but the target as a query without a select list; and the conditions that join the two."""
    query, place = parts.found.query, parts.change.place
    conditions = [] if parts.where is None else [parts.where]
    joins = [exp.Join(this=query.args["from_"].this.copy())]
    joins += [join.copy() for join in query.args.get("joins") or ()]
    del joins[place]
    if not parts.change.stands_alone:  # inner joins: each ON may as well be asked at the end
        conditions = [
            join.args["on"] for join in query.args.get("joins") or () if join.args.get("on")
        ] + conditions
        joins = [exp.Join(this=join.this) for join in joins]
    sources = exp.Select(from_=exp.From(this=joins[0].this), joins=joins[1:])
    group_joins(sources)
    if query.args.get("with_") is not None:
        sources.set("with_", query.args["with_"].copy())
    return sources, conditions


def _columns_of_others(nodes: Sequence[exp.Expr], alias: str) -> tuple[tuple[str, str], ...]:
    columns = (column for node in nodes for column in node.find_all(exp.Column))
    return tuple(dict.fromkeys((one.table, one.name) for one in columns if one.table != alias))


def _asks_padded(nodes: Sequence[exp.Expr], alias: str) -> bool:
    """Whether a CHAR of the source is looked at: Delta's MERGE does not find one that is not given by a query."""
    return any(
        column.table != alias and isinstance(column.type, exp.DataType) and column.type.is_type("char")
        for node in nodes
        for column in node.find_all(exp.Column)
    )


def _from_source(node: exp.Expr, names: Mapping[tuple[str, str], str], source: str) -> exp.Expr:
    """An expression in the names that the source gives its columns."""
    return node.copy().transform(
        lambda part: (
            exp.column(names[part.table, part.name], table=source, quoted=True)
            if isinstance(part, exp.Column) and (part.table, part.name) in names
            else part
        )
    )


def _asked(parts: _Parts, *, chooses: bool) -> str:
    """The MERGE whose source is the query for the matches."""
    found, alias = parts.found, parts.found.alias
    keys, query = found.target_columns(), found.query.copy()
    far = {i: one for i, one in enumerate(parts.values) if _is_far(one.value, alias)}
    exact = _signed(parts, keys)
    selected = [_as_key((alias, key), f"k{i}", exact) for i, key in enumerate(keys)]
    selected += [exp.alias_(one.value.copy(), f"v{i}", quoted=True) for i, one in far.items()]
    names = [quoted(one.alias) for one in selected]
    if chooses and found.by:
        selected.append(exp.alias_(found.query.expressions[-1].unalias().copy(), "by", quoted=True))
    listed, selected = _with_rows(parts, selected)
    with_ = query.args.get("with_")
    query.set("with_", None)
    query.set("expressions", selected or [_one()])
    _items(query)[parts.change.place].replace(distinct_rows(parts.item.this, found.alias, keys, exact))
    ask_in_where(query)
    group_joins(query)
    matches = _sql(query, parts)
    if listed:
        matches = f"SELECT {', '.join(listed)} FROM ({matches}) AS `rows`"
    if chooses:
        matches = _chosen(matches, names, len(keys), parts.policy)
    before = f"{_sql(with_, parts)} " if with_ is not None else ""
    own = {key: _sql(key_of(("target", key), exact), parts) for key in keys}
    on = [f"{own[key]} <=> `source`.`k{i}`" for i, key in enumerate(keys)]
    sets = [
        (one.column, f"`source`.`v{i}`" if i in far else _sql(_near(one.value, alias), parts))
        for i, one in enumerate(parts.values)
    ]
    return _matched(parts, "target", f"({before}{matches}) AS `source`", on, sets)


def _with_rows(parts: _Parts, selected: Sequence[exp.Expr]) -> tuple[list[str], list[exp.Expr]]:
    """Where queries give several columns: what is selected of their rows, and the select list with these rows, each as
    one value, in place of that. Asked once each, a query cannot give one column of one row and one of another."""
    rows = parts.found.rows
    if not rows:
        return [], list(selected)
    made = {one.alias: _is_of_rows(one, rows) for one in selected}
    listed = [_sql(one, parts) if made[one.alias] else quoted(one.alias) for one in selected]
    inner = [one for one in selected if not made[one.alias]]
    return listed, [
        *inner,
        *(exp.alias_(as_struct(query), name, quoted=True) for name, query in rows.items()),
    ]


def _is_of_rows(selected: exp.Expr, rows: Collection[str]) -> bool:
    return any(column.table in rows for column in selected.find_all(exp.Column))


def distinct_rows(
    table: exp.Expr, name: str, keys: Sequence[str], exact: Mapping[str, exp.DataType]
) -> exp.Subquery:
    """A table as far as anything depends on it: each combination of the columns once; one row where nothing does."""
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    rows = exp.Select(
        expressions=[_as_key((None, key), key, exact) if key in exact else _column(None, key) for key in keys]
        or [_one()],
        from_=exp.From(this=exp.Table(this=table.copy())),
    )
    rows = rows.distinct() if keys else rows.limit(1)
    if exact:
        again = [
            exp.alias_(exp.cast(_column(None, key), exact[key]), key, quoted=True)
            if key in exact
            else _column(None, key)
            for key in keys
        ]
        rows = exp.Select(expressions=again, from_=exp.From(this=exp.Subquery(this=rows, alias=alias.copy())))
    return exp.Subquery(this=rows, alias=alias)


def _signed(parts: _Parts, keys: Sequence[str]) -> Mapping[str, exp.DataType]:
    """The floating-point columns of the target whose 0.0 and -0.0 something tells apart, as texts do.

    DISTINCT and <=> do not.
    """
    nodes = (parts.found.query, *(one.value for one in parts.values))
    found: dict[str, exp.DataType] = {}
    for column in (one for node in nodes for one in node.find_all(exp.Column)):
        if column.table == parts.found.alias and column.name in keys and family_of(column) is Family.FLOAT:
            above = column.parent
            while above is not None and not _tells_signs(above):
                above = above.parent
            if above is not None and isinstance(column.type, exp.DataType):
                found[column.name] = column.type.copy()
    return found


def _tells_signs(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return family_of(node) not in NUMBERS
    return isinstance(node, exp.DPipe) or (
        isinstance(node, exp.Func) and not isinstance(node, _BLIND_TO_SIGNS)
    )


def _as_key(column: tuple[str | None, str], name: str, exact: Mapping[str, exp.DataType]) -> exp.Expr:
    return exp.alias_(key_of(column, exact), name, quoted=True)


def key_of(column: tuple[str | None, str], exact: Mapping[str, exp.DataType | None]) -> exp.Expr:
    """What a row of the target is found again by: the column, as text where a sign matters."""
    found = _column(*column)
    return exp.cast(found, "string") if exact.get(column[1]) is not None else found


def _column(table: str | None, name: str) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _chosen(matches: str, names: Sequence[str], keys: int, policy: MatchPolicy) -> str:
    """Of the matches of each key one: the smallest, or the last. What is last twice stays twice, and is refused, and so
    are matches that say different things where nothing is to be chosen."""
    listed = ", ".join(names) or "`found`"
    if policy.rule is MatchRule.ERROR or (len(names) == keys and policy.rule is MatchRule.ANY):
        return f"SELECT DISTINCT {listed} FROM ({matches}) AS `matches`"  # whatever matches, it gets the same
    last_by = "`by`" if policy.rule is MatchRule.LAST else None
    ranks = rank(names[:keys], last_by=last_by, smallest=names[keys:])
    ranked = f"SELECT *, {ranks} AS `rank` FROM ({matches}) AS `matches`"
    return (
        f"SELECT DISTINCT {', '.join(names) or '1 AS `found`'} FROM ({ranked}) AS `ranked` WHERE `rank` = 1"
    )


def _near(value: exp.Expr, alias: str) -> exp.Expr:
    """An expression over the target alone, by the name that it has in the MERGE."""
    return value.copy().transform(
        lambda part: (
            exp.column(part.name, table="target", quoted=True)
            if isinstance(part, exp.Column) and part.table == alias
            else part
        )
    )


def _renamed(column: tuple[str, str], name: str) -> exp.Expr:
    table, old = column
    return exp.alias_(exp.column(old, table=table, quoted=True), name, quoted=True)


def _one() -> exp.Expr:
    return exp.alias_(exp.Literal.number(1), "found", quoted=True)


def _wrapped(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy()) if isinstance(node, exp.Or) else node


def _is_far(value: exp.Expr, alias: str) -> bool:
    """Whether a value needs more than the row that it is set in."""
    return value.find(exp.Query) is not None or any(one.table != alias for one in value.find_all(exp.Column))


def _is_special(table: exp.Table, parts: _Parts) -> bool:
    """Whether a source is more than a table's name and an alias: an older version, other names of its columns."""
    more = [key for key, value in table.args.items() if value and key not in ("this", "alias")]
    return table.name not in parts.found.tables or bool(more) or bool(table.args["alias"].columns)


def _items(query: exp.Select) -> list[exp.Expr]:
    return [query.args["from_"].this, *(join.this for join in query.args.get("joins") or ())]


def _matched(
    parts: _Parts, alias: str, source: str, matches: Sequence[str], sets: Sequence[tuple[str, str]]
) -> str:
    """The MERGE that sets columns of matched rows, or deletes them."""
    named_sets = [(f"{quoted(alias)}.{quoted(column)}", value) for column, value in sets]
    return KeyedMerge(
        target=f"{parts.target} AS {quoted(alias)}",
        source=source,
        matches=matches,
        actions=[MergeAction(seen=Seen.BOTH, sets=named_sets)],
    ).sql()


def _other_name(alias: str) -> str:
    return "source" if alias != "source" else "sources"


def _sql(node: exp.Expr, parts: _Parts) -> str:
    """As Spark reads it, with the tables' own names."""
    return sql_of(node, parts.found.tables)


def sql_of(node: exp.Expr, tables: Mapping[str, TableName]) -> str:
    """A resolved part as Spark reads it; `tables` are the stand-ins' own names."""
    return in_spark(in_parentheses(as_queries(without_choices(with_names(node.copy(), tables)))))


def with_names(node: exp.Expr, tables: Mapping[str, TableName]) -> exp.Expr:
    """A resolved part with the tables' own names in place of their stand-ins. Changes it."""
    for table in node.find_all(exp.Table):
        real = tables.get(table.name)
        if real is not None:
            table.set("this", exp.to_identifier(real.parts[-1], quoted=True))
            for key, part in zip(("db", "catalog"), real.parts[-2::-1], strict=False):
                table.set(key, exp.to_identifier(part, quoted=True))
    return node


def named(name: TableName) -> str:
    """A table's name as SQL."""
    return ".".join(quoted(part) for part in name.parts)
