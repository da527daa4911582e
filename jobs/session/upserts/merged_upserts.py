"""Upserts into Delta tables: the source is kept, looked at, and merged."""

import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakewarden.catalog.errors import PreconditionError, RefusedError, UsageError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.model.rows import DELTA
from lakewarden.catalog.policy.rows_write import ChosenWay
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.units import MIB
from lakewarden.jobs.engines.spark.errors import is_lost_race
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError
from lakewarden.jobs.session.delta.buckets.bucketed_writes import BucketedWrites
from lakewarden.jobs.session.delta.delta_commits import DeltaRecords
from lakewarden.jobs.session.delta.delta_ways import DeltaTarget
from lakewarden.jobs.session.delta.merges.joined_upserts import joined_upsert
from lakewarden.jobs.session.delta.merges.merge_work import LeftToDeltaError
from lakewarden.jobs.session.delta.session_keys import (
    commit_at_once,
    number_commit,
    set_up_merge,
    set_way,
    use_tasks,
    without_vectors,
)
from lakewarden.jobs.session.delta.upsert_target import UpsertTarget, emptied_of, existing, is_done, making
from lakewarden.jobs.session.formats.shapes import Execution
from lakewarden.jobs.session.frames import is_path, sql_name
from lakewarden.jobs.session.plans import JavaPlan
from lakewarden.jobs.session.row_ways.asked_ways import asked_of
from lakewarden.jobs.session.row_ways.statement_ways import RowWays
from lakewarden.jobs.session.upserts.counted_upserts import told_by
from lakewarden.jobs.session.upserts.source import (
    UpsertSource,
    facts_of,
    kept,
    plan_of_upsert,
)
from lakewarden.jobs.session.write_recorder import WriteRecorder
from lakewarden.jobs.session.writes import Read, Upsert, Upserted, Written
from lakewarden.jobs.sql.compile.values import TableSchema
from lakewarden.jobs.upsert.changes import is_ours
from lakewarden.jobs.upsert.file_ranges import may_hold as may_hold_keys
from lakewarden.jobs.upsert.pruning import KeyFacts
from lakewarden.jobs.upsert.statement import UpsertPlan
from lakewarden.jobs.upsert.target_columns import Rules, columns_of
from lakewarden.jobs.upsert.upsert_options import NullKeys

__all__ = ["MergedUpserts"]

_SMALL: Final = 512 * MIB
"""A table that fits into one bin of optimized writes with all that comes."""
_TASKS_EACH: Final = 4
"""For each processor; they are not equally large."""
_PAUSES: Final = (0.2, 0.5, 1.0, 2.0)
"""Seconds, while somebody else makes the table that is missing."""
_NOT_EMPTY: Final = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A source that is kept and looked at already: its keys, its size in bytes, and its reads; None where Spark did not
    tell."""

    facts: tuple[KeyFacts, ...]
    size: int
    seen: tuple[Read, ...] | None = ()


class MergedUpserts:
    """Upserts of one Spark application into Delta tables. `create` runs a governed CREATE TABLE."""

    def __init__(self, recorder: WriteRecorder, *, create: Callable[[str], object], ways: RowWays) -> None:
        self._recorder, self._plans, self._ways = recorder, recorder.plans, ways
        self._buckets = BucketedWrites(recorder.plans)
        self._create, self._reader = create, recorder.readers(DELTA)

    def tried(self, session: Any, request: Upsert, source: UpsertSource, made: list[str]) -> Upserted:
        """See `FormatUpserts`. Whatever no other format knows is a Delta table, or becomes one."""
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
                ready = self._kept(stack, session, request, source, emptied)
            target = self._made(session, request, as_made)
            made.append(target.location)
            reach("upsert.made")
            if target.emptied(request.options.keys) == emptied:
                return self._tried_on(session, request, source, target, replace(ready, seen=seen.reads))
        return self._tried_on(
            session, request, source, target, None
        )  # somebody else made it, otherwise partitioned

    def _kept(
        self,
        stack: ExitStack,
        session: Any,
        request: Upsert,
        source: UpsertSource,
        emptied: frozenset[str],
    ) -> Prepared:
        """The source, kept until the stack ends and looked at."""
        held = stack.enter_context(kept(self._plans, session, source, request.options, emptied))
        facts = facts_of(self._plans, session, source, request.options, held)
        return Prepared(facts=facts, size=held.size)

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
            if is_done(self._plans.spark, self._reader, target, request, request.operation):
                return Upserted(written=None)
            number_commit(session, request.operation, request.number)
        set_up_merge(session)
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
        return is_done(self._plans.spark, self._reader, target, request, request.operation)

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
        plans: list[UpsertPlan] = []
        way, done = self._way(session, request, target), Execution()
        read = source.pinned.at_head(target.location)
        source_read = None if read is None else read.version

        def execute() -> DataFrame:
            with ExitStack() as stack:
                emptied = target.emptied(request.options.keys)
                ready = prepared or self._kept(stack, session, request, source, emptied)
                facts = ready.facts
                self._write_in_one_go(session, target, ready.size)
                if request.options.delete_when is not None and all(fact.nulls for fact in facts):
                    without_vectors(session)
                self._require_unmoved(session, request, source, target)
                plan = plan_of_upsert(
                    session, request, source, facts, target=target.schema, rules=target.rules,
                    name=sql_name(request.table), partitions=target.partitions,
                )  # fmt: skip
                plans.append(plan)
                parsed = self._plans.composed(session, plan.statement)
                reach("upsert.merging")
                merge = self._plans.analysed(session, parsed)
                may_hold = partial(may_hold_keys, facts=facts, source=source.schema, target=target.schema)
                frame = self._run(session, merge, done, ready.size, source_read, may_hold)
                if frame is not None:
                    return frame
                if source_read is not None:  # Delta begins a transaction of its own
                    commit_at_once(session)
                    self._require_unmoved(session, request, source, target)
                return self._plans.run(session, merge)

        frame, written = self._recorder.run(
            session,
            execute,
            operation=Operation.MERGE,
            reads=source.pinned.reads if request.reads is None else request.reads,
            reads_self=False,
            target=target.location,
            locate=lambda: target.location,
            known=target.version,
            committer=DeltaRecords(self._reader, target.location, target.version, makes_table=False),
            seen=() if prepared is None else prepared.seen,
            reads_fixed=source.pinned.fixes(target.location),
            query=request.query,
            way=way,
        )
        if done.note is not None:
            written = replace(written, notes=(*written.notes, done.note))
        if source_read is not None and done.counts is None:
            self._require_next(target, written, source_read)
        return self._result(target, frame, written, plans[0], done)

    def _result(
        self,
        target: UpsertTarget,
        frame: DataFrame | None,
        written: Written,
        plan: UpsertPlan,
        done: Execution,
    ) -> Upserted:
        if frame is None:
            return self._told_by_commit(target, written, plan)
        if done.counts is not None:
            return told_by(done.counts, written, plan)
        if done.is_skipped:
            return Upserted(written=None)
        return replace(self._told(frame, written, plan), left_because=done.left_because)

    def _run(
        self,
        session: Any,
        merge: JavaPlan,
        done: Execution,
        size: int,
        source_read: int | None,
        may_hold: Callable[[str | None], bool],
    ) -> DataFrame | None:
        """Run a MERGE, bucket by bucket or by one join if it can be; None if Delta's own is to do it. The source takes
        `size` bytes, and has read this version of the table; `may_hold` its keys a file with these statistics."""
        if self._buckets.changes(merge):
            return self._buckets.tried(session, merge, done, is_kept=True, source_read=source_read)
        try:
            upsert = joined_upsert(
                self._plans, session, merge, size=size, source_read=source_read, may_hold=may_hold
            )
            frame = upsert.run()
        except LeftToDeltaError as error:
            done.left_because = str(error)
            return None
        if frame is None:
            done.left_because = (
                "has rows with several matches, or rows that nobody can tell were counted once"
            )
            return None
        done.counts, done.is_skipped = upsert.told, upsert.told is None
        return frame

    def _way(self, session: Any, request: Upsert, target: UpsertTarget) -> ChosenWay | None:
        """How rows that change are written; None where nobody asks. The session writes so from now on."""
        options = request.options
        asked = asked_of(self._plans, session, options.write)
        rows = DeltaTarget(
            plans=self._plans,
            session=session,
            reader=self._reader,
            location=target.location,
            snapshot=target.snapshot,
            entry=target.entry,
        )
        way = self._ways.chosen(rows, asked)
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
            use_tasks(session, tasks)

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

    def _require_next(self, target: UpsertTarget, written: Written, read: int) -> None:
        """Raise `PreconditionError` if somebody else's commit is between what the source had read and what Delta's own
        transaction has written: in the moment in which that began."""
        commits = sorted(self._reader.commits(target.location, after=read), key=lambda one: one.version)
        if any(one.run_id == written.run_id for one in commits[1:]):
            raise PreconditionError(
                f"The upsert is done (run {written.run_id}), but version {commits[0].version}, somebody else's, came "
                f"between it and version {read}, which its source had read: what that has changed, it may have undone.",
                hint="Look at the rows of both; or take the upsert back with a rollback, and do it again.",
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
