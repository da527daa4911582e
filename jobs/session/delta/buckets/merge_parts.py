"""A MERGE taken apart: what it does to a bucketed table, if that is known to come out the same bucket by bucket."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from lakewarden.catalog.model.bucket_layout import BucketLayout
from lakewarden.jobs.session.delta.buckets.reading import BucketedTable, table_of
from lakewarden.jobs.session.delta.delta_reads import delta_index
from lakewarden.jobs.session.delta.merges.merge_work import (
    LARGEST,
    ClauseAction,
    LeftToDeltaError,
    MergeWork,
    work_of,
)
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["MergeParts", "merge_parts", "require_keys_kept"]

_KEPT: Final = "LogicalRDD"
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
_EXACT: Final = frozenset({"Count", "Max", "Min"})
_WHOLE: Final = ("long", "bigint", "decimal")
"""Types of which sums do not depend on the order."""
_COLLATED: Final = "string collate"
"""Texts that are equal without being the same: a group is called by one of them."""
_CASTS: Final = frozenset({"Cast", "CheckOverflowInTableWrite", "KnownNotNull"})
"""Nodes around a value that may change its type, and nothing else that is compared."""


@dataclass(frozen=True, kw_only=True)
class MergeParts(MergeWork):
    """What a MERGE does to its bucketed table."""

    table: BucketedTable
    """What its leaf reads."""
    is_repeatable: bool
    """The source has the same rows when it is read again."""
    source: tuple[JavaPlan, BucketedTable] | None
    """The leaf of the source, if it is read bucket by bucket."""
    keys: tuple[Any, ...]
    """What the bucket columns of a match are equal to, of the source."""
    is_aligned: bool
    """Each task that reads the source has the rows of one bucket of the table."""
    chosen: tuple[Any, ...]
    """Conditions that are about the source alone: no row that does not hold them changes anything."""


def merge_parts(
    plans: Plans, merge: JavaPlan, snapshot: Any, layout: BucketLayout, *, is_kept: bool = False
) -> MergeParts:
    """What an analysed and pinned MERGE does to this version of its target, which has a `layout`; `is_kept`: the rows
    of its source are in Spark's stores. Raises `LeftToDeltaError` if it is not known to come out the same."""
    work = work_of(plans, merge, snapshot)
    mine = table_of(plans, snapshot, layout)
    columns, matched, inserts = work.columns, work.matched, work.inserts
    parts = list(_conjuncts(merge.condition()))
    keys = _keys(parts, mine, columns, merge.source().outputSet())
    for one in matched:
        if one.does != "delete":
            told = zip(columns, one.values, strict=True)
            others = [
                (name, old, new)
                for (name, old), new in told
                if not _is_matched_by(plans, mine, name, new, keys)
            ]
            require_keys_kept(mine, others)
    for one in inserts:
        _require_keys_inserted(plans, mine, columns, one, keys)
    asked = [*parts, *(one.condition for one in (*matched, *inserts) if one.condition is not None)]
    is_repeatable = _is_repeatable(plans, merge.source(), asked, is_kept=is_kept)
    source = _source(plans, merge.source(), mine) if is_repeatable else None
    return MergeParts(
        merge=merge, target=work.target, table=mine, rows=work.rows, is_repeatable=is_repeatable, source=source,
        condition=work.condition, keys=keys,
        is_aligned=source is not None and _is_aligned(plans, *source, keys),
        chosen=_chosen(parts, matched, inserts, merge.source().outputSet()),
        columns=columns, matched=matched, inserts=inserts,
    )  # fmt: skip


def require_keys_kept(table: BucketedTable, values: Sequence[tuple[str, Any, Any]]) -> None:
    """Return if the bucket columns stay as they are, given each column's name, old and new value. Raises
    `LeftToDeltaError`."""
    keys = {column.lower() for column in table.layout.columns}
    for name, old, new in values:
        if name.lower() in keys and not old.semanticEquals(new):
            raise LeftToDeltaError(f"gets another {name}, which says in which bucket a row is")


def _conjuncts(condition: Any) -> Iterator[Any]:
    if kind(condition) != "And":
        yield condition
        return
    yield from _conjuncts(condition.left())
    yield from _conjuncts(condition.right())


def _chosen(
    parts: Sequence[Any], matched: Sequence[ClauseAction], inserts: Sequence[ClauseAction], of_source: Any
) -> tuple[Any, ...]:
    if inserts:
        return ()  # what matches nothing is inserted
    if len(matched) == 1 and matched[0].condition is not None:
        parts = [*parts, *_conjuncts(matched[0].condition)]
    return tuple(part for part in parts if part.references().subsetOf(of_source))


def _keys(
    parts: Sequence[Any], table: BucketedTable, values: Sequence[tuple[str, Any]], of_source: Any
) -> tuple[Any, ...]:
    """For each bucket column what it is equal to."""
    columns = {name.lower(): old for name, old in values}
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
            raise LeftToDeltaError("is not joined by its bucket columns")
        found.append(theirs[0])
    return tuple(found)


def _require_keys_inserted(
    plans: Plans,
    table: BucketedTable,
    columns: Sequence[tuple[str, Any]],
    insert: ClauseAction,
    keys: Sequence[Any],
) -> None:
    """Return if new rows have in the bucket columns what they are matched by. Casts may differ: each row that is
    written is hashed."""
    new = {name.lower(): value for (name, _), value in zip(columns, insert.values, strict=True)}
    for name, key in zip(table.layout.columns, keys, strict=True):
        if not _bare(plans, new[name.lower()]).semanticEquals(_bare(plans, key)):
            raise LeftToDeltaError(f"gets rows with another {name} than they are matched by")


def _is_matched_by(plans: Plans, table: BucketedTable, name: str, new: Any, keys: Sequence[Any]) -> bool:
    """Whether a bucket column gets what its row is matched by, as `UPDATE SET *` does it."""
    pairs = zip(table.layout.columns, keys, strict=True)
    bare = _bare(plans, new)
    return any(
        name.lower() == column.lower() and bare.semanticEquals(_bare(plans, key)) for column, key in pairs
    )


def _bare(plans: Plans, value: Any) -> Any:
    while kind(value) in _CASTS:
        value = value.child()
    return value


def _is_repeatable(plans: Plans, source: JavaPlan, parts: Sequence[Any], *, is_kept: bool) -> bool:
    """Whether the source has the same rows when it is read again: for the buckets that it is about, and for what it
    does to them. Raises `LeftToDeltaError` if what is asked of them may have another answer then."""
    leaves = plans.leaves(source)
    if any(_is_delta(plans, leaf) and not leaf.relation().location().isTimeTravelQuery() for leaf in leaves):
        raise LeftToDeltaError("is read by the statement itself")
    one_row = plans.logical.OneRowRelation()
    conditions = reduce(lambda plan, part: plans.logical.Filter(part, plan), parts, one_row)
    if plans.asks_for_the_time(conditions) or not all(bool(one.deterministic()) for one in parts):
        raise LeftToDeltaError("is changed by what may be another thing when it is asked again")
    known = {*_AGAIN, _KEPT} if is_kept else _AGAIN
    return (
        {kind(node) for node in plans.nodes(source)} <= known
        and {kind(leaf) for leaf in leaves} <= known
        and all(_is_delta(plans, leaf) for leaf in leaves if kind(leaf) == "LogicalRelation")
        and bool(source.deterministic())
        and source.subqueriesAll().isEmpty()
        and not plans.asks_for_the_time(source)
        and all(_is_exact(plans, node) for node in plans.nodes(source))
    )


def _is_exact(plans: Plans, node: JavaPlan) -> bool:
    """Whether a node gives the same values in whichever order its rows come. Spark calls more than that deterministic:
    of several rows with the greatest value, `max_by` takes the one that comes first."""
    if any(str(one.dataType().typeName()).startswith(_COLLATED) for one in plans.sequence(node.output())):
        return False
    if kind(node) != "Aggregate":
        return True
    waiting = list(plans.sequence(node.aggregateExpressions()))
    while waiting:
        one = waiting.pop()
        if kind(one) == "AggregateExpression":
            function = one.aggregateFunction()
            whole = str(function.dataType().typeName()).startswith(_WHOLE)
            if kind(function) not in _EXACT and not (kind(function) == "Sum" and whole):
                return False
        waiting += plans.sequence(one.children())
    return True


def _source(plans: Plans, source: JavaPlan, table: BucketedTable) -> tuple[JavaPlan, BucketedTable] | None:
    """The one leaf of the source, if it is bucketed alike and each of its rows is read in the end: only a row that is
    read is known to be in its bucket."""
    *above, leaf = plans.nodes(source)
    if not {kind(node) for node in above} <= _CHAIN or not _is_delta(plans, leaf):
        return None
    try:
        read = table_of(plans, leaf.relation().location().getSnapshot())
    except LeftToDeltaError:
        return None
    found = read.in_buckets(table.layout.count)
    return (leaf, found) if found is not None and found.largest <= LARGEST else None


def _is_aligned(plans: Plans, leaf: JavaPlan, table: BucketedTable, keys: Sequence[Any]) -> bool:
    """Whether the keys of the join are the bucket columns of the source, as they are read."""
    named = {str(one.name()).lower(): one for one in plans.sequence(leaf.output())}
    columns = [named[column.lower()] for column in table.layout.columns]
    pairs = zip(columns, keys, strict=False)
    return len(columns) == len(keys) and all(mine.semanticEquals(key) for mine, key in pairs)


def _is_delta(plans: Plans, leaf: JavaPlan) -> bool:
    return kind(leaf) == "LogicalRelation" and delta_index(plans, leaf.relation()) is not None
