"""Two snapshots of an Iceberg table, for a comparison of their rows.

What a snapshot has of a data file is told by the file and the deletes that concern it, by position, by equality or by
vector: Iceberg's own planning names them. Where both snapshots have the same file with the same deletes, and understand
its columns alike, the file is not read. Each is read with the columns that it had.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ExecutionError
from lakewarden.catalog.formats.iceberg.metadata import MAIN
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, frame_of
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.row_comparison import ComparedVersion, compared, own_session
from lakewarden.jobs.runs.row_diff import DiffRequest, RowDiff

__all__ = ["row_diff"]

_ReadFile = tuple[str, frozenset[tuple[str, int | None]]]
"""The place of a data file, and those of the deletes that concern it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _PlannedSnapshot:
    """A table whose head is one of its snapshots, with the columns that it had then, and how its files are read."""

    table: Any
    tasks: Sequence[tuple[_ReadFile, Any]]

    @property
    def schema(self) -> Any:
        return self.table.schema()

    def files(self) -> "Counter[_ReadFile]":
        """How often it has each: some writers add a file twice."""
        return Counter(state for state, _ in self.tasks)


def row_diff(table: JavaTable, request: DiffRequest) -> RowDiff:
    """Compare the two versions as `compared`. Raises `ExecutionError`, too, if a version has expired."""
    action = f"compare two versions of {request.name}"
    with translated(action), own_session(table.spark) as session, ExitStack() as until:
        head, target = (_planned(table, _snapshot(table, one)) for one in (request.head, request.target))
        shared: AbstractSet[tuple[_ReadFile, int]] = frozenset()
        if _are_read_alike(head.schema, target.schema):
            shared = head.files().items() & target.files().items()
        same = frozenset(state for state, _ in shared)
        return compared(
            _compared(session, head, same, until), _compared(session, target, same, until), request
        )


def _snapshot(table: JavaTable, version: int) -> Any:
    for one in table.base.snapshots():
        if int(one.sequenceNumber()) == version:
            return one
    raise ExecutionError(
        f"Version {version} of {table.location} has expired: its rows cannot be compared.",
        hint="`lakewarden tables history` lists the versions that are there.",
    )


def _planned(table: JavaTable, snapshot: Any) -> _PlannedSnapshot:
    jvm: Any = table.spark._jvm
    iceberg = jvm.org.apache.iceberg
    builder = iceberg.TableMetadata.buildFrom(table.base).setBranchSnapshot(snapshot.snapshotId(), MAIN)
    if snapshot.schemaId() is not None:
        builder.setCurrentSchema(snapshot.schemaId())
    operations = iceberg.StaticTableOperations(builder.build(), table.table.io())
    frozen = iceberg.BaseTable(operations, table.table.name())
    deletes = bool(snapshot.deleteManifests(table.table.io()).size())
    planned = frozen.newScan().planFiles()
    try:
        tasks = [(_state(one, deletes=deletes), one) for one in planned.iterator()]
    finally:
        planned.close()
    return _PlannedSnapshot(table=frozen, tasks=tasks)


def _state(task: Any, *, deletes: bool) -> _ReadFile:
    """Where a snapshot has no deletes at all, no file is asked for its own: there may be many files."""
    concerning = task.deletes() if deletes else ()
    told = frozenset((str(one.location()), one.contentOffset()) for one in concerning)
    return str(task.file().location()), told


def _are_read_alike(one: Any, other: Any) -> bool:
    """Whether a file has the same values in the columns that both have by name: these are the same columns, by id."""
    columns = {str(field.name()).lower(): field for field in other.columns()}
    pairs = ((field, columns.get(str(field.name()).lower())) for field in one.columns())
    return all(_are_same(field, its) for field, its in pairs if its is not None)


def _are_same(one: Any, other: Any) -> bool:
    """A type tells the ids of the fields within it."""
    if one.fieldId() != other.fieldId():
        return False
    kinds = one.type(), other.type()
    return str(kinds[0].toString()) == str(kinds[1].toString()) or all(
        kind.isPrimitiveType() for kind in kinds
    )


def _compared(
    spark: SparkSession, version: _PlannedSnapshot, shared: Collection[_ReadFile], until: ExitStack
) -> ComparedVersion:
    whole = frame_of(spark, _spark_tables(spark).SparkTable(version.table))
    if not shared:
        return ComparedVersion(whole=whole, apart=whole)
    tasks = [task for state, task in version.tasks if state not in shared]
    if not tasks:
        return ComparedVersion(whole=whole, apart=whole.limit(0))
    name = f"lakewarden-{uuid4().hex}"
    _stage(spark, version.table, name, tasks, until)
    staged = _spark_tables(spark).SparkRewriteTable(version.table, name)
    return ComparedVersion(whole=whole, apart=frame_of(spark, staged))


def _stage(spark: SparkSession, table: Any, name: str, tasks: Sequence[Any], until: ExitStack) -> None:
    """Keep under a name which files a scan is to read, until the end: what a scan of a rewritten table asks for."""
    jvm: Any = spark._jvm
    kept, listed = jvm.org.apache.iceberg.spark.ScanTaskSetManager.get(), jvm.java.util.ArrayList()
    for one in tasks:
        listed.add(one)
    kept.stageTasks(table, name, listed)
    until.callback(kept.removeTasks, table, name)


def _spark_tables(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.spark.source
