"""Pins what a query reads: each Delta table in its plan becomes that table at one version, before anything runs.

Works on the analysed plan, so it sees through views, temporary views, common table expressions and subqueries. All
readings of one table get the same version. `VERSION AS OF` in SQL is refused for a version that is not the head and
older than `delta.deletedFileRetentionDuration`; a pinned head stays readable when somebody commits after the pin.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakewarden.jobs.engine.plans import JavaPlan, Plans, kind
from lakewarden.jobs.engine.reads import location_of, reads_of
from lakewarden.jobs.writes import Read

__all__ = ["Pinned", "pin"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pinned:
    """A query whose versions are settled, and what it reads. `reads_self`: it reads the table it is written to."""

    plan: JavaPlan
    reads: tuple[Read, ...]
    reads_self: bool


def pin(plans: Plans, session: Any, plan: JavaPlan, *, target: str | None, cached: bool = True) -> Pinned:
    """Settle the versions of an analysed query. `target` is the canonical location that it will be written to.

    Cached data stays what it is: it has the versions it was computed from (unless `cached` is false). The target itself, read without a
    version, is left to the transaction of the write, which reads it at its own version and notices conflicts.
    """
    cache = session.sharedState().cacheManager()
    if cached and not cache.isEmpty():
        plan = cache.useCachedData(plan)
    snapshots: dict[str, Any] = {}
    pairs: list[tuple[Any, Any]] = []
    own = False
    for leaf in _delta_leaves(plans, plan):
        where = location_of(leaf.relation().location().path())
        if where == target:
            own = True
        else:
            pairs.append((leaf, _pinned_leaf(leaf, where, snapshots)))
    pairs += [(leaf, _pinned_changes(plans, leaf)) for leaf in _open_changes(plans, plan)]
    settled = plans.replaced(plan, pairs)
    reads = tuple(reads_of(plans, settled))
    return Pinned(plan=settled, reads=reads, reads_self=own or any(read.location == target for read in reads))


def _delta_leaves(plans: Plans, plan: JavaPlan) -> Sequence[Any]:
    """Delta tables that are read at whatever version is head when Spark gets to them."""
    return [
        leaf
        for leaf in plans.leaves(plan)
        if kind(leaf) == "LogicalRelation"
        and plans.is_files(leaf.relation())
        and kind(leaf.relation().location()) == "TahoeLogFileIndex"
        and not leaf.relation().location().isTimeTravelQuery()
    ]


def _pinned_leaf(leaf: Any, where: str, snapshots: dict[str, Any]) -> Any:
    relation = leaf.relation()
    index = relation.location()
    snapshot = index.getSnapshot()  # the head; refuses one that the analysed columns do not fit any more
    snapshot = snapshots.setdefault(where, snapshot)
    settled = index.copy(
        index.spark(),
        index.deltaLog(),
        index.path(),
        snapshot,
        index.catalogTableOpt(),
        index.partitionFilters(),
        True,
    )
    relation = relation.copy(
        settled,
        relation.partitionSchema(),
        relation.dataSchema(),
        relation.bucketSpec(),
        relation.fileFormat(),
        relation.options(),
        relation.sparkSession(),
    )
    return leaf.copy(relation, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream())


def _open_changes(plans: Plans, plan: JavaPlan) -> Sequence[Any]:
    """Change feeds that are read up to whatever version is head when Spark gets to them."""
    return [
        leaf
        for leaf in plans.leaves(plan)
        if kind(leaf) == "LogicalRelation"
        and kind(leaf.relation()).endswith("DeltaCDFRelation")
        and not leaf.relation().endingVersion().isDefined()
    ]


def _pinned_changes(plans: Plans, leaf: Any) -> Any:
    relation = leaf.relation()
    schema = relation.snapshotWithSchemaMode()
    settled = relation.copy(
        schema,
        relation.sqlContext(),
        relation.catalogTableOpt(),
        relation.startingVersion(),
        plans.some_long(schema.snapshot().version()),
    )
    return leaf.copy(settled, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream())
