"""Runs upserts: the source is pinned and kept, looked at, and merged."""

import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakewarden.catalog.errors import ConflictError, RefusedError, UsageError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.model.lineage_record import RENUMBERED, Operation
from lakewarden.catalog.policy.rows_write import ChosenWay
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.units import MIB
from lakewarden.jobs.engines.delta.stream_offsets import lower_number, number_at
from lakewarden.jobs.engines.spark.errors import is_lost_race
from lakewarden.jobs.engines.spark.session import stamped
from lakewarden.jobs.session.buckets.bucketed_writes import BucketedWrites, Execution
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError
from lakewarden.jobs.session.conflicts.retries import RETRIES_KEY, retried, retries_of
from lakewarden.jobs.session.frames import is_path, plan_of, sql_name
from lakewarden.jobs.session.iceberg.catalog_names import catalog_name
from lakewarden.jobs.session.iceberg.written_tables import table_behind
from lakewarden.jobs.session.pins import pin
from lakewarden.jobs.session.row_ways.asked_ways import asked_of
from lakewarden.jobs.session.row_ways.delta_ways import set_way
from lakewarden.jobs.session.row_ways.statement_ways import RowWays
from lakewarden.jobs.session.upserts.batch_reads import require_whole_versions
from lakewarden.jobs.session.upserts.counted_upserts import told_by
from lakewarden.jobs.session.upserts.history import found, was_done
from lakewarden.jobs.session.upserts.operation_ids import APP, NUMBER
from lakewarden.jobs.session.upserts.source import (
    UpsertSource,
    facts_of,
    kept,
    plan_of_upsert,
    rows_of,
    schema_of,
)
from lakewarden.jobs.session.upserts.staged_upserts import StagedUpserts
from lakewarden.jobs.session.upserts.target import UpsertTarget, emptied_of, existing, making
from lakewarden.jobs.session.write_recorder import WriteRecorder
from lakewarden.jobs.session.writes import Read, Upsert, Upserted, Written
from lakewarden.jobs.sql.compile.values import TableSchema
from lakewarden.jobs.upsert.changes import Cdc, is_ours
from lakewarden.jobs.upsert.once import OperationVerdict
from lakewarden.jobs.upsert.pruning import KeyFacts
from lakewarden.jobs.upsert.statement import UpsertPlan
from lakewarden.jobs.upsert.target_columns import Rules, columns_of
from lakewarden.jobs.upsert.upsert_options import NullKeys

__all__ = ["Upserts"]

_MATERIALIZE: Final = "spark.databricks.delta.merge.materializeSource"
_OPTIMIZE: Final = "spark.databricks.delta.optimizeWrite.enabled"
_LEAST: Final = "spark.sql.adaptive.coalescePartitions.minPartitionSize"
_LEAST_BYTES: Final = "4m"
"""What little is joined, one task joins. Spark's own 1 MB makes a task for each core of it."""
_TASKS: Final = "spark.databricks.delta.optimizeWrite.maxShufflePartitions"
_TASKS_EACH: Final = 4
"""For each processor; they are not equally large."""
_SMALL: Final = 512 * MIB
"""A table that fits into one bin of Delta's optimized writes with all that comes."""
_PAUSES: Final = (0.2, 0.5, 1.0, 2.0)
"""Seconds, while somebody else makes the table that is missing."""
_NOT_EMPTY: Final = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
_CASE: Final = "spark.sql.caseSensitive"
"""Names are compared as Delta does it; two that differ in nothing but case are refused."""
_VECTORS: Final = "spark.databricks.delta.merge.deletionVectors.persistent"
"""With them Delta takes an unmatched row of the source for a match if all of its keys are NULL and match NULL: it fails
on a deletion, which no clause takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A source that is kept and looked at already: its keys, its size in bytes, and its reads; None where Spark did not
    tell."""

    facts: tuple[KeyFacts, ...]
    size: int
    seen: tuple[Read, ...] | None


class Upserts:
    """Upserts of one Spark application. `create` runs a governed CREATE TABLE, `reader` reads logs."""

    def __init__(
        self,
        recorder: WriteRecorder,
        *,
        create: Callable[[str], object],
        reader: TableReader,
        ways: RowWays,
        buckets: BucketedWrites,
    ) -> None:
        self._recorder, self._plans, self._ways = recorder, recorder.plans, ways
        self._buckets = buckets
        self._create, self._reader = create, reader
        self._staged = StagedUpserts(recorder=recorder, ways=ways)

    def run(self, request: Upsert) -> Upserted:
        """See `Writer.upsert`."""
        if request.options.cdc is Cdc.DELTA:
            require_whole_versions(self._plans, request.frame)
        # Every try begins with what the session says now: its settings, and its views.
        session: Any = self._plans.cloned(self._plans.spark._jsparkSession)
        session.conf().set(_CASE, "false")
        made: list[str] = []
        done = retried(
            lambda: self._tried(self._plans.cloned(session), request, made),
            retries=retries_of(session.conf().get(RETRIES_KEY, ""), default=request.retries),
        )
        return replace(done, created=bool(made) and not done.done_before)

    def _tried(self, session: Any, request: Upsert, made: list[str]) -> Upserted:
        """One try. Where it makes the table, `made` is told."""
        # Of the target itself, too, one version is read: the source is computed before the write begins.
        pinned = pin(self._plans, session, plan_of(rows_of(request)), target=None)
        source = UpsertSource(pinned=pinned, schema=schema_of(self._plans.frame(session, pinned.plan)))
        if not is_path(request.table):
            name = catalog_name(self._plans, session, request.table)
            staged = table_behind(self._plans, session, name)
            if staged is not None:
                return self._staged.run(session, request, source, staged, name)
        if request.options.write in (RowsWrite.EQUALITY, RowsWrite.POSITION):
            raise UsageError(
                f"{request.table} is not an Iceberg table of format version 2 or 3 that is there: only into these "
                f"an upsert writes by {request.options.write}.",
                hint="Leave `write` out; or make the table, or set its format-version to 2, first.",
            )
        target = existing(self._plans, session, request.table)
        if target is None and request.options.write is RowsWrite.VECTOR:
            raise RefusedError(
                f"{request.table} is not there, and a table is made without deletion vectors.",
                hint="Make it first, with 'delta.enableDeletionVectors' = 'true'; or leave `write` out.",
            )
        if target is None:
            return self._tried_anew(session, request, source, made)
        return self._tried_on(session, request, source, target, None)

    def _tried_anew(self, session: Any, request: Upsert, source: UpsertSource, made: list[str]) -> Upserted:
        """One try where the table is missing. It is made when nothing in the source speaks against it any more."""
        as_made = tuple(one for one in source.schema if not is_ours(one.name))
        columns_of(request.options, source.schema, as_made, Rules())  # it has to make sense
        if is_path(request.table):
            self._recorder.directory.require_writable(canonical(request.table))
        emptied = emptied_of(as_made, request.partitioned, request.options.keys)
        with ExitStack() as stack:
            with self._recorder.plan_recorder.watching(session, f"lakewarden-{uuid.uuid4().hex}") as seen:
                size = stack.enter_context(kept(self._plans, session, source, request.options, emptied))
                facts = facts_of(self._plans, session, source, request.options)
            target = self._made(session, request, as_made)
            made.append(target.location)
            reach("upsert.made")
            if target.emptied(request.options.keys) == emptied:
                return self._tried_on(
                    session, request, source, target, Prepared(facts=facts, size=size, seen=seen.reads)
                )
        return self._tried_on(
            session, request, source, target, None
        )  # somebody else made it, otherwise partitioned

    def _tried_on(
        self,
        session: Any,
        request: Upsert,
        source: UpsertSource,
        target: UpsertTarget,
        prepared: Prepared | None,
    ) -> Upserted:
        """One try on a table; `prepared` where the source is kept already."""
        self._recorder.directory.require_writable(target.location)
        columns_of(request.options, source.schema, target.schema, target.rules)  # it has to make sense
        if request.operation is not None:
            if self._is_done(target, request, request.operation):
                return Upserted(written=None)
            session.conf().set(APP, request.operation)
            session.conf().set(NUMBER, str(request.number))
        try:
            return self._merge(session, request, source, target, prepared)
        except LostRaceError:
            if self._done_meanwhile(request):
                return Upserted(written=None)
            raise

    def _done_meanwhile(self, request: Upsert) -> bool:
        """Whether somebody else has done the same operation while this call was at it."""
        session: Any = self._plans.cloned(self._plans.spark._jsparkSession)
        target = existing(self._plans, session, request.table)
        if target is None or request.operation is None:
            return False
        return self._is_done(target, request, request.operation)

    def _is_done(self, target: UpsertTarget, request: Upsert, app: str) -> bool:
        """Whether the operation was done, and not undone since. What was undone by a RESTORE that left its number has
        no number afterwards: Delta would skip it. A number above the last may have been done as well: where numbers
        went back with a rollback, and a RESTORE of somebody else's took that back."""
        number, last = request.number, target.last_number(app)
        if last is None:
            return False
        finding = found(
            self._reader,
            target.location,
            head=target.version,
            app=app,
            number=number,
            last=last,
            known=lambda version: number_at(self._plans.spark, target.location, version=version, app=app),
        )
        if last < number and finding.verdict is OperationVerdict.UNTOLD:
            return False  # nothing that is left of the log speaks for it
        if was_done(finding, app=app, number=number, reads=request.reads or ()):
            return True
        if last < number:
            return False
        try:
            with stamped(self._plans.spark, f"{RENUMBERED}{uuid.uuid4().hex}", "upsert") as spark:
                lower_number(spark, target.location, requires=target.version, app=app, number=number - 1)
        except ConflictError as error:  # what was decided on moved: look again
            raise LostRaceError(str(error), is_mendable=True) from error
        return False

    def _made(self, session: Any, request: Upsert, as_made: TableSchema) -> UpsertTarget:
        refusal: Exception | None = None
        for pause in _PAUSES:
            try:
                self._create(making(request, as_made))
            except (PySparkException, Py4JJavaError) as error:
                if not (is_lost_race(error) or _NOT_EMPTY in str(error)):
                    raise
                refusal = error
            target = existing(self._plans, session, request.table)
            if target is not None:
                return target
            time.sleep(pause)  # somebody else is making it, maybe: their files come before their commit
        raise UsageError(
            f"{request.table} could not be made, and nobody else has made it.",
            hint="Make the table first; its folder has to be empty.",
        ) from refusal

    def _merge(
        self,
        session: Any,
        request: Upsert,
        source: UpsertSource,
        target: UpsertTarget,
        prepared: Prepared | None,
    ) -> Upserted:
        _set_up(session)
        plans: list[UpsertPlan] = []
        way, done = self._way(session, request, target), Execution()

        def execute() -> DataFrame:
            with ExitStack() as stack:
                if prepared is None:
                    emptied = target.emptied(request.options.keys)
                    size = stack.enter_context(kept(self._plans, session, source, request.options, emptied))
                    facts = facts_of(self._plans, session, source, request.options)
                else:
                    size, facts = prepared.size, prepared.facts
                self._write_in_one_go(session, target, size)
                if request.options.delete_when is not None and all(fact.nulls for fact in facts):
                    session.conf().set(_VECTORS, "false")
                self._require_unmoved(session, request, source, target)
                plan = plan_of_upsert(
                    session,
                    request,
                    source,
                    facts,
                    target=target.schema,
                    rules=target.rules,
                    name=sql_name(request.table),
                    partitions=target.partitions,
                )
                plans.append(plan)
                parsed = self._plans.composed(session, plan.statement)
                reach("upsert.merging")
                return self._buckets.run(session, self._plans.analysed(session, parsed), done, is_kept=True)

        frame, written = self._recorder.run(
            session,
            execute,
            operation=Operation.MERGE,
            reads=source.pinned.reads if request.reads is None else request.reads,
            reads_self=False,
            target=target.location,
            locate=lambda: target.location,
            known=target.version,
            seen=() if prepared is None else prepared.seen,
            reads_fixed=source.pinned.fixes(target.location),
            query=request.query,
            way=way,
        )
        if done.note is not None:
            written = replace(written, notes=(*written.notes, done.note))
        if frame is None:
            return self._told_by_commit(target, written, plans[0])
        if done.counts is not None:
            return told_by(done.counts, written, plans[0])
        return Upserted(written=None) if done.is_skipped else self._told(frame, written, plans[0])

    def _way(self, session: Any, request: Upsert, target: UpsertTarget) -> ChosenWay | None:
        """How rows that change are written; None where nobody asks. The session writes so from now on."""
        options = request.options
        asked = asked_of(self._plans, session, options.write)
        way = self._ways.of_delta(session, target.snapshot, target.location, target.entry, asked)
        is_odd = options.delete_when is not None and options.null_keys is NullKeys.MATCH
        if way is None or way.way is not RowsWrite.VECTOR or not is_odd:
            return way
        refusal = UsageError(
            'Delta\'s MERGE does not delete rows by keys that are NULL (null_keys="match") with deletion vectors.',
            hint='Upsert with write="rewrite".',
        )
        if asked is not None:
            raise refusal
        set_way(session, RowsWrite.REWRITE)
        return ChosenWay(way=RowsWrite.REWRITE, because=str(refusal).rstrip("."))

    def _write_in_one_go(self, session: Any, target: UpsertTarget, size: int) -> None:
        """Have a small result written by a few tasks for each processor instead of one task for each partition. `size`
        is that of the source, in bytes."""
        whole = target.size
        if whole is not None and whole + size <= _SMALL:
            tasks = _TASKS_EACH * self._plans.spark.sparkContext.defaultParallelism
            _set_unless_chosen(session, _TASKS, str(tasks))

    def _require_unmoved(
        self, session: Any, request: Upsert, source: UpsertSource, target: UpsertTarget
    ) -> None:
        """Raise `LostRaceError` if the source was computed from what the target held, and it has moved on meanwhile:
        what somebody else has just committed would be undone."""
        read = source.pinned.at_head(target.location)
        if read is None:
            return
        now = existing(self._plans, session, request.table)
        if now is None or now.version != read.version:
            raise LostRaceError(
                f"{request.table} moved past version {read.version}, which the source had read.",
                is_mendable=True,
            )

    def _told(self, frame: DataFrame, written: Written, plan: UpsertPlan) -> Upserted:
        rows = frame.collect()
        if not rows:  # Delta skips what somebody else has done under the same name meanwhile
            return Upserted(written=None)
        (counts,) = rows
        counted = self._metrics(frame)
        return Upserted(
            written=written,
            rows_written=counts["num_inserted_rows"] + counts["num_updated_rows"],
            rows_inserted=counts["num_inserted_rows"],
            rows_updated=counts["num_updated_rows"],
            rows_deleted=counts["num_deleted_rows"],
            files_before=counted("numTargetFilesBeforeSkipping"),
            files_read=counted("numTargetFilesAfterSkipping"),
            files_added=counted("numTargetFilesAdded"),
            files_removed=counted("numTargetFilesRemoved"),
            statement=plan.statement,
            pruning=plan.pruning,
        )

    def _told_by_commit(self, target: UpsertTarget, written: Written, plan: UpsertPlan) -> Upserted:
        """Its result where Spark did not learn of the commit."""
        commits = self._reader.commits(target.location, after=target.version)
        return told_by(next(one for one in commits if one.run_id == written.run_id).metrics, written, plan)

    def _metrics(self, frame: DataFrame) -> Callable[[str], int]:
        """What the command itself counted, by its name."""
        told = frame._jdf.queryExecution().commandExecuted().commandPhysicalPlan().metrics()
        return lambda name: int(told.apply(name).value())


def _set_up(session: Any) -> None:
    session.conf().set(_MATERIALIZE, "none")  # it is kept here, and looked at
    _set_unless_chosen(session, _OPTIMIZE, "true")  # few files, whatever the number of tasks
    _set_unless_chosen(session, _LEAST, _LEAST_BYTES)  # one task writes without moving its rows once more


def _set_unless_chosen(session: Any, key: str, value: str) -> None:
    """Set what the user has not set."""
    if not session.sessionState().conf().contains(key):
        session.conf().set(key, value)
