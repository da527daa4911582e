"""Upserts into Iceberg tables: a MERGE of the kept source, or its keys and rows as files, as one commit on exactly the
table it was judged on."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql import DataFrame

from lakewarden.catalog.errors import PreconditionError, RefusedError, UsageError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.policy.rows_write import ChosenWay
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError
from lakewarden.jobs.session.formats.repeated_batches import require_same_changes, undoing
from lakewarden.jobs.session.frames import is_path, schema_of
from lakewarden.jobs.session.iceberg.iceberg_ways import IcebergTarget, mode_of
from lakewarden.jobs.session.iceberg.staged_writes import NumberedWrite, StagedWrite
from lakewarden.jobs.session.iceberg.written_tables import WrittenTable, table_behind
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.row_ways.asked_ways import asked_of
from lakewarden.jobs.session.row_ways.statement_ways import RowWays
from lakewarden.jobs.session.session_formats import found_name
from lakewarden.jobs.session.upserts.equality_upserts import specs_of_deletes, write_blindly
from lakewarden.jobs.session.upserts.source import (
    UpsertSource,
    facts_of,
    kept,
    plan_of_upsert,
    require_one_row_each,
)
from lakewarden.jobs.session.write_recorder import WriteRecorder
from lakewarden.jobs.session.writes import Upsert, Upserted
from lakewarden.jobs.sql.compile.values import TableSchema
from lakewarden.jobs.upsert.equality import require_blind
from lakewarden.jobs.upsert.target_columns import Columns, Rules, columns_of

__all__ = ["StagedUpserts"]

_NOT_FOR_ALL: Final = (
    "{} has equality deletes now: readers that know none, such as pyiceberg, refuse it until a compaction "
    "has applied them."
)


@dataclass(frozen=True)
class StagedUpserts:
    """Upserts of one Spark application."""

    recorder: WriteRecorder
    ways: RowWays

    @property
    def plans(self) -> Plans:
        """Those of the application."""
        return self.recorder.plans

    def tried(self, session: Any, request: Upsert, source: UpsertSource, made: list[str]) -> Upserted | None:
        """See `FormatUpserts`. A table that is missing is none of Iceberg's."""
        if is_path(request.table):
            return None
        name = found_name(self.plans, session, request.table)
        target = table_behind(self.plans, session, name)
        return None if target is None else self._run(session, request, source, target, name)

    def _run(
        self, session: Any, request: Upsert, source: UpsertSource, target: WrittenTable, name: str
    ) -> Upserted:
        """One try on the table that SQL calls `name`. Raises `LostRaceError` if somebody else committed meanwhile."""
        self.recorder.directory.require_writable(target.location)
        schema = schema_of(self.plans.frame(session, target.relation))
        columns = _same_columns(request, source, schema)
        operation, uuids = request.operation, target.uuids(self.plans)
        if operation is not None and _is_done(StagedWrite(self.plans, target), request, operation):
            return Upserted(written=None)

        def blind() -> Sequence[Any]:
            require_blind(request.options, columns, source.schema, schema, uuids)
            return specs_of_deletes(self.plans, target, columns.keys)

        way, specs = self._way(session, request, target, blind)  # before the source is computed
        staged = StagedWrite(self.plans, target, is_alone=True, mode=None if way is None else mode_of(way))
        if operation is not None:
            staged.name(operation, request.number)
        _require_unmoved(source, target)
        done: list[Upserted] = []

        def execute() -> DataFrame:
            with ExitStack() as stack:
                held = stack.enter_context(kept(self.plans, session, source, request.options, frozenset()))
                if specs is not None:
                    require_one_row_each(self.plans, session, source, request.options, held)
                    reach("upsert.merging")
                    files = write_blindly(self.plans, session, target, request.options, columns, specs)
                    done.append(files.told())
                    reach("upsert.written")
                    staged.publish_files(session, rows=files.rows, deletes=files.keys)
                    return self.plans.spark.range(0)
                known = facts_of(self.plans, session, source, request.options, held)
                facts = [one for one in known if one.column.lower() not in uuids]
                plan = plan_of_upsert(
                    session, request, source, facts, target=schema, rules=Rules(), name=name
                )
                done.append(Upserted(written=None, statement=plan.statement, pruning=plan.pruning))
                parsed = staged.in_mode(self.plans.composed(session, plan.statement))
                return staged.run(session, self.plans.analysed(session, parsed))

        _, written = self.recorder.run(
            session,
            execute,
            operation=Operation.MERGE,
            reads=source.pinned.reads if request.reads is None else request.reads,
            reads_self=False,
            target=target.location,
            locate=lambda: target.location,
            known=target.version,
            reads_fixed=source.pinned.fixes(target.location),
            query=request.query,
            committer=staged,
            way=way,
        )
        told = replace(done[0], written=written)
        return _counted(told, staged) if specs is None else _warned(told, request.table)

    def _way(
        self, session: Any, request: Upsert, target: WrittenTable, blind: Callable[[], Sequence[Any]]
    ) -> tuple[ChosenWay | None, Sequence[Any] | None]:
        """How rows that change are written, None where nobody asks; and the partition specs under which the deletes
        are, if that is by equality. `blind` tells those, and raises where that cannot be."""
        asked = asked_of(self.plans, session, request.options.write)
        rows = IcebergTarget(plans=self.plans, target=target)
        first = self.ways.asked_of(rows, asked)
        if first is None or first.way is not RowsWrite.EQUALITY:
            return self.ways.chosen(rows, asked), None
        try:
            specs = blind()
        except (UsageError, RefusedError) as refusal:
            return first.left_out(refusal), None
        return ChosenWay(way=first.way, because=f"{first.by} asks for it"), specs


def _warned(told: Upserted, table: str) -> Upserted:
    """An upsert by equality deletes, with a note where there are some now."""
    if told.written is None or told.rows_updated == 0:
        return told
    notes = (*told.written.notes, _NOT_FOR_ALL.format(table))
    return replace(told, written=replace(told.written, notes=notes))


def _counted(told: Upserted, staged: StagedWrite) -> Upserted:
    inserted, updated, deleted = staged.merged_rows()
    return replace(
        told,
        rows_written=inserted + updated,
        rows_inserted=inserted,
        rows_updated=updated,
        rows_deleted=deleted,
    )


def _is_done(staged: StagedWrite, request: Upsert, operation: str) -> bool:
    """Whether main descends from the very batch. Raises `PreconditionError` if it was done with other changes than it
    has now, and if only a later one is there: this one was undone, has expired, or changed nothing."""
    later: NumberedWrite | None = None
    for one in staged.numbered(operation):
        if one.number == request.number:
            require_same_changes(one.record, one.run_id, request.number, request.reads or ())
            return True
        if one.number < request.number:
            break  # each batch comes after those with smaller numbers
        later = one
    if later is not None:
        raise PreconditionError(
            f"Batch {request.number} is not in the table: it was undone, or it changed nothing, or its snapshot has "
            f"expired. A later one of its query is, in version {later.version}: written now, older rows would replace "
            "newer ones.",
            hint="Start the query with a new checkpoint; or undo what it has written from there on "
            f"({undoing(later.run_id)}), and all of it is written again.",
        )
    return False


def _same_columns(request: Upsert, source: UpsertSource, schema: TableSchema) -> Columns:
    """The columns, matched. Raises `UsageError` for an upsert that makes no sense, or would change columns."""
    columns = columns_of(request.options, source.schema, schema, Rules())
    if columns.evolves:
        raise UsageError(
            f"An upsert does not change the columns of {request.table}, which is an Iceberg table.",
            hint="ALTER TABLE ... ADD COLUMN first.",
        )
    return columns


def _require_unmoved(source: UpsertSource, target: WrittenTable) -> None:
    """Raise `LostRaceError` if the source was computed from what the target held before somebody else's commit."""
    read = source.pinned.at_head(target.location)
    if read is not None and read.version != target.version:
        raise LostRaceError(
            f"{target.location} moved past version {read.version}, which the source had read.",
            is_mendable=True,
        )
