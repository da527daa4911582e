"""Pins what a query reads: each table in its plan becomes that table at one version, before anything runs.

Works on the analysed plan, so it sees through views, temporary views, common table expressions and subqueries. All
readings of one table get the same version. `VERSION AS OF` in SQL is refused for a version that is not the head and
older than `delta.deletedFileRetentionDuration`; a pinned head stays readable when somebody commits after the pin.
"""

from dataclasses import dataclass
from typing import Any

from lakewarden.jobs.session.iceberg.snapshot_reads import (
    is_fixed,
    is_iceberg,
    key_of,
    pinned_leaf,
    read_of_table,
    unpinned_read,
)
from lakewarden.jobs.session.iceberg.written_tables import is_of_a_change
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.reads import changes_read, delta_index, delta_read, location_of, reads_of_leaf
from lakewarden.jobs.session.writes import Read

__all__ = ["Pinned", "pin"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pinned:
    """A query with fixed versions, and its reads."""

    plan: JavaPlan
    reads: tuple[Read, ...]
    reads_self: bool
    """The query reads its own target as of before the write; an older version of it is an input like any other."""
    fixed: tuple[Read, ...] = ()
    """The reads that had fixed versions before: given by the user, or kept in a cache."""

    def at_head(self, location: str) -> Read | None:
        """What is read of a table at the head that it had; None where it is read at fixed versions alone."""
        loose = self.reads[: len(self.reads) - len(self.fixed)]
        return next((read for read in loose if read.location == location), None)

    def fixes(self, location: str | None) -> bool:
        """Whether pinning the query again gives the same version of a table."""
        return any(read.version is not None and read.location == location for read in self.fixed)


def pin(
    plans: Plans,
    session: Any,
    plan: JavaPlan,
    *,
    target: str | None,
    cached: bool = True,
    snapshots: dict[str, Any] | None = None,
) -> Pinned:
    """Settle the versions of an analysed query. `target` is the canonical location that it will be written to.

    Cached data stays what it is: it has the versions it was computed from (unless `cached` is false). The
    target itself, read without a version, is left to the transaction of the write,
    which reads it at its own version and notices conflicts. `snapshots`, by location (of Iceberg tables by `key_of`),
    are those that other queries of the same statement read, and that of a target whose commit does not see to it; what
    is new is added.
    """
    cache = session.sharedState().cacheManager()
    if cached and not cache.isEmpty():
        plan = cache.useCachedData(plan)
    snapshots = {} if snapshots is None else snapshots
    given = frozenset(snapshots)
    pairs: list[tuple[Any, Any]] = []
    reads: list[Read] = []
    fixed: list[Read] = []
    own = False
    for leaf in plans.leaves(plan):
        relation = leaf.relation() if kind(leaf) == "LogicalRelation" else None
        if relation is not None and _follows_head(plans, relation):
            where = location_of(relation.location().path())
            if where == target:
                own = True
                continue
            snapshot = snapshots.setdefault(where, _head(relation))
            pairs.append((leaf, _at(plans, leaf, snapshot)))
            reads.append(delta_read(relation.location().path(), snapshot))
        elif relation is not None and _feeds_on(plans, relation):
            feed = _until(plans, relation)
            pairs.append((leaf, _with_relation(leaf, feed)))
            reads.append(changes_read(plans, feed))
        elif is_of_a_change(leaf):
            continue  # the target, whose version its commit has to meet
        elif kind(leaf) == "DataSourceV2Relation" and is_iceberg(leaf.table()):
            pinned = pinned_leaf(plans, leaf, snapshots)
            pairs += [] if pinned is None else [(leaf, pinned)]
            read = unpinned_read(leaf.table()) if pinned is None else read_of_table(pinned.table())
            if pinned is not None and is_fixed(leaf):
                fixed.append(read)
            elif read.location == target and pinned is not None and key_of(leaf.table()) in given:
                own = True
            else:
                reads.append(read)
        else:
            fixed += reads_of_leaf(plans, leaf)
    return Pinned(
        plan=plans.replaced(plan, pairs),
        reads=(*reads, *fixed),
        fixed=tuple(fixed),
        reads_self=own,
    )


def _follows_head(plans: Plans, relation: Any) -> bool:
    """Whether this reads a Delta table at its head when Spark gets there."""
    index = delta_index(plans, relation)
    return index is not None and not index.isTimeTravelQuery()


def _feeds_on(plans: Plans, relation: Any) -> bool:
    """Whether this reads a change feed up to its head when Spark gets there: without an end, or with one that the table
    has not come to."""
    if not kind(relation).endswith("DeltaCDFRelation"):
        return False
    end = plans.option(relation.endingVersion())
    return end is None or end > relation.snapshotWithSchemaMode().snapshot().version()


def _head(relation: Any) -> Any:
    """The head as a `Snapshot`. Raises what Spark raises if the analysed columns do not fit it any more."""
    return relation.location().getSnapshot()


def _at(plans: Plans, leaf: Any, snapshot: Any) -> Any:
    """The leaf, reading one version."""
    index = leaf.relation().location()
    fixed = index.copy(
        index.spark(),
        index.deltaLog(),
        index.path(),
        snapshot,
        index.catalogTableOpt(),
        index.partitionFilters(),
        True,
    )
    return plans.with_file_index(leaf, fixed)


def _until(plans: Plans, relation: Any) -> Any:
    """The change feed, up to the version it was analysed at."""
    schema = relation.snapshotWithSchemaMode()
    return relation.copy(
        schema,
        relation.sqlContext(),
        relation.catalogTableOpt(),
        relation.startingVersion(),
        plans.some_long(schema.snapshot().version()),
    )


def _with_relation(leaf: Any, relation: Any) -> Any:
    return leaf.copy(relation, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream())
