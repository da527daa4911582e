"""A MERGE and the schemas of its tables: the plain MERGE, whose source has answered all queries beforehand. Pure.

Delta runs no queries in ON and WHEN. Each becomes a column more of the source, asked for each of its rows. A query
about a column of the target is asked for each row of the source together with each combination of the target's columns
that it depends on, and that ON allows: rows of the target are found again by these.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, build_scope

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.change import RowChange
from lakewarden.jobs.sql.compile.clauses import Clauses, MergeClause, Seen
from lakewarden.jobs.sql.compile.emission import distinct_rows, key_of, named, sql_of
from lakewarden.jobs.sql.compile.keyed_merge import KeyedMerge, MergeAction
from lakewarden.jobs.sql.compile.meaning.conditions import as_counts, with_conditions
from lakewarden.jobs.sql.compile.meaning.expressions import translated
from lakewarden.jobs.sql.compile.meaning.nondeterminism import chances, with_distinct_on
from lakewarden.jobs.sql.compile.meaning.storing import assigned
from lakewarden.jobs.sql.compile.merges.untouched import KEY, THERE, without_untouched
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.reading import Draft
from lakewarden.jobs.sql.compile.resolving import columns_set, looked_up
from lakewarden.jobs.sql.compile.type_families import Family, family_of
from lakewarden.jobs.sql.compile.values import (
    Compiled,
    Dialect,
    MatchPolicy,
    SqlStep,
    StepKind,
    TableName,
    TableSchema,
    quoted,
)

__all__ = ["merge_compiled"]

_ANSWER: Final = "lakewarden_q"
_JOINED: Final = "lakewarden_joined"
_ASKED: Final = "Delta allows no queries in the conditions of a MERGE: its source answers them."
_SAID: Final = "The same in Spark's words."
_NOTE: Final = (
    "A query in a condition is asked for each row of the source, whether the row has a match or not."
)

Schemas = Mapping[TableName, TableSchema]


@dataclass(frozen=True, kw_only=True)
class _Ask:
    """A query, or a condition that holds one: where it stood is a column of the source now."""

    name: str
    node: exp.Expr
    far: bool
    """It depends on the target."""
    in_on: bool
    """It stood in ON."""


def merge_compiled(draft: Draft, schemas: Schemas, policy: MatchPolicy) -> Compiled:
    """The plain MERGE; where the policy says so, without pairs of rows that no clause is about.

    Raises `UsageError`, with the place, for what cannot be asked, or means something else."""
    assert draft.merge is not None
    dialect = draft.dialects[0]
    named_ = _with_names(draft, schemas)
    clauses = named_.merge
    assert clauses is not None
    types = [
        dict(columns_set(_setting(named_.change, clause), schemas[draft.tables[0]]))
        for clause in clauses.each
    ]
    query, tables = looked_up(named_, schemas)
    _refuse_unseen(clauses, query)
    _fold_sources(query)
    query, notes = translated(with_distinct_on(query), dialect)
    told = dict.fromkeys((*draft.change.notes, *notes, *(note for _, note in chances(query, dialect))))
    parts = iter([one.unalias().copy() for one in query.expressions])
    done = _filled(clauses, types, parts, dialect)
    merge = _Merge(draft, query, tables, done, drops_untouched=policy.agreeing)
    sql = merge.sql()
    if merge.asks:
        told = dict.fromkeys((_NOTE, *told))
    step = SqlStep(
        kind=StepKind.MERGE, target=draft.tables[0], sql=sql, because=_ASKED if merge.asks else _SAID
    )
    return Compiled(
        dialect=dialect, target=draft.tables[0], matches=MatchPolicy(), steps=(step,), notes=tuple(told)
    )


def _with_names(draft: Draft, schemas: Schemas) -> Draft:
    """INSERT without names of columns means all of them."""
    assert draft.merge is not None
    columns = schemas[draft.tables[0]]
    each = []
    for clause in draft.merge.each:
        if clause.inserts and not clause.inserts[0].column.name:
            if len(clause.inserts) != len(columns):
                raise UsageError(
                    f"INSERT has {len(clause.inserts)} values, and {draft.tables[0]} has "
                    f"{len(columns)} columns.",
                    hint="Write the names of columns: INSERT (k, a) VALUES (s.k, s.a).",
                )
            pairs = zip(clause.inserts, columns, strict=True)
            clause = replace(
                clause, inserts=tuple(replace(one, column=exp.column(column.name)) for one, column in pairs)
            )
        each.append(clause)
    return replace(draft, merge=replace(draft.merge, each=tuple(each)))


def _setting(change: RowChange, clause: MergeClause) -> RowChange:
    return replace(change, assignments=clause.assignments)


def _filled(
    clauses: Clauses,
    types: Sequence[Mapping[str, exp.DataType]],
    parts: Iterator[exp.Expr],
    dialect: Dialect,
) -> Clauses:
    """The clauses with their resolved parts: values as they are stored."""
    on = next(parts)
    each = []
    for clause, kinds in zip(clauses.each, types, strict=True):
        condition = None if clause.condition is None else next(parts)
        columns = kinds.items()
        values = tuple(
            replace(one, column=exp.column(name, quoted=True), value=assigned(next(parts), kind, dialect))
            for one, (name, kind) in zip(clause.assignments, columns, strict=True)
        )
        each.append(
            replace(
                clause,
                condition=condition,
                sets=values if clause.sets else (),
                inserts=values if clause.inserts else (),
            )
        )
    return Clauses(on=on, each=tuple(each))


def _fold_sources(query: exp.Select) -> None:
    """A join behind USING as one query, which gives what is read of it."""
    first, *more = query.args["joins"]
    if not more:
        return
    tables, names = {join.this.alias for join in (first, *more)}, dict[tuple[str, str], exp.Expr]()
    joining = {id(column) for join in more for column in join.find_all(exp.Column)}
    scope = build_scope(query)
    assert isinstance(scope, Scope)
    for column in scope.columns:  # a query inside may have a table of the same name
        if column.table in tables and id(column) not in joining:
            one = exp.alias_(column.copy(), f"c{len(names)}", quoted=True)
            name = names.setdefault((column.table, column.name), one).alias
            column.set("this", exp.to_identifier(name, quoted=True))
            column.set("table", exp.to_identifier(_JOINED, quoted=True))
    joined = exp.Select(
        expressions=list(names.values()) or [exp.alias_(exp.true(), "c0")],
        from_=exp.From(this=first.this),
        joins=more,
    )
    query.set("joins", [exp.Join(this=joined.subquery(exp.to_identifier(_JOINED, quoted=True), copy=False))])


def _refuse_unseen(clauses: Clauses, query: exp.Select) -> None:
    """Raise `UsageError` for a column of the table that a clause does not see."""
    sources = {join.this.alias for join in query.args["joins"]}
    owners = {Seen.SOURCE: {query.args["from_"].this.alias}, Seen.TARGET: sources}
    resolved = iter([one.unalias() for one in query.expressions])
    next(resolved)
    for clause in clauses.each:
        for _ in range(len(clause.assignments) + (clause.condition is not None)):
            part = next(resolved)
            odd = next(
                (one for one in _outer_columns(part, query) if one.table in owners.get(clause.seen, ())), None
            )
            if odd is not None:
                raise wrong_in(
                    odd.this,
                    f"{clause.seen} does not see {odd.name} of {odd.table}.",
                    hint="There is no such row then.",
                )


class _Merge:
    """The statement while it is put together: queries become columns of the source."""

    def __init__(
        self,
        draft: Draft,
        query: exp.Select,
        tables: Mapping[str, TableName],
        clauses: Clauses,
        *,
        drops_untouched: bool,
    ) -> None:
        self._draft, self._query, self._tables, self._clauses = draft, query, tables, clauses
        self._drops_untouched = drops_untouched
        self._target, self._source = _items(query)
        self.asks: list[_Ask] = []

    def sql(self) -> str:
        """The whole."""
        on = self._answered(self._clauses.on, in_on=True)
        actions = [self._action(clause) for clause in self._clauses.each]
        source, on = self._asked(on)
        return KeyedMerge(
            target=f"{named(self._draft.tables[0])} AS {quoted(self._target.alias)}",
            source=f"({sql_of(source, self._tables)}) AS {quoted(self._source.alias)}",
            matches=[self._say(on)],
            actions=actions,
        ).sql()

    def _action(self, clause: MergeClause) -> MergeAction:
        condition = clause.condition
        return MergeAction(
            seen=clause.seen,
            condition="" if condition is None else self._say(self._answered(condition, clause=clause)),
            sets=[
                (quoted(one.column.name), self._say(self._answered(one.value, clause=clause)))
                for one in clause.assignments
            ],
        )

    def _say(self, node: exp.Expr) -> str:
        return sql_of(exp.paren(node) if isinstance(node, exp.Or) else node, self._tables)

    def _answered(
        self, part: exp.Expr, *, in_on: bool = False, clause: MergeClause | None = None
    ) -> exp.Expr:
        """The part with columns of the source in place of its queries."""
        holder = exp.Paren(this=part.copy())
        for node in list(holder.walk(bfs=False, prune=_is_ask)):
            if not _is_ask(node):
                continue
            if clause is not None and clause.seen is Seen.TARGET:
                raise wrong_in(
                    node,
                    f"{clause.seen} asks no query: there is no row of the source then.",
                    hint="Write a DELETE or UPDATE of its own for these rows.",
                )  # fmt: skip
            far = any(one.table == self._target.alias for one in _outer_columns(node, self._query))
            ask = _Ask(
                name=f"{_ANSWER}{len(self.asks)}",
                node=self._without_existence(node.copy()),
                far=far,
                in_on=in_on,
            )
            self.asks.append(ask)
            node.replace(self._of_source(ask.name))
        answered: exp.Expr = holder.this
        return answered

    def _asked(self, on: exp.Expr) -> tuple[exp.Select, exp.Expr]:
        """The source with its answers, and what joins it with the target."""
        near = [ask for ask in self.asks if not ask.far]
        far = [ask for ask in self.asks if ask.far]
        source = self._source.copy()
        if not far and not self._drops_untouched:
            return self._with_ctes(self._select(near, source)), on
        before = any(ask.in_on for ask in far)
        keys = self._keys(on if not before else self._clauses.on, far)
        own = [
            exp.alias_(key_of((self._target.alias, key), keys), f"{KEY}{n}", quoted=True)
            for n, key in enumerate(keys)
        ]
        rows = distinct_rows(self._target.this, self._target.alias, list(keys), _floats(keys))
        if self._drops_untouched:
            rows.this.append("expressions", exp.alias_(exp.true(), THERE, quoted=True))
        if before:
            if any(clause.seen is not Seen.BOTH for clause in self._clauses.each):
                raise wrong_in(
                    next(ask.node for ask in far if ask.in_on),
                    "ON asks a query about the table that is changed, and there are clauses "
                    "for rows without a match.",
                    hint="Ask it in WHEN MATCHED AND ..., or write two statements.",
                )  # fmt: skip
            select = self._select([ask for ask in self.asks if not ask.in_on], source, more=own)
            select.append("joins", exp.Join(this=rows))
            select = self._touched(select.where(self._clauses.on.copy()))
            return self._with_ctes(with_conditions(select)), self._same(keys)
        if near:
            alias = exp.TableAlias(this=exp.to_identifier(self._source.alias, quoted=True))
            source = exp.Subquery(this=self._select(near, source), alias=alias)
        select = self._select(far, source, more=own)
        select.append("joins", exp.Join(this=rows, side="LEFT", on=on.copy()))
        select = with_conditions(self._touched(select))
        return self._with_ctes(select), exp.And(this=exp.paren(on), expression=self._same(keys))

    def _touched(self, select: exp.Select) -> exp.Select:
        if not self._drops_untouched:
            return select
        return without_untouched(select, self._target.alias, self._clauses)

    def _select(self, asks: Sequence[_Ask], source: exp.Expr, more: Sequence[exp.Expr] = ()) -> exp.Select:
        everything = exp.Column(this=exp.Star(), table=exp.to_identifier(self._source.alias, quoted=True))
        return exp.Select(expressions=[everything, *more, *self._answers(asks)], from_=exp.From(this=source))

    def _answers(self, asks: Sequence[_Ask]) -> list[exp.Expr]:
        """The queries as values, IN and EXISTS with the NULL that they may have."""
        query = self._query.copy()
        query.set("expressions", [exp.alias_(ask.node.copy(), ask.name, quoted=True) for ask in asks])
        return list(with_conditions(query).expressions)

    def _keys(self, on: exp.Expr, far: Sequence[_Ask]) -> Mapping[str, exp.DataType | None]:
        """The columns of the target that ON or a query depends on, those that are floating-point with their types."""
        found: dict[str, exp.DataType | None] = {}
        own = [
            one.condition for one in self._clauses.each if one.condition is not None and one.seen is Seen.BOTH
        ]
        for node in (on, *(ask.node for ask in far), *(own if self._drops_untouched else ())):
            for column in _outer_columns(node, self._query):
                if column.table == self._target.alias:
                    floats = family_of(column) is Family.FLOAT and isinstance(column.type, exp.DataType)
                    found[column.name] = column.type.copy() if floats and column.type else None
        return found

    def _same(self, keys: Mapping[str, exp.DataType | None]) -> exp.Expr:
        """Whether a row of the target is one of those that the source has joined."""
        return exp.and_(
            *(
                exp.NullSafeEQ(
                    this=key_of((self._target.alias, key), keys), expression=self._of_source(f"{KEY}{n}")
                )
                for n, key in enumerate(keys)
            ),
            copy=False,
        )

    def _of_source(self, name: str) -> exp.Column:
        return exp.column(name, table=self._source.alias, quoted=True)

    def _with_ctes(self, select: exp.Select) -> exp.Select:
        if self._query.args.get("with_") is not None:
            select.set("with_", self._query.args["with_"].copy())
        return select

    def _without_existence(self, node: exp.Expr) -> exp.Expr:
        """A condition about the target itself: Delta 4.4 cannot read it where Spark makes an existence join of IN or
        EXISTS. Scalar queries are fine, so it counts."""
        target = self._draft.tables[0]
        asked = next((one for one in node.find_all(exp.Table) if self._tables.get(one.name) == target), None)
        if isinstance(node, exp.Query) or asked is None:
            return node
        counted = as_counts(node)
        if counted is None:
            raise wrong_in(
                asked,
                f"This condition of a MERGE may not ask {target}, the table that is changed.",
                hint="Count instead, as in 0 < (SELECT count(*) FROM ...), or ask in the "
                     "WHERE of a query in USING.",
            )  # fmt: skip
        return counted


def _floats(keys: Mapping[str, exp.DataType | None]) -> Mapping[str, exp.DataType]:
    return {key: kind for key, kind in keys.items() if kind is not None}


def _items(query: exp.Select) -> tuple[exp.Table, exp.Expr]:
    target = query.args["from_"].this
    assert isinstance(target, exp.Table)
    return target, query.args["joins"][0].this


def _outer_columns(part: exp.Expr, query: exp.Select) -> list[exp.Column]:
    """The columns of the target and the source that a part depends on, also inside its queries."""
    alone = exp.Select(
        expressions=[exp.alias_(part.copy(), "part")],
        from_=query.args["from_"].copy(),
        joins=[join.copy() for join in query.args["joins"]],
    )
    scope = build_scope(alone)
    assert isinstance(scope, Scope)
    return list(scope.columns)


def _is_ask(node: exp.Expr) -> bool:
    quantified = isinstance(node, exp.Binary) and isinstance(node.expression, exp.Any | exp.All)
    asks = (isinstance(node, exp.In) and node.args.get("query") is not None) or quantified
    return asks or isinstance(node, exp.Exists | exp.Query)
