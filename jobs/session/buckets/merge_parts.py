"""A MERGE taken apart: what it does to a bucketed table, if that is known to come out the same bucket by bucket."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.jobs.session.buckets.reading import BucketedTable, UnlikeBucketsError, table_of
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["MergeParts", "merge_parts", "nodes_of"]

_UPDATE: Final = "DeltaMergeIntoMatchedUpdateClause"
_DELETE: Final = "DeltaMergeIntoMatchedDeleteClause"
_OWN_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_KNOWN: Final = frozenset(
    {"Aggregate", "Filter", "Join", "LocalRelation", "LogicalRelation", "OneRowRelation", "Project", "Range",
     "SubqueryAlias", "View"}
)  # fmt: skip
"""Nodes of a source whose columns are told by name: what is read can be told from what is referred to."""


@dataclass(frozen=True, kw_only=True)
class MergeParts:
    """What a MERGE does to its table."""

    merge: JavaPlan
    target: JavaPlan
    """The leaf that it changes."""
    relations: tuple[tuple[JavaPlan, BucketedTable], ...]
    """The leaves that are read bucket by bucket, that one first."""
    condition: Any
    """Of a match that changes a row."""
    values: tuple[tuple[str, Any, Any], ...]
    """Each column's name, what is in it, and what a match puts there."""
    deletes: bool
    """A match takes the row away, and puts nothing anywhere."""

    @property
    def table(self) -> BucketedTable:
        """The table that is changed."""
        return self.relations[0][1]


def merge_parts(plans: Plans, merge: JavaPlan, snapshot: Any) -> MergeParts:
    """What an analysed and pinned MERGE does to this version of its target. Raises `UnlikeBucketsError` if it is not
    known to come out the same."""
    clauses = plans.sequence(merge.matchedClauses())
    others = (merge.notMatchedClauses(), merge.notMatchedBySourceClauses())
    if len(clauses) != 1 or not all(one.isEmpty() for one in others):
        raise UnlikeBucketsError("is changed by more than one UPDATE or DELETE")
    if merge.schemaEvolutionEnabled() or merge.canMergeSchema():
        raise UnlikeBucketsError("gets other columns")
    target, *rest = plans.leaves(merge.target())
    if rest or kind(target) != "LogicalRelation":
        raise UnlikeBucketsError("is read in a way that is not known")
    _require_same_schema(merge, snapshot)
    mine = table_of(plans, snapshot)
    (clause,) = clauses
    deletes = kind(clause) == _DELETE
    chosen = plans.option(clause.condition())
    if deletes and chosen is not None:
        raise UnlikeBucketsError("loses rows by a condition of WHEN MATCHED")
    condition = merge.condition()
    if chosen is not None:
        condition = plans.sql.catalyst.expressions.And(condition, chosen)
    values = _columns(plans, merge) if deletes else _values(plans, merge, clause)
    _require_keys_kept(mine, values)
    return MergeParts(
        merge=merge, target=target, relations=((target, mine), *_sources(plans, merge.source())),
        condition=condition, values=values, deletes=deletes,
    )  # fmt: skip


def nodes_of(plans: Plans, plan: JavaPlan) -> Iterator[JavaPlan]:
    """A plan and what it is made of; not its subqueries."""
    yield plan
    for below in plans.sequence(plan.children()):
        yield from nodes_of(plans, below)


def _require_same_schema(merge: JavaPlan, snapshot: Any) -> None:
    analysed, now = merge.targetFileIndex().metadata(), snapshot.metadata()
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


def _require_keys_kept(table: BucketedTable, values: Sequence[tuple[str, Any, Any]]) -> None:
    keys = {column.lower() for column in table.layout.columns}
    for name, old, new in values:
        if name.lower() in keys and not old.semanticEquals(new):
            raise UnlikeBucketsError(f"gets another {name}, which says in which bucket a row is")


def _sources(plans: Plans, source: JavaPlan) -> tuple[tuple[JavaPlan, BucketedTable], ...]:
    """The leaves of the source that can be read bucket by bucket. Others are read as they are, and exchanged."""
    if any(_is_head(plans, leaf) for leaf in plans.leaves(source)):
        raise UnlikeBucketsError("is read by the statement itself")
    if not {kind(node) for node in nodes_of(plans, source)} <= _KNOWN:
        return ()
    found: list[tuple[JavaPlan, BucketedTable]] = []
    for leaf in plans.sequence(source.collectLeaves()):
        if _is_delta(plans, leaf):
            with suppress(UnlikeBucketsError):
                found.append((leaf, table_of(plans, leaf.relation().location().getSnapshot())))
    return tuple(found)


def _is_delta(plans: Plans, leaf: JavaPlan) -> bool:
    if kind(leaf) != "LogicalRelation" or not plans.is_files(leaf.relation()):
        return False
    return kind(leaf.relation().location()) == "TahoeLogFileIndex"


def _is_head(plans: Plans, leaf: JavaPlan) -> bool:
    """Whether a leaf has no version of its own: only the table that is changed is left like that."""
    return _is_delta(plans, leaf) and not leaf.relation().location().isTimeTravelQuery()
