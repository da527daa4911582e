"""Compaction of Iceberg tables: on a branch that begins at the head which was decided on; the branch becomes main if
main has not moved.

A rewrite that Iceberg commits to main itself may come after an equality delete and an append of somebody else's, and
then brings the deleted rows back (apache/iceberg#10312); here, any commit to main in between makes it come to nothing.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from lakewarden.catalog.errors import ConflictError, LakewardenError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.iceberg.backlog import BRANCHES
from lakewarden.catalog.formats.iceberg.metadata import MAIN
from lakewarden.catalog.formats.spec import HeadOf
from lakewarden.jobs.engines.iceberg.delete_files import drop_dangling
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, beside_writers, marked
from lakewarden.jobs.engines.iceberg.own_metadata import left_branches
from lakewarden.jobs.engines.iceberg.row_order import ordering, packed
from lakewarden.jobs.engines.iceberg.summaries import change_since, take_over
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.runs.port import FileChange

__all__ = ["rewrite"]


def rewrite(
    table: JavaTable,
    heads: HeadOf,
    *,
    where: Any | None,
    options: Mapping[str, str],
    marks: Mapping[str, str],
    run_id: str,
    applies_deletes: bool = False,
    ordered: bool = False,
) -> FileChange:
    """Rewrite data files of head (`where`, an expression of Iceberg's: only those that may have rows for which it is
    true). `applies_deletes`: delete files that concern nothing any more then go as well. `ordered`: rows are written
    in the order that the table's owner wants. Raises `ConflictError`, and main is as it was, if it moved meanwhile."""
    current = table.base.currentSnapshot()
    if current is None:
        return FileChange(version=None)
    in_order = ordering(table) if ordered else packed
    begun_at, branch = int(current.snapshotId()), f"{BRANCHES}{run_id}"
    _begin(table, branch, begun_at)
    reach("iceberg.branched")
    try:
        _rewrite(table.again(), branch, in_order, where, options, marks)
        if applies_deletes:
            drop_dangling(table.again(), branch, marks)
        reach("iceberg.rewritten")
        return _publish(table.again(), branch, begun_at)
    except LakewardenError:
        with suppress(LakewardenError):  # else the next compaction drops it
            beside_writers(table.spark, heads, table.location, partial(_drop, branch=branch))
        raise


def _begin(table: JavaTable, branch: str, at: int) -> None:
    jvm: Any = table.spark._jvm
    left_over = left_branches(table)
    ref = jvm.org.apache.iceberg.SnapshotRef.branchBuilder(at).build()

    def change(builder: Any) -> None:
        for name in left_over:
            builder.removeRef(name)
        builder.setRef(branch, ref)

    table.commit(change, f"begin a branch of {table.location}")


def _rewrite(
    table: JavaTable,
    branch: str,
    in_order: Callable[[Any], Any],
    where: Any | None,
    options: Mapping[str, str],
    marks: Mapping[str, str],
) -> None:
    with translated(f"compact {table.location}"):
        action = in_order(table.actions().rewriteDataFiles(table.table).toBranch(branch))
        for key, value in options.items():
            action = action.option(key, value)
        if where is not None:
            action = action.filter(where)
        marked(action, marks).execute()


def _publish(table: JavaTable, branch: str, begun_at: int) -> FileChange:
    main, made = table.base.ref(MAIN), table.base.ref(branch)
    if main is None or made is None or int(main.snapshotId()) != begun_at:
        raise ConflictError(f"{table.location} was written to while it was compacted; nothing was changed.")
    snapshot = table.base.snapshot(made.snapshotId())
    is_new = int(snapshot.snapshotId()) != begun_at

    def change(builder: Any) -> None:
        if is_new:
            builder.setBranchSnapshot(snapshot.snapshotId(), MAIN)
            take_over(builder, table.base, begun_at, int(snapshot.snapshotId()), table.spark._jvm)
        builder.removeRef(branch)

    try:
        table.commit(change, f"publish the compaction of {table.location}")
    except ConflictError:
        # A catalog that loses its answer is asked again by Iceberg's library, and then says "failed".
        now = table.again().base.currentSnapshot()
        if not is_new or now is None or int(now.snapshotId()) != int(snapshot.snapshotId()):
            raise
    reach("iceberg.published")
    return change_since(begun_at, table.base, snapshot)


def _drop(table: JavaTable, branch: str) -> None:
    """The branch is no use any more; its files go with the next vacuum."""
    if table.base.ref(branch) is not None:
        table.commit(lambda builder: builder.removeRef(branch), f"drop a branch of {table.location}")
