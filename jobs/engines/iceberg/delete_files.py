"""Delete files of Iceberg tables that are rewritten, or concern no file any more."""

from collections.abc import Mapping
from typing import Any

from lakewarden.catalog.failpoints import reach
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, marked
from lakewarden.jobs.engines.iceberg.staged import staged
from lakewarden.jobs.engines.iceberg.summaries import change_since
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.runs.port import FileChange

__all__ = ["drop_dangling", "join_positions"]


def join_positions(table: JavaTable, marks: Mapping[str, str], *, where: Any | None) -> FileChange:
    """Rewrite deletes by position into few files, without those of rows that are in no file any more (`where`: only
    those of files that may have rows for which it is true). Raises `ConflictError`, and head is as it was, if it
    moved."""
    current = table.base.currentSnapshot()
    if current is None:
        return FileChange(version=None)
    inner = staged(table)
    with translated(f"rewrite delete files of {table.location}"):
        action = table.actions().rewritePositionDeletes(inner.table).option("rewrite-all", "true")
        action = action if where is None else action.filter(where)
        marked(action, marks).execute()
    reach("iceberg.deletes_rewritten")
    made = inner.publish(f"publish the delete files of {table.location}")
    reach("iceberg.deletes_published")
    if made is None:
        return FileChange(version=None)
    return change_since(int(current.snapshotId()), made, made.currentSnapshot())


def drop_dangling(table: JavaTable, branch: str, marks: Mapping[str, str]) -> None:
    """Take delete files out of a branch that concern no row of it: those of files that were rewritten without the
    deleted rows."""
    with translated(f"drop delete files of {table.location}"):
        marked(table.actions().removeDanglingDeleteFiles(table.table).toBranch(branch), marks).execute()
