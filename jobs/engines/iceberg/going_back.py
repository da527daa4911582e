"""Rollback of Iceberg tables: a new snapshot that is made from an older one, and has exactly its files, becomes main.

Made from the older one, not from head: then an expiry by Iceberg's own library keeps the files that head had deleted
(apache/iceberg#2131), and whoever reads what was appended since finds nothing. It carries the run's id, as a commit of
any format. Rows, schema and properties go back by the commit that makes it main, on exactly one head; that one
keeps a tag with an end of its own.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.iceberg.commits import LEFT, RESTORED
from lakewarden.catalog.formats.iceberg.metadata import MAIN
from lakewarden.catalog.formats.iceberg.released import UNDO_TAGS
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable
from lakewarden.jobs.engines.spark.errors import translated

__all__ = ["fence", "restore"]

_OURS: Final = "lakewarden."
"""How properties begin that no rollback touches."""
_WAITING: Final = timedelta(days=7)
"""A rollback may wait as long for a person before it is done, and its time to be undone begins."""


def restore(
    table: JavaTable,
    *,
    to: int,
    properties: Mapping[str, str],
    marks: Mapping[str, str],
    tag: str,
    undo_for: timedelta,
) -> int:
    """Make version `to` main again, with the table's `properties` of then; the new version. Head is tagged, unless this
    takes back what itself went back. Raises `ConflictError` if anybody committed since the table was opened,
    `PreconditionError` if the version has expired, or its columns would not fit."""
    head = table.base.currentSnapshot()
    target = _snapshot(table, to)
    schema_id = target.schemaId()
    changes_schema = schema_id is not None and schema_id != table.base.currentSchemaId()
    if changes_schema:
        _require_fitting(table, schema_id)
    left = int(head.sequenceNumber())
    made = _same_files(table, target, {**marks, LEFT: str(left), RESTORED: str(to)})
    reach("iceberg.drafted")
    is_undo = head.summary().get(LEFT) == str(to)
    old_tags = [name for name, ref in table.base.refs().items() if _is_on(name, ref, target)]
    ref = None if is_undo else _until(table, head, undo_for + _WAITING)
    lost, set_again = _differences(table, properties)

    def change(builder: Any) -> None:
        builder.setBranchSnapshot(made, MAIN)
        if changes_schema:
            builder.setCurrentSchema(schema_id)
        builder.removeProperties(lost)
        builder.setProperties(set_again)
        for name in old_tags:
            builder.removeRef(name)
        if ref is not None:
            builder.setRef(f"{UNDO_TAGS}{tag}", ref)

    table.commit(change, f"restore {table.location} to version {to}")
    reach("iceberg.restored")
    return int(made.sequenceNumber())


def fence(table: JavaTable, marks: Mapping[str, str]) -> int:
    """A snapshot with the files of head, made from it. Raises `ConflictError` as `restore`."""
    head = table.base.currentSnapshot()
    made = _same_files(table, head, {**marks, LEFT: str(head.sequenceNumber())})

    def change(builder: Any) -> None:
        builder.setBranchSnapshot(made, MAIN)

    table.commit(change, f"commit to {table.location}")
    return int(made.sequenceNumber())


def _snapshot(table: JavaTable, version: int) -> Any:
    for one in table.base.snapshots():
        if int(one.sequenceNumber()) == version:
            return one
    raise PreconditionError(
        f"Version {version} of {table.location} has expired: it can no longer be restored.",
        hint="Choose a later version (`lakewarden tables history`), or restore a backup.",
    )


def _require_fitting(table: JavaTable, schema_id: int) -> None:
    """Raise `PreconditionError` if the table is partitioned or sorted by a column that the older schema lacks."""
    schema = table.base.schemasById().get(schema_id)
    for what, fields in (("partitioned", table.base.spec()), ("sorted", table.base.sortOrder())):
        for field in fields.fields():
            if schema.findField(field.sourceId()) is None:
                column = table.base.schema().findColumnName(field.sourceId())
                raise PreconditionError(
                    f"{table.location} is {what} by {column}, a column that the version to be restored does not have.",
                    hint=f"Its owner can change by what it is {what}; then the rollback can be planned anew.",
                )


def _same_files(table: JavaTable, like: Any, marks: Mapping[str, str]) -> Any:
    """A snapshot of exactly the files of another one, made from it, with its list of manifests written; in no metadata
    so far. Raises `ConflictError` as `restore`."""
    jvm: Any = table.spark._jvm
    with translated(f"write a snapshot of {table.location}"):
        draft = jvm.org.apache.iceberg.Transactions.newTransaction(
            table.table.name(), table.table.operations()
        )
        if draft.startMetadata().metadataFileLocation() != table.base.metadataFileLocation():
            raise ConflictError(f"{table.location} moved past the head on which this was decided.")
        draft.manageSnapshots().setCurrentSnapshot(like.snapshotId()).commit()
        update = draft.rewriteManifests()  # of which none is rewritten
        for key, value in marks.items():
            update.set(key, value)
        update.commit()
        return draft.currentMetadata().currentSnapshot()


def _is_on(name: str, ref: Any, snapshot: Any) -> bool:
    """Whether a tag of ours keeps a snapshot that main will be made from."""
    return name.startswith(UNDO_TAGS) and ref.isTag() and ref.snapshotId() == snapshot.snapshotId()


def _until(table: JavaTable, snapshot: Any, lasts: timedelta) -> Any:
    """A tag on a snapshot that lasts so long from now on; its age counts from when the snapshot was made."""
    jvm: Any = table.spark._jvm
    age = int(jvm.java.lang.System.currentTimeMillis()) - int(snapshot.timestampMillis())
    lasting = max(age, 0) + int(lasts.total_seconds() * 1000)
    return jvm.org.apache.iceberg.SnapshotRef.tagBuilder(snapshot.snapshotId()).maxRefAgeMs(lasting).build()


def _differences(table: JavaTable, wanted: Mapping[str, str]) -> tuple[Any, Any]:
    """The properties to take away, and those to set again, as Java has them; ours stay as they are."""
    jvm: Any = table.spark._jvm
    now = dict(table.base.properties())
    lost, again = jvm.java.util.HashSet(), jvm.java.util.HashMap()
    for key in now.keys() - wanted.keys():
        if not key.startswith(_OURS):
            lost.add(key)
    for key, value in wanted.items():
        if now.get(key) != value and not key.startswith(_OURS):
            again.put(key, value)
    return lost, again
