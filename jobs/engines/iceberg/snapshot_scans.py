"""Snapshots of Iceberg tables for Spark to read: whole, or some of their files, with the columns that they had.

What a snapshot has of a data file is told by the file and the deletes that concern it, by position, by equality or by
vector: Iceberg's own planning names them.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.formats.iceberg.metadata import MAIN
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, frame_of

__all__ = ["PlannedSnapshot", "ReadFile", "planned", "read", "snapshot_of"]

ReadFile = tuple[str, frozenset[tuple[str, int | None]]]
"""The place of a data file, and those of the deletes that concern it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedSnapshot:
    """A table whose head is one of its snapshots, with the columns that it had then, and how its files are read."""

    table: Any
    """Iceberg's table."""
    tasks: Sequence[tuple[ReadFile, Any]]
    """For each file what it has of it, and the task of reading that."""

    @property
    def schema(self) -> Any:
        """Its columns."""
        return self.table.schema()

    def files(self) -> "Counter[ReadFile]":
        """How often it has each: some writers add a file twice."""
        return Counter(state for state, _ in self.tasks)


def snapshot_of(table: JavaTable, version: int) -> Any | None:
    """The snapshot of a version, None once it has expired."""
    return next((one for one in table.base.snapshots() if int(one.sequenceNumber()) == version), None)


def planned(table: JavaTable, snapshot: Any) -> PlannedSnapshot:
    """A snapshot of a table, and how its files are read."""
    jvm: Any = table.spark._jvm
    iceberg = jvm.org.apache.iceberg
    builder = iceberg.TableMetadata.buildFrom(table.base).setBranchSnapshot(snapshot.snapshotId(), MAIN)
    if snapshot.schemaId() is not None:
        builder.setCurrentSchema(snapshot.schemaId())
    operations = iceberg.StaticTableOperations(builder.build(), table.table.io())
    frozen = iceberg.BaseTable(operations, table.table.name())
    deletes = bool(snapshot.deleteManifests(table.table.io()).size())
    files = frozen.newScan().planFiles()
    try:
        tasks = [(_state(one, deletes=deletes), one) for one in files.iterator()]
    finally:
        files.close()
    return PlannedSnapshot(table=frozen, tasks=tasks)


def _state(task: Any, *, deletes: bool) -> ReadFile:
    """Where a snapshot has no deletes at all, no file is asked for its own: there may be many files."""
    concerning = task.deletes() if deletes else ()
    told = frozenset((str(one.location()), one.contentOffset()) for one in concerning)
    return str(task.file().location()), told


def read(spark: SparkSession, snapshot: PlannedSnapshot, tasks: Sequence[Any], until: ExitStack) -> DataFrame:
    """The rows of some of its files, to be read until the end; they have its columns, and perhaps more."""
    jvm: Any = spark._jvm
    name, listed = f"lakewarden-{uuid4().hex}", jvm.java.util.ArrayList()
    for one in tasks:
        listed.add(one)
    # Where actions that rewrite files keep them for their scans.
    kept = jvm.org.apache.iceberg.spark.ScanTaskSetManager.get()
    kept.stageTasks(snapshot.table, name, listed)
    until.callback(kept.removeTasks, snapshot.table, name)
    return frame_of(spark, jvm.org.apache.iceberg.spark.source.SparkRewriteTable(snapshot.table, name))
