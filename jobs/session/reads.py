"""What the leaves of Spark's plans read: Delta and Iceberg tables with their versions, everything else by its kind."""

import re
from collections.abc import Iterator
from typing import Any, Final

from lakewarden.catalog.storage.file_store import from_hadoop
from lakewarden.jobs.session.iceberg.snapshot_reads import is_iceberg, read_of_scan, unpinned_read
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.writes import Read

__all__ = [
    "changes_read",
    "delta_index",
    "delta_read",
    "location_of",
    "reads_of",
    "reads_of_leaf",
    "unmoved_read",
    "versions_of",
]

_HARMLESS: Final = frozenset(
    {
        "LocalRelation",
        "OneRowRelation",
        "Range",
        "EmptyRelation",
        "CTERelationRef",
        "LocalTableScanExec",
        "OneRowRelationExec",
        "RangeExec",
        "EmptyRelationExec",
        "ReusedSubqueryExec",
        "ReusedExchangeExec",
    }
)
"""Leaves whose rows are written in the statement itself, or that repeat another leaf of the same plan."""
_MADE_HERE: Final = frozenset({"ParallelCollectionRDD", "MapPartitionsRDD", "PythonRDD"})
_VERSIONED: Final = ("LogicalRelation", "InMemoryRelation", "DataSourceV2ScanRelation")
"""Leaves of optimised plans that may say which version they read."""
_RDD: Final = re.compile(r"\b(\w+)\[\d+\]")


def reads_of(plans: Plans, plan: JavaPlan) -> Iterator[Read]:
    """What a plan reads. Tables with versions only where these are fixed: in a pinned, optimised or physical plan."""
    for leaf in plans.leaves(plan):
        yield from reads_of_leaf(plans, leaf)


def versions_of(plans: Plans, plan: JavaPlan) -> Iterator[Read]:
    """The versions among what an optimised plan reads, and nothing else."""
    for leaf in plans.leaves(plan):
        name = kind(leaf)
        if name in _VERSIONED:
            yield from (read for read in _reads_of(plans, leaf, name) if read.version is not None)


def location_of(path: Any) -> str:
    """The canonical location of a Hadoop `Path`, which is never percent-encoded."""
    return from_hadoop(str(path.toString()))


def delta_read(path: Any, snapshot: Any) -> Read:
    """One version of a Delta table, given its `Path` and `Snapshot`."""
    return Read(
        location=location_of(path),
        format="delta",
        version=snapshot.version(),
        format_id=str(snapshot.metadata().id()),
    )


def unmoved_read(plans: Plans, leaf: Any) -> Read | None:
    """What a leaf of a plan that has run has read, if that is a Delta table by its name that has not moved since it was
    analysed, as far as this application knows: a scan looks for the newest version, and tells of none. None for any
    other."""
    index = delta_index(plans, leaf.relation()) if kind(leaf) == "LogicalRelation" else None
    if index is None or index.isTimeTravelQuery():
        return None
    then, now = index.snapshotAtAnalysis(), index.deltaLog().unsafeVolatileSnapshot()
    if then.version() != now.version() or str(then.metadata().id()) != str(now.metadata().id()):
        return None
    return delta_read(index.path(), then)


def changes_read(plans: Plans, relation: Any) -> Read:
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


def reads_of_leaf(plans: Plans, leaf: Any) -> Iterator[Read]:
    """The reads of one leaf of a plan, see `reads_of`."""
    return _reads_of(plans, leaf, kind(leaf))


def _reads_of(plans: Plans, leaf: Any, name: str) -> Iterator[Read]:
    match name:
        case _ if name in _HARMLESS:
            return
        case "LogicalRelation" | "FileSourceScanExec" | "RowDataSourceScanExec":
            yield from _relation(plans, leaf)
        case "InMemoryRelation":
            yield from reads_of(plans, leaf.cachedPlan())
        case "InMemoryTableScanExec":
            yield from reads_of(plans, leaf.relation().cachedPlan())
        case "AdaptiveSparkPlanExec":
            yield from reads_of(plans, leaf.inputPlan())
        case "LogicalRDD" | "RDDScanExec" | "ExternalRDD" | "ExternalRDDScanExec":
            if not _made_here(str(leaf.rdd().toDebugString())):
                yield Read(location="", format="rdd")
        case "HiveTableRelation":
            yield Read(location=str(leaf.tableMeta().identifier().unquotedString()), format="hive")
        case "DataSourceV2Relation" | "DataSourceV2ScanRelation" | "BatchScanExec":
            yield _second(leaf, name)
        case _:
            yield Read(location="", format=name)


def _second(leaf: Any, name: str) -> Read:
    """The read of a leaf of Spark's second API for tables."""
    table = (leaf.relation() if name == "DataSourceV2ScanRelation" else leaf).table()
    if not is_iceberg(table):
        return Read(location=str(table.name()), format=kind(table))
    return unpinned_read(table) if name == "DataSourceV2Relation" else read_of_scan(table, leaf.scan())


def _relation(plans: Plans, leaf: Any) -> Iterator[Read]:
    relation = leaf.relation()
    if plans.is_files(relation):
        yield from _files(plans, relation)
        return
    name = kind(relation)
    if name.endswith("DeltaCDFRelation"):
        yield changes_read(plans, relation)
    elif name == "JDBCRelation":
        # The table or query only: a JDBC URL may hold a password.
        yield Read(location=str(relation.jdbcOptions().tableOrQuery()), format="jdbc")
    else:
        yield Read(location="", format=name)


def _files(plans: Plans, relation: Any) -> Iterator[Read]:
    index = relation.location()
    name = kind(index)
    if name == "PreparedDeltaFileIndex":
        # The scan's own version; the snapshot it came from has the same one and the table's UUID.
        yield delta_read(index.path(), index.preparedScan().scannedSnapshot())
    elif name == "TahoeLogFileIndex":
        if index.isTimeTravelQuery():
            yield delta_read(index.path(), index.getSnapshot())
        else:  # Delta fixes no version where it leaves no file out (stats.skipping=false)
            yield Read(location=location_of(index.path()), format="delta")
    elif name not in (
        "DeltaLogFileIndex",
        "TahoeBatchFileIndex",
    ):  # Delta's own log, files of a running rewrite
        for path in plans.sequence(index.rootPaths()):
            yield Read(location=location_of(path), format=str(relation.toString()).lower())


def _made_here(lineage: str) -> bool:
    """Whether the rows of an RDD come from this driver's own memory (`createDataFrame` of values). Pure."""
    names = set(_RDD.findall(lineage))
    return "ParallelCollectionRDD" in names and names <= _MADE_HERE
