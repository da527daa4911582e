"""A MERGE taken apart: what it does to a bucketed table, if that is known to come out the same bucket by bucket."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from lakewarden.catalog.model.bucket_layout import BucketLayout
from lakewarden.jobs.session.buckets.reading import BucketedTable, UnlikeBucketsError, table_of
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.reads import delta_index

__all__ = ["MergeParts", "merge_parts", "nodes_of", "require_keys_kept", "require_same_schema"]

_UPDATE: Final = "DeltaMergeIntoMatchedUpdateClause"
_DELETE: Final = "DeltaMergeIntoMatchedDeleteClause"
_OWN_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_CHAIN: Final = frozenset({"Aggregate", "Filter", "Project", "SubqueryAlias", "View"})
"""Nodes that read all rows of what is below them, and whose columns are told by name."""
_AGAIN: Final = frozenset(
    {
        *_CHAIN,
        "Distinct",
        "Join",
        "LocalRelation",
        "LogicalRelation",
        "OneRowRelation",
        "Range",
        "Sort",
        "Union",
    }
)
"""Nodes whose rows are the same when they are read again, if their expressions are."""
_LARGEST: Final = 48 * 1024 * 1024
"""Bytes of a bucket's files up to which its rows are kept in a hash table by the join. Rows of larger ones are
exchanged, sorted, and spill."""


@dataclass(frozen=True, kw_only=True)
class MergeParts:
    """What a MERGE does to its table."""

    merge: JavaPlan
    target: JavaPlan
    """The leaf that it changes."""
    table: BucketedTable
    """What that leaf reads."""
    source: tuple[JavaPlan, BucketedTable] | None
    """The leaf of the source, if it is read bucket by bucket."""
    condition: Any
    """Of a match that changes a row."""
    keys: tuple[Any, ...]
    """What the bucket columns of a match are equal to, of the source."""
    is_aligned: bool
    """Each task that reads the source has the rows of one bucket of the table."""
    chosen: tuple[Any, ...]
    """The parts of the condition that are about the source alone."""
    values: tuple[tuple[str, Any, Any], ...]
    """Each column's name, what is in it, and what a match puts there."""
    deletes: bool
    """A match takes the row away, and puts nothing anywhere."""


def merge_parts(plans: Plans, merge: JavaPlan, snapshot: Any, layout: BucketLayout) -> MergeParts:
    """What an analysed and pinned MERGE does to this version of its target, which has a `layout`. Raises
    `UnlikeBucketsError` if it is not known to come out the same."""
    clauses = plans.sequence(merge.matchedClauses())
    others = (merge.notMatchedClauses(), merge.notMatchedBySourceClauses())
    if len(clauses) != 1 or not all(one.isEmpty() for one in others):
        raise UnlikeBucketsError("is changed by more than one UPDATE or DELETE")
    if merge.schemaEvolutionEnabled() or merge.canMergeSchema():
        raise UnlikeBucketsError("gets other columns")
    target, *rest = plans.leaves(merge.target())
    if rest or kind(target) != "LogicalRelation":
        raise UnlikeBucketsError("is read in a way that is not known")
    require_same_schema(merge.targetFileIndex().metadata(), snapshot.metadata())
    mine = table_of(plans, snapshot, layout)
    (clause,) = clauses
    deletes = kind(clause) == _DELETE
    chosen = plans.option(clause.condition())
    if deletes and chosen is not None:
        raise UnlikeBucketsError("loses rows by a condition of WHEN MATCHED")
    condition = merge.condition()
    if chosen is not None:
        condition = plans.sql.catalyst.expressions.And(condition, chosen)
    values = _columns(plans, merge) if deletes else _values(plans, merge, clause)
    require_keys_kept(mine, values)
    parts = list(_conjuncts(condition))
    _require_same_again(plans, merge.source(), parts)
    of_source = merge.source().outputSet()
    source, keys = _source(plans, merge.source(), mine), _keys(parts, mine, values, of_source)
    return MergeParts(
        merge=merge, target=target, table=mine, source=source, condition=condition, keys=keys,
        is_aligned=source is not None and _is_aligned(plans, *source, keys),
        chosen=tuple(part for part in parts if part.references().subsetOf(of_source)),
        values=values, deletes=deletes,
    )  # fmt: skip


def nodes_of(plans: Plans, plan: JavaPlan) -> Iterator[JavaPlan]:
    """A plan and what it is made of; not its subqueries."""
    yield plan
    for below in plans.sequence(plan.children()):
        yield from nodes_of(plans, below)


def require_same_schema(analysed: Any, now: Any) -> None:
    """Return if the metadata of a table are those that a statement was analysed with, and its columns have no type of
    their own. Raises `UnlikeBucketsError`."""
    if str(analysed.schemaString()) != str(now.schemaString()) or str(analysed.id()) != str(now.id()):
        raise UnlikeBucketsError("has other columns by now")
    if _OWN_TYPE in str(now.schemaString()):
        raise UnlikeBucketsError("has columns of type CHAR or VARCHAR")


def _columns(plans: Plans, merge: JavaPlan) -> tuple[tuple[str, Any, Any], ...]:
    return tuple((str(one.name()), one, one) for one in plans.sequence(merge.target().output()))


def _values(plans: Plans, merge: JavaPlan, clause: Any) -> tuple[tuple[str, Any, Any], ...]:
    """The old and the new value of each column, in the table's order."""
    if kind(clause) != _UPDATE:
        raise UnlikeBucketsError("is changed in a way that is not known")
    new: dict[str, Any] = {}
    for action in plans.sequence(clause.resolvedActions()):
        parts = [str(part) for part in plans.sequence(action.targetColNameParts())]
        new[".".join(parts).lower()] = action.expr()
    columns = _columns(plans, merge)
    if [name.lower() for name, _, _ in columns] != list(new):
        raise UnlikeBucketsError("is changed within its columns")
    return tuple((name, old, new[name.lower()]) for name, old, _ in columns)


def require_keys_kept(table: BucketedTable, values: Sequence[tuple[str, Any, Any]]) -> None:
    """Return if the bucket columns stay as they are, given each column's name, old and new value. Raises
    `UnlikeBucketsError`."""
    keys = {column.lower() for column in table.layout.columns}
    for name, old, new in values:
        if name.lower() in keys and not old.semanticEquals(new):
            raise UnlikeBucketsError(f"gets another {name}, which says in which bucket a row is")


def _conjuncts(condition: Any) -> Iterator[Any]:
    if kind(condition) != "And":
        yield condition
        return
    yield from _conjuncts(condition.left())
    yield from _conjuncts(condition.right())


def _keys(
    parts: Sequence[Any], table: BucketedTable, values: Sequence[tuple[str, Any, Any]], of_source: Any
) -> tuple[Any, ...]:
    """For each bucket column what it is equal to."""
    columns = {name.lower(): old for name, old, _ in values}
    equal = [(one.left(), one.right()) for one in parts if kind(one) == "EqualTo"]
    found = []
    for name in table.layout.columns:
        mine = columns[name.lower()]
        theirs = [
            there
            for pair in equal
            for here, there in (pair, pair[::-1])
            if here.semanticEquals(mine) and there.references().subsetOf(of_source)
        ]
        if not theirs:
            raise UnlikeBucketsError("is not joined by its bucket columns")
        found.append(theirs[0])
    return tuple(found)


def _require_same_again(plans: Plans, source: JavaPlan, parts: Sequence[Any]) -> None:
    """The source is read twice: for the buckets that it is about, and for what it does to them."""
    leaves = plans.leaves(source)
    if any(_is_delta(plans, leaf) and not leaf.relation().location().isTimeTravelQuery() for leaf in leaves):
        raise UnlikeBucketsError("is read by the statement itself")
    files = [leaf for leaf in leaves if kind(leaf) == "LogicalRelation"]
    same = (
        {kind(node) for node in nodes_of(plans, source)} <= _AGAIN
        and {kind(leaf) for leaf in leaves} <= _AGAIN
        and all(_is_delta(plans, leaf) for leaf in files)
        and all(bool(one.deterministic()) for one in (source, *parts))
        and source.subqueriesAll().isEmpty()
        and not plans.asks_for_the_time(
            reduce(lambda plan, part: plans.logical.Filter(part, plan), parts, source)
        )
    )
    if not same:
        raise UnlikeBucketsError("is changed by what may be another thing when it is read again")


def _source(plans: Plans, source: JavaPlan, table: BucketedTable) -> tuple[JavaPlan, BucketedTable] | None:
    """The one leaf of the source, if it is bucketed alike and each of its rows is read in the end: only a row that is
    read is known to be in its bucket."""
    *above, leaf = nodes_of(plans, source)
    if not {kind(node) for node in above} <= _CHAIN or not _is_delta(plans, leaf):
        return None
    try:
        found = table_of(plans, leaf.relation().location().getSnapshot())
    except UnlikeBucketsError:
        return None
    alike = found.layout.count == table.layout.count and found.largest <= _LARGEST
    return (leaf, found) if alike else None


def _is_aligned(plans: Plans, leaf: JavaPlan, table: BucketedTable, keys: Sequence[Any]) -> bool:
    """Whether the keys of the join are the bucket columns of the source, as they are read."""
    named = {str(one.name()).lower(): one for one in plans.sequence(leaf.output())}
    columns = [named[column.lower()] for column in table.layout.columns]
    pairs = zip(columns, keys, strict=False)
    return len(columns) == len(keys) and all(mine.semanticEquals(key) for mine, key in pairs)


def _is_delta(plans: Plans, leaf: JavaPlan) -> bool:
    return kind(leaf) == "LogicalRelation" and delta_index(plans, leaf.relation()) is not None
