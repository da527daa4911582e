"""A judged write to an Iceberg table as one commit: on the state that it was analysed on, and with its record.

Spark's plan runs inside a transaction of Iceberg's library, which keeps what it commits to itself. What came of it is
looked at, and then published by one commit, exactly on the metadata that was read: the isolation that the table's
properties ask for does not matter. Rows that are appended, and read nothing of the table, may come after others'.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NoReturn

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.model.lineage_record import (
    OPERATION_ID,
    OPERATION_NUMBER,
    RECORD_KEY,
    RUN_ID,
    LineageRecord,
    custom_metadata,
    read_record,
)
from lakewarden.catalog.policy.rows_write import ROWS_WRITE
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError, UntoldWriteError
from lakewarden.jobs.session.formats.said_changes import changed_leaf
from lakewarden.jobs.session.frames import row_of
from lakewarden.jobs.session.iceberg.bucket_joins import join_by_buckets
from lakewarden.jobs.session.iceberg.marked_commits import (
    class_of,
    forget_marks,
    require_into_main,
    run_marked,
)
from lakewarden.jobs.session.iceberg.snapshot_lines import summaries_under
from lakewarden.jobs.session.iceberg.written_tables import WrittenTable
from lakewarden.jobs.session.plans import JavaPlan, Plans
from lakewarden.jobs.session.row_counts import NOTHING, UNKNOWN

__all__ = ["NumberedWrite", "StagedWrite"]

_MODES: Final = ("write.delete.mode", "write.merge.mode", "write.update.mode")
_LOST: Final = (
    "CommitFailedException",
    "ValidationException",
    "NoSuchTableException",
    "IllegalStateException",  # another table has the name
)
_FILES: Final = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
_MERGED: Final = tuple(
    f"spark.merge-into.num-target-rows-{one}" for one in ("inserted", "updated", "deleted")
)
_TIMES: Final = 5
_OURS: Final = "lakewarden."
_PART_OF_A_FILE: Final = "Cannot delete file where some, but not all, rows match filter"


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberedWrite:
    """A write under the id of an operation."""

    number: int
    version: int
    run_id: str | None
    record: LineageRecord | None
    """What it read."""


class StagedWrite:
    """One write of one statement, in a session that is a clone for it alone."""

    def __init__(
        self, plans: Plans, target: WrittenTable, *, is_alone: bool = False, mode: str | None = None
    ) -> None:
        """`is_alone`: it is made on exactly the table that was looked at, whatever it does. `mode`: for this write
        alone, the table's `write.merge.mode` and its like; it is made alone then."""
        self._plans, self._target, self._mode = plans, target, mode
        self._marks: Mapping[str, str] = {}
        self._transaction: Any = None
        self._is_committing = self._is_wanted = False
        self._is_alone = is_alone or mode is not None
        self._named: Mapping[str, str] = {}
        self._made: Any = None
        self._iceberg: Any = plans.spark._jvm.org.apache.iceberg  # type: ignore[union-attr]  # it is running

    @property
    def target(self) -> WrittenTable:
        """What it changes."""
        return self._target

    @property
    def version(self) -> int:
        """What the table was at when the statement was analysed."""
        return self._target.version

    def name(self, operation: str, number: int = 1) -> None:
        """Have the snapshot carry the id and number of an operation, and be made on exactly the table that was looked
        at."""
        self._is_alone = True
        self._named = {OPERATION_ID: operation, OPERATION_NUMBER: str(number)}

    def make_version(self) -> None:
        """Have it make a snapshot on exactly the table that was looked at, also if nothing changes."""
        self._is_alone = self._is_wanted = True

    def holds(self, operation: str) -> tuple[bool, LineageRecord | None]:
        """Whether main descends from a snapshot with the id of an operation, and the record of the newest, None where
        that cannot be read. A snapshot that has expired says nothing any more."""
        found = next(summaries_under(self._plans, self._target.base, operation), None)
        if found is None:
            return False, None
        return True, read_record(found[1].get(RECORD_KEY), None).record

    def numbered(self, operation: str) -> Iterator[NumberedWrite]:
        """The writes under the id of an operation that main descends from, newest first."""
        for version, told in summaries_under(self._plans, self._target.base, operation):
            number = as_whole(told.get(OPERATION_NUMBER, ""))
            if number is not None:
                record = read_record(told.get(RECORD_KEY), None).record
                yield NumberedWrite(number=number, version=version, run_id=told.get(RUN_ID), record=record)

    def merged_rows(self) -> tuple[int, int, int]:
        """The rows that a MERGE that is done has inserted, updated and deleted. Spark counts nothing where it only
        inserts."""
        if self._made is None:
            return 0, 0, 0
        told = self._made.summary()
        if told.get(_MERGED[0]) is None:
            return int(told.getOrDefault("added-records", "0")), 0, 0
        inserted, updated, deleted = (int(told.getOrDefault(key, "0")) for key in _MERGED)
        return inserted, updated, deleted

    def carry(self, session: Any, record: LineageRecord) -> None:
        """Have the snapshot carry a record, and nothing else that looks like ours. Raises `RefusedError` if the session
        would put the rows aside instead of into the table."""
        properties = self._plans.entries(self._target.base.properties())
        require_into_main(session, properties, self._target.location)
        forget_marks(self._plans, session)
        self._marks = {RUN_ID: record.run_id, **custom_metadata(record), **self._named}
        self._is_alone |= record.reads_self

    def in_mode(self, said: JavaPlan) -> JavaPlan:
        """A parsed UPDATE, DELETE or MERGE, whose target is the table as this write takes it: Spark asks its properties
        for the mode."""
        if self._mode is None:
            return said
        named, plans, target = changed_leaf(self._plans, said), self._plans, self._target.relation
        base, inner = self._target.base, self._target.table.table()
        metadata = (
            self._iceberg.TableMetadata.buildFrom(base)
            .setProperties(dict.fromkeys(_MODES, self._mode))
            .build()
        )
        frozen = self._iceberg.BaseTable(
            self._iceberg.StaticTableOperations(metadata, inner.io()), inner.name()
        )
        relation = plans.sql.execution.datasources.v2.DataSourceV2Relation.create(
            self._iceberg.spark.source.SparkTable(frozen), target.catalog(), plans.nothing
        )
        catalog, identifier = plans.option(target.catalog()), plans.option(target.identifier())
        if catalog is not None and identifier is not None:  # its columns may be called by it
            qualifier = [str(catalog.name()), *map(str, identifier.namespace())]
            called = plans.sql.catalyst.AliasIdentifier(
                str(identifier.name()), plans.scala_sequence(qualifier)
            )
            relation = plans.logical.SubqueryAlias(called, relation)
        return plans.replaced(said, [(named, relation)])

    def run(self, session: Any, plan: JavaPlan) -> DataFrame:
        """Run an analysed and pinned statement; what it changed is looked up where the table can be. Raises what Spark
        and Iceberg raise, `LostRaceError` if somebody committed before it began."""
        with self._plans.active(session):
            self._begin()
            join_by_buckets(self._plans, session, self._target, plan, self._table(plan))
            placed = self._target.placed(self._plans, plan, self._table(plan))
            placed.setAnalyzed()
            run_marked(self._plans, session, placed, self._marks)
            self._publish(plan)
            self._refresh(session)
        return row_of(self._plans.spark, asdict(NOTHING if self._made is None else UNKNOWN))

    def publish_files(self, session: Any, *, rows: Sequence[Any], deletes: Sequence[Any]) -> None:
        """Publish files that are written (`DataFile`s, `DeleteFile`s) as one snapshot, on exactly the table that was
        looked at. Deletes concern no row that comes with them. Raises what Iceberg raises, `LostRaceError` if somebody
        has committed."""
        if not rows and not deletes:
            return
        self._is_alone = True
        self._begin()
        change = self._transaction.newRowDelta()
        for key, value in self._marks.items():
            change.set(key, value)
        for file in rows:
            change.addRows(file)
        for file in deletes:
            change.addDeletes(file)
        change.commit()
        self._publish(None)
        self._refresh(session)

    def _refresh(self, session: Any) -> None:
        """Have what is kept of the table read anew: by the catalog of the user's own session, and by Spark."""
        relation, plans = self._target.relation, self._plans
        catalog, identifier = plans.option(relation.catalog()), plans.option(relation.identifier())
        cache, user = session.sharedState().cacheManager(), plans.spark._jsparkSession
        own = None if catalog is None else plans.catalog_named(user, str(catalog.name()))
        if catalog is None or own is None or identifier is None:
            with plans.active(session):
                cache.recacheByPlan(session, relation)
            return
        own.invalidateTable(identifier)
        parts = [str(catalog.name()), *map(str, identifier.namespace()), str(identifier.name())]
        with plans.active(user):
            cache.recacheTableOrView(user, plans.scala_sequence(parts), False)

    def settle(self, error: Exception, *, run_id: str, is_mendable: bool) -> None:
        """Return if the commit was made in spite of an error. Raises `LostRaceError` if somebody else came first,
        `UntoldWriteError` if nobody can tell, and the error itself where it is none of a commit."""
        name = "" if self._transaction is None else class_of(error)
        is_lost = name.endswith(_LOST)
        if not is_lost and not name.endswith("CommitStateUnknownException") and not self._is_committing:
            raise error
        try:
            now = self._transaction.underlyingOps().refresh()
        except (Py4JJavaError, PySparkException):
            now = None  # it is gone, or another table has its name
        snapshots = () if now is None else self._plans.items(now.snapshots())
        made = next((one for one in snapshots if str(one.summary().get(RUN_ID)) == run_id), None)
        if made is not None:
            self._made = made
            return
        if not is_lost:  # such as a database that was not there to answer
            raise UntoldWriteError(
                f"Whether the rows are in {self._target.location} nobody can tell: its catalog did not answer.",
                hint="Look at the table's rows before you run the statement again.",
            ) from error
        if now is not None and now.metadataFileLocation() == self._target.base.metadataFileLocation():
            raise self._own_fault(error)
        self._lose(now, is_mendable=is_mendable)

    def _own_fault(self, error: Exception) -> Exception:
        """Why a write failed that nobody else had a part in."""
        if _PART_OF_A_FILE not in str(error):
            return error
        return RefusedError(
            f"The condition selects some rows of a file of {self._target.location}, and not all: Iceberg replaces "
            "whole files. Nothing was changed.",
            hint="DELETE these rows, then append; or MERGE.",
        )

    def _begin(self) -> None:
        target = self._target
        read = target.base.metadataFileLocation()
        try:
            self._transaction = target.table.table().newTransaction()
        except (Py4JJavaError, PySparkException) as error:
            if not class_of(error).endswith(_LOST):
                raise
            self._lose(None, is_mendable=True)
        now = self._transaction.startMetadata()
        if now.metadataFileLocation() != read:
            self._lose(now, is_mendable=True)
        if self._mode is not None:
            change = self._transaction.updateProperties()
            for key in _MODES:
                change.set(key, self._mode)
            change.commit()

    def _may_follow(self, plan: JavaPlan) -> bool:
        """Whether a statement means the same after whatever others have committed."""
        return not self._is_alone and self._target.is_append(plan)

    def _table(self, plan: JavaPlan) -> Any:
        """Spark's table inside the transaction. One that remembers what to do again after others' commits reads
        nothing."""
        table = self._transaction.table()
        if not self._may_follow(plan):
            table = self._iceberg.BaseTable(table.operations(), table.name())
        return self._iceberg.spark.source.SparkTable(table)

    def _publish(self, plan: JavaPlan) -> None:
        base, made = self._transaction.startMetadata(), self._transaction.currentMetadata()
        known = base.snapshot
        new = [one for one in self._plans.items(made.snapshots()) if known(one.snapshotId()) is None]
        if not new or not any(key in new[0].summary() for key in _FILES):
            if not self._is_wanted:
                return  # there was nothing to change
            made, new = self._idle(made, new)
        before = base.currentSnapshot()
        (own, *others) = new
        head = made.currentSnapshot()
        if (
            others
            or head is None
            or head.snapshotId() != own.snapshotId()
            or own.parentId() != (None if before is None else before.snapshotId())
            or RECORD_KEY not in own.summary()
        ):
            raise RefusedError(
                f"The statement would not have become the next version of {self._target.location}. "
                "Nothing was changed.",
                hint="Write to the table itself, not to a branch.",
            )
        self._is_committing = True
        if self._may_follow(plan):
            self._transaction.commitTransaction()
        else:
            self._commit(base, self._with_own_modes(base, made), own)
        self._made = own

    def _idle(self, made: Any, new: list[Any]) -> tuple[Any, list[Any]]:
        """What was made, with a snapshot that changes nothing."""
        if new:
            return made, new
        change = self._transaction.newFastAppend()
        for key, value in self._marks.items():
            change.set(key, value)
        change.commit()
        made = self._transaction.currentMetadata()
        return made, [made.currentSnapshot()]

    def _commit(self, base: Any, made: Any, own: Any) -> None:
        """Publish what was made from `base`; anew, with its own snapshot alone, on what others have made of that in
        which no row and nothing that a statement is judged by has changed: such is our own care for the table."""
        operations = self._transaction.underlyingOps()
        for _ in range(_TIMES):
            try:
                operations.commit(base, made)
            except (Py4JJavaError, PySparkException) as error:
                if not class_of(error).endswith("CommitFailedException"):
                    raise
                now = operations.refresh()
                is_moved = now.metadataFileLocation() != base.metadataFileLocation()
                if not is_moved or _judged_by(now) != _judged_by(base):
                    raise
                builder = self._iceberg.TableMetadata.buildFrom(now).addSnapshot(own)
                base, made = now, builder.setBranchSnapshot(own.snapshotId(), "main").build()
            else:
                return
        operations.commit(base, made)

    def _with_own_modes(self, base: Any, made: Any) -> Any:
        """What was made, with the properties that the table had."""
        if self._mode is None:
            return made
        builder, own = self._iceberg.TableMetadata.buildFrom(made), dict(base.properties())
        kept = {key: own[key] for key in _MODES if key in own}
        return builder.removeProperties(set(_MODES) - kept.keys()).setProperties(kept).build()

    def _lose(self, now: Any, *, is_mendable: bool) -> NoReturn:
        head = None if now is None else now.currentSnapshot()
        told = "" if head is None else f": version {head.sequenceNumber()}, {head.operation()}"
        raise LostRaceError(
            f"Somebody else committed to {self._target.location} first{told}.",
            is_mendable=is_mendable,
            hint="Read the table anew, then run it again.",
        )


def _judged_by(metadata: Any) -> object:
    """What a write depends on of a table's metadata: its rows, how they are written, and by what it is judged."""
    head, properties = metadata.currentSnapshot(), dict(metadata.properties())
    return (
        None if head is None else int(head.snapshotId()),
        int(metadata.lastSequenceNumber()),
        int(metadata.nextRowId()),
        int(metadata.formatVersion()),
        str(metadata.location()),
        str(metadata.uuid()),
        int(metadata.currentSchemaId()),
        int(metadata.defaultSpecId()),
        int(metadata.defaultSortOrderId()),
        {key: value for key, value in properties.items() if not key.startswith(_OURS) or key == ROWS_WRITE},
    )
