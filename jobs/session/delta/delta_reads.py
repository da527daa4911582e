"""Delta tables in the plans of a user's session: which leaves read them, at which versions, and pinned to one.

Works on the analysed plan, so it sees through views, temporary views, common table expressions and subqueries. All
readings of one table get the same version. `VERSION AS OF` in SQL is refused for a version that is not the head and
older than `delta.deletedFileRetentionDuration`; a pinned head stays readable when somebody commits after the pin.
"""

from collections.abc import Sequence
from typing import Any, Final

from lakewarden.jobs.session.formats.plan_parts import PinnedLeaf, Pinning
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind, location_of
from lakewarden.jobs.session.writes import Read

__all__ = [
    "TABLE",
    "delta_index",
    "delta_read",
    "known_version",
    "makes_delta",
    "pinned_delta",
    "reads_of_delta",
    "unmoved_delta",
]

TABLE: Final = "DeltaTableV2"
"""Delta's table of Spark's second API."""
_LEAVES: Final = ("LogicalRelation", "FileSourceScanExec", "RowDataSourceScanExec")
_CHANGES: Final = "DeltaCDFRelation"
_TABLE_UTILS: Final = "org.apache.spark.sql.delta.DeltaTableUtils"
_NO_TABLE: Final = ("DeltaLogFileIndex", "TahoeBatchFileIndex")
"""Delta's own log, files of a running rewrite."""


def delta_read(path: Any, snapshot: Any) -> Read:
    """One version of a Delta table, given its `Path` and `Snapshot`."""
    return Read(
        location=location_of(path),
        format="delta",
        version=snapshot.version(),
        format_id=str(snapshot.metadata().id()),
    )


def unmoved_delta(plans: Plans, leaf: Any, name: str) -> Read | None:
    """What a leaf of a plan that has run has read, if that is a Delta table by its name that has not moved since it was
    analysed, as far as this application knows: a scan looks for the newest version, and tells of none. None for any
    other."""
    index = delta_index(plans, leaf.relation()) if name == "LogicalRelation" else None
    if index is None or index.isTimeTravelQuery():
        return None
    then, now = index.snapshotAtAnalysis(), index.deltaLog().unsafeVolatileSnapshot()
    if then.version() != now.version() or str(then.metadata().id()) != str(now.metadata().id()):
        return None
    return delta_read(index.path(), then)


def _changes_read(plans: Plans, relation: Any) -> Read:
    """The changes that a `DeltaCDFRelation` reads; both ends included there, the first one not in `from_version`. One
    that ends beyond head ends with head, as for Spark."""
    snapshot = relation.snapshotWithSchemaMode().snapshot()
    head = snapshot.version()
    begin, end = plans.option(relation.startingVersion()), plans.option(relation.endingVersion())
    return Read(
        location=location_of(snapshot.deltaLog().dataPath()),
        format="delta",
        version=head if end is None else min(end, head),
        from_version=-1 if begin is None else begin - 1,
        format_id=str(snapshot.metadata().id()),
    )


def delta_index(plans: Plans, relation: Any) -> Any | None:
    """The index of a Delta table's files, at head or at a version, if a relation reads them by one."""
    index = relation.location() if plans.is_files(relation) else None
    return index if index is not None and kind(index) == "TahoeLogFileIndex" else None


def makes_delta(plans: Plans, session: Any, plan: JavaPlan) -> bool:
    """Whether the table that a statement makes has Delta's format."""
    provider = plans.option(plan.tableSpec().provider())
    return str(provider or session.conf().get("spark.sql.sources.default")).lower() == "delta"


def known_version(log: Any) -> int:
    """What Delta has in mind of a table: nothing is read for it."""
    return int(log.unsafeVolatileSnapshot().version())


def reads_of_delta(plans: Plans, leaf: Any, name: str) -> Sequence[Read] | None:
    """What a leaf reads; None where it is none of Delta's."""
    if name not in _LEAVES:
        return None
    relation = leaf.relation()
    if not plans.is_files(relation):
        return (_changes_read(plans, relation),) if kind(relation).endswith(_CHANGES) else None
    index = relation.location()
    match kind(index):
        case "PreparedDeltaFileIndex":
            # The scan's own version; the snapshot it came from has the same one and the table's UUID.
            return (delta_read(index.path(), index.preparedScan().scannedSnapshot()),)
        case "TahoeLogFileIndex":
            if index.isTimeTravelQuery():
                return (delta_read(index.path(), index.getSnapshot()),)
            # Delta fixes no version where it leaves no file out (stats.skipping=false).
            return (Read(location=location_of(index.path()), format="delta"),)
        case other:
            return () if other in _NO_TABLE else None


def pinned_delta(plans: Plans, leaf: Any, name: str, by: Pinning) -> PinnedLeaf | None:
    """A leaf that follows a table's head, at one version. The target itself, read without a version, is left to the
    transaction of the write, which reads it at its own version and notices conflicts."""
    if name != "LogicalRelation":
        return None
    relation = leaf.relation()
    if _follows_head(plans, relation):
        where = location_of(relation.location().path())
        if where == by.target:
            return PinnedLeaf(is_own=True)
        snapshot = by.snapshots.setdefault(where, _head(relation))
        return PinnedLeaf(
            leaf=_at(plans, leaf, snapshot), read=delta_read(relation.location().path(), snapshot)
        )
    if _feeds_on(plans, relation):
        feed = _until(plans, relation)
        return PinnedLeaf(leaf=_with_relation(leaf, feed), read=_changes_read(plans, feed))
    return None


def _follows_head(plans: Plans, relation: Any) -> bool:
    """Whether this reads a Delta table at its head when Spark gets there."""
    index = delta_index(plans, relation)
    return index is not None and not index.isTimeTravelQuery()


def _feeds_on(plans: Plans, relation: Any) -> bool:
    """Whether this reads a change feed up to its head when Spark gets there: without an end, or with one that the table
    has not come to."""
    if not kind(relation).endswith(_CHANGES):
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
    return plans.class_named(_TABLE_UTILS).replaceFileIndex(leaf, fixed)


def _until(plans: Plans, relation: Any) -> Any:
    """The change feed, up to the version it was analysed at."""
    schema = relation.snapshotWithSchemaMode()
    return relation.copy(
        schema,
        relation.sqlContext(),
        relation.catalogTableOpt(),
        relation.startingVersion(),
        _some_long(plans, schema.snapshot().version()),
    )


def _with_relation(leaf: Any, relation: Any) -> Any:
    return leaf.copy(relation, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream())


def _some_long(plans: Plans, value: int) -> Any:
    """A Scala Option with this Long; py4j alone would make it an Integer."""
    jvm: Any = plans.spark.sparkContext._jvm
    return jvm.scala.jdk.javaapi.OptionConverters.toScala(plans.java.OptionalLong.of(value))
