"""Metadata of Iceberg tables that is joined or taken away: many small manifests, branches that runs of ours left."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.iceberg.backlog import is_own_branch
from lakewarden.catalog.model.lineage_record import RUN_ID
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, marked
from lakewarden.jobs.engines.iceberg.staged import staged
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.runs.port import FileChange

__all__ = ["drop_branches", "join_manifests", "left_branches"]


def join_manifests(table: JavaTable, marks: Mapping[str, str]) -> FileChange:
    """Rewrite head's manifests into as few as their size allows. Raises `ConflictError`, and head is as it was, if it
    moved."""
    current = table.base.currentSnapshot()
    if current is None:
        return FileChange(version=None)
    inner = staged(table)
    with translated(f"rewrite the manifests of {table.location}"):
        count = Counter(int(one.partitionSpecId()) for one in current.allManifests(table.table.io()))
        for spec_id in (spec_id for spec_id, manifests in count.items() if manifests > 1):
            marked(table.actions().rewriteManifests(inner.table).specId(spec_id), marks).execute()
    reach("iceberg.manifests_rewritten")
    made = inner.publish(f"publish the manifests of {table.location}")
    reach("iceberg.manifests_published")
    return FileChange(version=None) if made is None else _change(current, made, table)


def _change(before: Any, made: Any, table: JavaTable) -> FileChange:
    old, new = (
        {str(one.path()): int(one.length()) for one in snapshot.allManifests(table.table.io())}
        for snapshot in (before, made.currentSnapshot())
    )
    gone = old.keys() - new.keys()
    return FileChange(
        version=int(made.currentSnapshot().sequenceNumber()),
        files_removed=len(gone),
        bytes_removed=sum(old[path] for path in gone),
        files_added=len(new.keys() - old.keys()),
    )


def left_branches(table: JavaTable) -> tuple[str, ...]:
    """The branches that runs of ours made: one that is left over pins files."""
    return tuple(
        str(name) for name, ref in table.base.refs().items() if ref.isBranch() and _is_own(table, name, ref)
    )


def drop_branches(table: JavaTable) -> int:
    """Drop them. Raises `ConflictError` if anybody has committed since the table was opened."""
    names = left_branches(table)

    def change(builder: Any) -> None:
        for name in names:
            builder.removeRef(name)

    if names:
        table.commit(change, f"drop branches of {table.location}")
    return len(names)


def _is_own(table: JavaTable, name: str, ref: Any) -> bool:
    snapshot = table.base.snapshot(ref.snapshotId())
    return is_own_branch(str(name), None if snapshot is None else snapshot.summary().get(RUN_ID))
