"""Rollback of Iceberg tables: a new snapshot that is made from an older one, and has exactly its files, becomes main.

Made from the older one, not from head: then an expiry by Iceberg's own library keeps the files that head had deleted
(apache/iceberg#2131), and whoever reads what was appended since finds nothing. It carries the run's id, as a commit of
any format. Rows, schema and properties go back by the commit that makes it main, on exactly one head. That one, and
the new snapshot, get tags with an end of their own: whatever expires meanwhile, the undo finds what was done, and what
to go back to.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from lakewarden.catalog.errors import ConflictError, ExecutionError, PreconditionError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.iceberg.commits import LEFT, RESTORED
from lakewarden.catalog.formats.iceberg.metadata import MAIN
from lakewarden.catalog.formats.iceberg.released import UNDO_TAGS
from lakewarden.catalog.formats.registry import is_kept
from lakewarden.catalog.model.rollbacks import UNDO
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable
from lakewarden.jobs.engines.iceberg.summaries import take_over
from lakewarden.jobs.engines.spark.errors import translated

__all__ = ["fence", "left_tag", "made_tag", "not_ours", "require_told", "restore", "until"]

_REFUSED: Final = "InvalidOperationException"
"""What the Hive metastore says to an entry that it does not take."""
_WAITING: Final = timedelta(days=7)
"""A rollback may wait as long for a person before it is done, and its time to be undone begins."""


def restore(
    table: JavaTable,
    *,
    to: int,
    properties: Mapping[str, str],
    marks: Mapping[str, str],
    run_id: str,
    lasts: timedelta,
    undoes: int | None = None,
) -> int:
    """Make version `to` main again, with its schema and the table's `properties` of then; the new version. Tags on it
    and on head last for so long; an undo takes away the one that was for it. `undoes` is the version that a rollback
    made, where this is its undo. Raises `ConflictError` if anybody committed since the table was opened,
    `PreconditionError` if the version has expired, its columns would not fit, or columns were changed since head was
    made, or since what is undone."""
    head, target = table.base.currentSnapshot(), _snapshot(table, to)
    if undoes is None:
        require_told(table, head)
    else:
        _require_same_columns(table, _snapshot(table, undoes))
    schema_id = target.schemaId()
    changes_schema = schema_id is not None and schema_id != table.base.currentSchemaId()
    if changes_schema:
        _require_fitting(table, schema_id)
    left = int(head.sequenceNumber())
    told = {**marks, LEFT: str(left), RESTORED: str(to)}
    made = _same_files(table, target, told, schema_id if changes_schema else None)
    reach("iceberg.drafted")
    is_undo = undoes is not None
    tags = {made_tag(run_id): made} if is_undo else {made_tag(run_id): made, left_tag(run_id): head}
    lost, set_again = _differences(table, properties)

    def change(builder: Any) -> None:
        builder.setBranchSnapshot(made, MAIN)
        take_over(builder, table.base, int(target.snapshotId()), int(made.snapshotId()), table.spark._jvm)
        if changes_schema:
            builder.setCurrentSchema(schema_id)
        builder.removeProperties(lost)
        builder.setProperties(set_again)
        if is_undo:
            builder.removeRef(left_tag(run_id.removesuffix(UNDO)))
        for name, snapshot in tags.items():
            builder.setRef(name, until(table, snapshot, lasts))

    try:
        table.commit(change, f"restore {table.location} to version {to}")
    except ExecutionError as error:
        if changes_schema and _REFUSED in str(error):
            raise PreconditionError(
                f"The metastore does not take the columns that version {to} of {table.location} had; "
                "nothing was changed.",
                hint="With hive.metastore.disallow.incompatible.col.type.changes=false it does.",
            ) from error
        raise
    reach("iceberg.restored")
    return int(made.sequenceNumber())


def fence(table: JavaTable, *, marks: Mapping[str, str], run_id: str, lasts: timedelta) -> int:
    """A snapshot with the files of head, made from it, and tagged. Raises `ConflictError` as `restore`."""
    head = table.base.currentSnapshot()
    made = _same_files(table, head, {**marks, LEFT: str(head.sequenceNumber())}, None)

    def change(builder: Any) -> None:
        builder.setBranchSnapshot(made, MAIN)
        builder.setRef(made_tag(run_id), until(table, made, lasts))

    table.commit(change, f"commit to {table.location}")
    return int(made.sequenceNumber())


def not_ours(properties: Mapping[str, str]) -> Mapping[str, str]:
    """The properties that a rollback takes back: all but retention and what we keep there."""
    return {key: value for key, value in properties.items() if not is_kept(key)}


def _snapshot(table: JavaTable, version: int) -> Any:
    for one in table.base.snapshots():
        if int(one.sequenceNumber()) == version:
            return one
    raise PreconditionError(
        f"Version {version} of {table.location} has expired: it can no longer be restored.",
        hint="Choose a later version (`lakewarden tables history`), or restore a backup.",
    )


def require_told(table: JavaTable, head: Any) -> None:
    """Raise `PreconditionError` if somebody has changed columns since head was made: no version says so, and no plan,
    and it would be taken back as well, by this act or by its undo."""
    if head.schemaId() is not None and head.schemaId() != table.base.currentSchemaId():
        raise PreconditionError(
            f"Somebody has changed columns of {table.location} since version {head.sequenceNumber()} was made, "
            "which would be taken back, and no plan tells.",
            hint="Change them back, or append to the table first: then a plan has it.",
        )


def _require_same_columns(table: JavaTable, made: Any) -> None:
    """Raise `PreconditionError` if the columns are not those that a rollback left, whether a version tells of that
    since (a compaction has the columns of its time) or none."""
    if made.schemaId() is not None and made.schemaId() != table.base.currentSchemaId():
        raise PreconditionError(
            f"Somebody has changed columns of {table.location} since its rollback (version {made.sequenceNumber()}), "
            "which an undo would take back.",
            hint="Change them back first, or leave the table as it is (`undo --leave`).",
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


def _same_files(table: JavaTable, like: Any, marks: Mapping[str, str], schema_id: int | None) -> Any:
    """A snapshot of exactly the files of another one, made from it, with its list of manifests written; in no metadata
    so far. `schema_id`: its schema, None for the table's. Raises `ConflictError` as `restore`."""
    jvm: Any = table.spark._jvm
    with translated(f"write a snapshot of {table.location}"):
        draft = jvm.org.apache.iceberg.Transactions.newTransaction(
            table.table.name(), table.table.operations()
        )
        if draft.startMetadata().metadataFileLocation() != table.base.metadataFileLocation():
            raise ConflictError(f"{table.location} moved past the head on which this was decided.")
        draft.manageSnapshots().setCurrentSnapshot(like.snapshotId()).commit()
        if schema_id is not None:
            now = draft.currentMetadata()
            then = jvm.org.apache.iceberg.TableMetadata.buildFrom(now).setCurrentSchema(schema_id).build()
            draft.table().operations().commit(now, then)  # in the draft alone
        update = draft.rewriteManifests()  # of which none is rewritten
        for key, value in marks.items():
            update.set(key, value)
        update.commit()
        return draft.currentMetadata().currentSnapshot()


def made_tag(run_id: str) -> str:
    """The tag on a snapshot that a run made."""
    return f"{left_tag(run_id)}-made"


def left_tag(run_id: str) -> str:
    """The tag on the head that a run left."""
    return f"{UNDO_TAGS}{run_id}"


def until(table: JavaTable, snapshot: Any, lasts: timedelta) -> Any:
    """A tag on a snapshot that lasts so long, and a wait, from now on; its age counts from when the snapshot was
    made."""
    jvm: Any = table.spark._jvm
    age = int(jvm.java.lang.System.currentTimeMillis()) - int(snapshot.timestampMillis())
    lasting = max(age, 0) + int((lasts + _WAITING).total_seconds() * 1000)
    return jvm.org.apache.iceberg.SnapshotRef.tagBuilder(snapshot.snapshotId()).maxRefAgeMs(lasting).build()


def _differences(table: JavaTable, wanted: Mapping[str, str]) -> tuple[Any, Any]:
    """The properties to take away, and those to set again, as Java has them; ours stay as they are."""
    jvm: Any = table.spark._jvm
    now, then = not_ours(dict(table.base.properties())), not_ours(wanted)
    lost, again = jvm.java.util.HashSet(), jvm.java.util.HashMap()
    for key in now.keys() - then.keys():
        lost.add(key)
    for key in then:
        if now.get(key) != then[key]:
            again.put(key, then[key])
    return lost, again
