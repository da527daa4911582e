"""What the leaves of Spark's plans read: tables with versions as their formats know them, all else by its kind."""

import re
from collections.abc import Iterator
from typing import Any, Final

from lakewarden.jobs.session.plans import JavaPlan, Plans, kind, location_of
from lakewarden.jobs.session.session_formats import FORMATS, first_known
from lakewarden.jobs.session.writes import Read

__all__ = ["place_of_leaf", "reads_of", "reads_of_leaf", "unmoved_read", "versions_of"]

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


def unmoved_read(plans: Plans, leaf: Any) -> Read | None:
    """What a leaf of a plan that has run has read, of a table that has not moved since it was analysed; None for any
    other, and where the plan tells it."""
    name = kind(leaf)
    return first_known(one.unmoved_read(plans, leaf, name) for one in FORMATS)


def place_of_leaf(plans: Plans, leaf: Any) -> str | None:
    """Where the table with versions lies that a leaf of an analysed query reads; None for any other leaf."""
    name = kind(leaf)
    return first_known(one.place(plans, leaf, name) for one in FORMATS)


def reads_of_leaf(plans: Plans, leaf: Any) -> Iterator[Read]:
    """The reads of one leaf of a plan, see `reads_of`."""
    return _reads_of(plans, leaf, kind(leaf))


def _reads_of(plans: Plans, leaf: Any, name: str) -> Iterator[Read]:
    match name:
        case _ if name in _HARMLESS:
            return
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
        case _:
            found = first_known(one.reads(plans, leaf, name) for one in FORMATS)
            yield from _without_versions(plans, leaf, name) if found is None else found


def _without_versions(plans: Plans, leaf: Any, name: str) -> Iterator[Read]:
    """The read of a leaf that is none of a format's."""
    match name:
        case "LogicalRelation" | "FileSourceScanExec" | "RowDataSourceScanExec":
            yield from _relation(plans, leaf.relation())
        case "DataSourceV2Relation" | "DataSourceV2ScanRelation" | "BatchScanExec":
            table = (leaf.relation() if name == "DataSourceV2ScanRelation" else leaf).table()
            yield Read(location=str(table.name()), format=kind(table))
        case _:
            yield Read(location="", format=name)


def _relation(plans: Plans, relation: Any) -> Iterator[Read]:
    name = kind(relation)
    if plans.is_files(relation):
        for path in plans.sequence(relation.location().rootPaths()):
            yield Read(location=location_of(path), format=str(relation.toString()).lower())
    elif name == "JDBCRelation":
        # The table or query only: a JDBC URL may hold a password.
        yield Read(location=str(relation.jdbcOptions().tableOrQuery()), format="jdbc")
    else:
        yield Read(location="", format=name)


def _made_here(lineage: str) -> bool:
    """Whether the rows of an RDD come from this driver's own memory (`createDataFrame` of values). Pure."""
    names = set(_RDD.findall(lineage))
    return "ParallelCollectionRDD" in names and names <= _MADE_HERE
