"""Two snapshots of an Iceberg table, for a comparison of their rows.

Where both snapshots have the same file with the same deletes, and understand its columns alike, the file is not read.
"""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from typing import Any

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ExecutionError
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, frame_of
from lakewarden.jobs.engines.iceberg.snapshot_scans import (
    PlannedSnapshot,
    ReadFile,
    planned,
    read,
    snapshot_of,
)
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.row_comparison import ComparedVersion, compared, own_session
from lakewarden.jobs.runs.row_diff import DiffRequest, RowDiff

__all__ = ["row_diff"]


def row_diff(table: JavaTable, request: DiffRequest) -> RowDiff:
    """Compare the two versions as `compared`. Raises `ExecutionError`, too, if a version has expired."""
    action = f"compare two versions of {request.name}"
    with translated(action), own_session(table.spark) as session, ExitStack() as until:
        head, target = (planned(table, _required(table, one)) for one in (request.head, request.target))
        shared: AbstractSet[tuple[ReadFile, int]] = frozenset()
        if _are_read_alike(head.schema, target.schema):
            shared = head.files().items() & target.files().items()
        same = frozenset(state for state, _ in shared)
        return compared(
            _compared(session, head, same, until), _compared(session, target, same, until), request
        )


def _required(table: JavaTable, version: int) -> Any:
    found = snapshot_of(table, version)
    if found is None:
        raise ExecutionError(
            f"Version {version} of {table.location} has expired: its rows cannot be compared.",
            hint="`lakewarden tables history` lists the versions that are there.",
        )
    return found


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
    spark: SparkSession, version: PlannedSnapshot, shared: Collection[ReadFile], until: ExitStack
) -> ComparedVersion:
    jvm: Any = spark._jvm
    whole = frame_of(spark, jvm.org.apache.iceberg.spark.source.SparkTable(version.table))
    if not shared:
        return ComparedVersion(whole=whole, apart=whole)
    tasks = [task for state, task in version.tasks if state not in shared]
    apart = read(spark, version, tasks, until) if tasks else whole.limit(0)
    return ComparedVersion(whole=whole, apart=apart)
