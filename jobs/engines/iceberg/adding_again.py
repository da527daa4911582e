"""What a version had appended, appended to an Iceberg table once more: its rows are copied into new files.

A data file that left a table and comes back is deleted by a later expiry (apache/iceberg#2131), so none does. The copy
is one snapshot made from head, by one commit, with a tag that keeps whoever goes on with a killed run from making
another.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, Final

from lakewarden.catalog.errors import ExecutionError, PreconditionError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.iceberg.commits import LEFT
from lakewarden.jobs.engines.iceberg.going_back import made_tag, until
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, relation_of
from lakewarden.jobs.engines.iceberg.snapshot_scans import planned, read, snapshot_of
from lakewarden.jobs.engines.iceberg.staged import StagedTable, staged
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.engines.spark.row_comparison import own_session

__all__ = ["append_again"]

_MARK: Final = "spark.sql.iceberg.snapshot-property."
_ASIDE: Final = ("spark.wap.id", "spark.wap.branch")
"""Settings by which Spark would put the rows on another branch."""


def append_again(
    table: JavaTable, version: int, *, marks: Mapping[str, str], run_id: str, lasts: timedelta
) -> int:
    """Append the rows that a version had appended; the new version. Raises `PreconditionError` if the version has
    expired, one of its files is gone or the table has other columns by now, `ConflictError` if anybody committed since
    the table was opened."""
    old = snapshot_of(table, version)
    if old is None:
        raise PreconditionError(
            f"Version {version} of {table.location} has expired: nobody can tell its rows any more.",
            hint="Write those rows again by hand.",
        )
    _require_same_columns(table, old, version)
    inner = staged(table)
    _write(table, inner, old, {**marks, LEFT: str(table.base.currentSnapshot().sequenceNumber())})
    reach("iceberg.copied")

    def tagged(builder: Any, made: Any) -> None:
        builder.setRef(made_tag(run_id), until(table, made, lasts))

    published = inner.publish(f"add rows to {table.location} again", also=tagged)
    assert published is not None, "there is a snapshot"
    reach("iceberg.added_again")
    return int(published.currentSnapshot().sequenceNumber())


def _require_same_columns(table: JavaTable, old: Any, version: int) -> None:
    then = None if old.schemaId() is None else table.base.schemasById().get(old.schemaId())
    if then is None or not then.sameSchema(table.base.schema()):
        raise PreconditionError(
            f"{table.location} has other columns than at version {version}: its rows do not fit any more.",
            hint="Write those rows again by hand; `lakewarden tables history` shows who wrote them.",
        )


def _write(table: JavaTable, inner: StagedTable, old: Any, marks: Mapping[str, str]) -> None:
    """Copy the rows into a snapshot that nobody sees so far, by Spark."""
    action = f"copy rows of {table.location}"
    with translated(action), own_session(table.spark) as session, ExitStack() as until_done:
        for key in _ASIDE:
            session.conf.unset(key)
        for key, value in marks.items():
            session.conf.set(f"{_MARK}{key}", value)
        io = table.table.io()
        files = {str(one.location()): int(one.recordCount()) for one in old.addedDataFiles(io)}
        source = planned(table, old)
        tasks = [task for (path, deletes), task in source.tasks if path in files and not deletes]
        if len(tasks) != len(files):
            raise ExecutionError(f"{action}: it has other files than it added.", hint="")
        rows = read(session, source, tasks, until_done)
        columns = [quoted(str(one.name())) for one in source.table.schema().columns()]
        jvm: Any = table.spark._jvm
        plan = jvm.org.apache.spark.sql.catalyst.plans.logical.AppendData.byPosition(
            relation_of(session, jvm.org.apache.iceberg.spark.source.SparkTable(inner.table)),
            rows.select(*columns)._jdf.logicalPlan(),
            _nothing(jvm),
        )
        jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
        made = inner.transaction.currentMetadata().currentSnapshot()
        copied = int(made.summary().get("added-records") or 0)
        if copied != sum(files.values()):
            raise ExecutionError(f"{action}: {copied} of {sum(files.values())} rows came.", hint="")


def _nothing(jvm: Any) -> Any:
    """An empty map, as Scala has it."""
    return getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
