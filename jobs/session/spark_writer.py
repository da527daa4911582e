"""Governed writes on a user's own Spark session: pin, record, run, look what was executed."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.runs.port import Tools
from lakewarden.jobs.session.compiled_changes import (
    SeveralMatchesError,
    compile_change,
    refusals_explained,
    require_own_words,
    wrong_rows_explained,
)
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError
from lakewarden.jobs.session.conflicts.retries import RETRIES_KEY, retried, retries_of
from lakewarden.jobs.session.formats.row_changes import RowsTarget
from lakewarden.jobs.session.formats.shapes import Execution, Shape
from lakewarden.jobs.session.formats.table_commits import OperationOnce
from lakewarden.jobs.session.frames import is_path, plan_of, run_sql, taken_setting
from lakewarden.jobs.session.groups.group_runner import Groups
from lakewarden.jobs.session.groups.ready_writes import ready_writes
from lakewarden.jobs.session.judgement.plan_tables import PlanTables
from lakewarden.jobs.session.judgement.said import called, kind_said
from lakewarden.jobs.session.judgement.statement_kinds import StatementKind
from lakewarden.jobs.session.judgement.told_settings import require_sensible
from lakewarden.jobs.session.judgement.unrecorded_rule import UnrecordedRule
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.read_plans.executed_plans import PlanRecorder
from lakewarden.jobs.session.read_plans.pins import Pinned, pin
from lakewarden.jobs.session.row_ways.explained_writes import ExplainedWrites
from lakewarden.jobs.session.row_ways.statement_ways import RowWays, changes_nothing
from lakewarden.jobs.session.session_formats import (
    FORMATS,
    as_taken,
    first_known,
    found_name,
    require_analysable,
    require_sound,
    with_found_names,
)
from lakewarden.jobs.session.upserts.upserts_by_format import Upserts
from lakewarden.jobs.session.write_plans.known_shapes import shape_of
from lakewarden.jobs.session.write_plans.requested_plans import RequestedPlans, asked_way, is_merged
from lakewarden.jobs.session.write_recorder import WriteRecorder
from lakewarden.jobs.session.writes import (
    USER_METADATA,
    Directory,
    Judge,
    Request,
    Sql,
    UncompiledChange,
    Upsert,
    Upserted,
    Written,
)
from lakewarden.jobs.sql.compile.merges.merge_drafts import is_merge, merge_draft
from lakewarden.jobs.sql.compile.reading import Draft
from lakewarden.jobs.sql.compile.values import OPERATION_KEY, Chosen, Compiled, Dialect

__all__ = ["SparkWriter"]

_RUN_BY_ANALYSIS: Final = frozenset({"Call", "CompoundBody", "UnresolvedExecuteImmediate"})
"""Statements that Spark runs while analysing them: they are not analysed here."""
_MERGE: Final = "MergeIntoTable"
_TAKES_ONE: Final = "INSERT, UPDATE, DELETE, MERGE and upserts of Delta tables do."


class SparkWriter:
    """Governed writes on one Spark session. Each runs on a clone of it, so that what is set for it reaches no other."""

    def __init__(
        self,
        spark: SparkSession,
        *,
        directory: Directory,
        user: str,
        tools: Tools,
        journal: Journal,
        storage: Callable[[str], StorageOptions],
        clock: Clock,
        judge: Judge | None = None,
    ) -> None:
        """`tools` read the tables, and take back what a statement has changed that is not done."""
        self._readers = tools.reader
        self._spark, self._directory, self._judge = spark, directory, judge
        self._plans = Plans(spark)
        self._requested = RequestedPlans(self._plans)
        tables = PlanTables(spark, self._plans)
        self._unrecorded = UnrecordedRule(plans=self._plans, tables=tables, directory=directory)
        self._recorder = WriteRecorder(
            plans=self._plans,
            plan_recorder=PlanRecorder(spark, self._plans),
            directory=directory,
            user=user,
            readers=self._readers,
        )
        self._groups = Groups(
            spark=spark, journal=journal, tools=tools, storage=storage, directory=directory, user=user
        )
        self._ways = RowWays(plans=self._plans, directory=directory, readers=self._readers, clock=clock)
        self._explained = ExplainedWrites(plans=self._plans, ways=self._ways if judge is None else None)
        self._upserts = Upserts(self._recorder, create=self._create, ways=self._ways)

    def table(self, name: str, version: int | None) -> DataFrame:
        session: Any = self._spark._jsparkSession
        if is_path(name):
            frame = self._reader_at(version).format("delta").load(name)
        else:
            named = found_name(self._plans, session, name)
            at = None if version is None else self._version_named(session, named, version)
            frame = self._reader_at(at).table(named)
        plan = plan_of(frame)
        return self._plans.frame(session, pin(self._plans, session, plan, target=None, cached=False).plan)

    def _version_named(self, session: Any, table: str, version: int) -> str:
        """What Spark calls a version of a table."""
        called = first_known(one.version_named(self._plans, session, table, version) for one in FORMATS)
        return str(version) if called is None else called

    def _reader_at(self, version: int | str | None) -> DataFrameReader:
        return self._spark.read if version is None else self._spark.read.option("versionAsOf", version)

    def upsert(self, request: Upsert) -> Upserted:
        with refusals_explained(""), wrong_rows_explained():
            return self._upserts.run(request)

    def compiled(self, draft: Draft, write: RowsWrite | None = None) -> Compiled:
        with wrong_rows_explained(draft):
            done = compile_change(self._spark._jsparkSession, draft)
            return replace(done, notes=(*done.notes, *self._explained.compiled(done, write)))

    def told_of(self, text: str, write: RowsWrite | None = None) -> tuple[str, ...]:
        with refusals_explained(text):
            return self._explained.plain(text, write)

    def located(self, spelling: str) -> str | None:
        session: Any = self._spark._jsparkSession
        try:
            plan = self._plans.analysed(session, self._plans.parsed(session, f"VACUUM {spelling}"))
        except PySparkException:
            return None
        return first_known(one.vacuumed(plan) for one in FORMATS)

    def change_several(self, draft: Draft) -> tuple[Written, ...]:
        operation = self._operation_named()
        with wrong_rows_explained(draft):
            return self._groups.run(
                draft.text, lambda: ready_writes(self._recorder, draft, self._judge), operation
            )

    def run(self, request: Request) -> tuple[DataFrame, Written | None]:
        named = cache(self._operation_named)
        own: Any = self._spark._jsparkSession
        with refusals_explained(request.text if isinstance(request, Sql) else ""):
            plan = self._plans.parsed(own, request.text) if isinstance(request, Sql) else None
            if plan is None or kind_said(self._plans, plan) is StatementKind.WRITES:
                done = self._tried(self._plans.cloned(own), request, plan, named)
                if done is not None:
                    return done
            return self._as_it_is(request, plan, named), None

    def _tried(
        self,
        session: Any,
        request: Request,
        plan: JavaPlan | None,
        operation_named: Callable[[], str | None],
    ) -> tuple[DataFrame, Written] | None:
        """A write, until it is done or refused. Every try begins with what the session says now: its settings, and its
        views. A change of which several matches are found is tried as one whose matches may agree."""
        retries = retries_of(session.conf().get(RETRIES_KEY, ""))

        def attempt(one: Request) -> tuple[DataFrame, Written] | None:
            with wrong_rows_explained(
                one.draft if isinstance(one, UncompiledChange) else None, merges=is_merged(one)
            ):
                return self._run(self._plans.cloned(session), one, plan, operation_named)

        def tried(one: Request) -> tuple[DataFrame, Written] | None:
            return retried(lambda: attempt(one), retries=retries)

        try:
            return tried(request)
        except SeveralMatchesError:
            draft = request.draft if isinstance(request, UncompiledChange) else None
            if isinstance(request, Sql) and is_merge(request.text):
                draft = merge_draft(request.text, Dialect.SPARK, always=True)
            if draft is None:
                raise
            return tried(UncompiledChange(draft=draft, agreeing=True, write=asked_way(request)))

    def _create(self, text: str) -> tuple[DataFrame, Written] | None:
        """Make the table of an upsert: the operation id that the session names is for a statement of its own."""
        session: Any = self._plans.cloned(self._spark._jsparkSession)
        with wrong_rows_explained():
            return self._run(session, Sql(text=text), self._plans.parsed(session, text), lambda: None)

    def _run(
        self,
        session: Any,
        request: Request,
        parsed: JavaPlan | None,
        operation_named: Callable[[], str | None],
    ) -> tuple[DataFrame, Written] | None:
        """One try of a write; None, and nothing was run, if it writes no Delta table."""
        operation = operation_named() if isinstance(request, UncompiledChange | Sql) else None
        plan, options, chosen = self._requested.statement(session, request, parsed)
        plan = with_found_names(self._plans, session, as_taken(self._plans, session, plan))
        if self._judge is not None:
            self._judge.require_said(plan)
        require_analysable(self._plans, session, plan)
        way = self._ways.of(session, plan, asked_way(request), partial(self._require_own, plan))
        analysed = self._plans.analysed(session, way.plan)
        require_sound(self._plans, analysed)
        is_merge_said = kind(plan) == _MERGE
        shape = shape_of(self._plans, session, analysed, is_merge=is_merge_said, begun=way.begun)
        if shape is None:
            if isinstance(request, UncompiledChange):
                require_own_words(request.draft)
            if operation is not None:
                raise UsageError("Only what writes a Delta table takes an operation id.", hint=_TAKES_ONE)
            return None
        shape.by.require_plain(session)
        self._require(session, plan, shape)
        shape = self._ways.settled(session, way, shape)
        if isinstance(request, Sql):
            shape, own = shape.by.with_own_record(shape)
            options = {} if own is None else {USER_METADATA: own}
        once = self._once(request, operation, shape)
        if once is None:
            return self._write(session, plan, shape, options, chosen=chosen)
        return self._write_once(once, session, plan, shape, options, chosen)

    def _require_own(self, plan: JavaPlan, target: RowsTarget) -> None:
        """Raise `NotAllowedError` unless rows of this table may be changed now."""
        if self._judge is not None:
            self._judge.require_written(plan, target.location, None, target.format)

    def _require(self, session: Any, plan: JavaPlan, shape: Shape) -> None:
        """Raise `NotAllowedError` unless this very plan may be run now."""
        if shape.may_lie_anywhere:
            self._unrecorded.require_harmless(session, plan, shape.plan)
        if shape.target is not None:
            self._directory.require_writable(shape.target)
            if shape.operation is Operation.REPLACE:  # what the table keeps, and for how long, is said anew
                self._directory.require_no_hold("CREATE OR REPLACE TABLE", shape.target)
        if self._judge is not None:
            self._judge.require_run(shape.plan)
            self._judge.require_written(plan, shape.target, shape.judged, shape.format)

    def _as_it_is(
        self, request: Request, parsed: JavaPlan | None, operation_named: Callable[[], str | None]
    ) -> DataFrame:
        """Any other statement, in the user's own session: its settings and definitions are to last. What was looked at
        is what is run."""
        if not isinstance(request, Sql | UncompiledChange):
            raise UsageError(
                "Only Delta tables are written like this.",
                hint="Use Spark's own writer, or CREATE TABLE ... USING delta first.",
            )
        if request.write is not None:
            raise changes_nothing()
        session: Any = self._spark._jsparkSession
        text = request.text if isinstance(request, Sql) else request.draft.text
        plan = self._plans.parsed(session, text) if parsed is None else parsed
        plan = with_found_names(self._plans, session, plan)
        self._refuse_id(plan, operation_named)
        if self._judge is not None:
            self._judge.require_said(plan)
        self._unrecorded.require_readable(session, plan)
        require_analysable(self._plans, session, plan)
        if kind(plan) == "SetCommand" and (said := self._plans.option(plan.kv())) is not None:
            require_sensible(str(said._1()), self._plans.option(said._2()))
        if kind(plan) in _RUN_BY_ANALYSIS:
            return run_sql(self._spark, text)
        analysed = self._plans.analysed(session, plan)
        require_sound(self._plans, analysed)
        if self._judge is not None:
            self._judge.require_read(plan, analysed)
        self._unrecorded.require_harmless(session, plan, analysed)
        return self._plans.run(session, self._plans.for_this_user(session, analysed))

    def _operation_named(self) -> str | None:
        """The operation id that the session gives to its next write, and to no other."""
        told = taken_setting(self._spark, OPERATION_KEY)
        return None if told is None else told.strip().strip("'\"") or None

    def _once(self, request: Request, operation: str | None, shape: Shape) -> OperationOnce | None:
        if operation is None or not isinstance(request, Sql | UncompiledChange):
            return None
        if shape.change is None:
            raise UsageError("A statement that makes a table takes no operation id.", hint=_TAKES_ONE)
        text = request.text if isinstance(request, Sql) else request.draft.text
        return shape.change.once(self._readers, operation, text)

    def _write_once(
        self,
        once: OperationOnce,
        session: Any,
        plan: JavaPlan,
        shape: Shape,
        options: Mapping[str, str],
        chosen: Chosen | None,
    ) -> tuple[DataFrame, Written]:
        """Write under an operation id. Somebody else may do the same at the same time: Delta skips one of the two, or
        it loses the race. Each try has a number of its own."""
        nothing = self._spark.range(0)
        before = self._recorder.unwritten(shape.operation, shape.target, once.operation)
        number = once.due()
        if number is None:
            return nothing, before
        once.name(session, number)
        head = once.head()
        try:
            frame, written = self._write(session, plan, shape, options, statement=once.digest, chosen=chosen)
        except LostRaceError:
            if once.due() is None:
                return nothing, before
            raise
        by_another = once.was_by_another(written.run_id, number=number, after=head)
        return frame, replace(written, operation=once.operation, done_before=by_another)

    def _write(
        self,
        session: Any,
        said: JavaPlan,
        shape: Shape,
        options: Mapping[str, str],
        *,
        chosen: Chosen | None,
        statement: str | None = None,
    ) -> tuple[DataFrame, Written]:
        pinned: Pinned | None = None
        if shape.query is not None:
            query = self._plans.for_this_user(session, shape.query)
            pinned = pin(self._plans, session, query, target=shape.target, own=shape.heads)
        reads = () if pinned is None else pinned.reads
        plan = shape.plan if pinned is None else shape.rebuilt(shape.by.arranged(session, shape, pinned.plan))
        self._require(session, said, shape)  # rights, holds and policies as they are now
        done = Execution()
        frame, written = self._recorder.run(
            session,
            lambda: shape.by.run(session, plan, done),
            operation=shape.operation,
            reads=reads,
            reads_self=pinned is not None and pinned.reads_self,
            target=shape.target,
            locate=shape.locate,
            own=options.get(USER_METADATA),
            statement=statement,
            known=shape.known,
            reads_fixed=pinned is not None and pinned.fixes(shape.target),
            chosen=chosen,
            seen=done.reads,
            committer=shape.by.carrier(self._readers),
            way=shape.way,
        )
        if done.note is not None:
            written = replace(written, notes=(*written.notes, done.note))
        return self._spark.range(0) if frame is None else frame, written

    def _refuse_id(self, plan: JavaPlan, operation_named: Callable[[], str | None]) -> None:
        """Raise `UsageError` for what Spark runs as it is, and changes rows, if the session gave its next write an id:
        it would be done again under it."""
        is_listed = kind_said(self._plans, plan) in (StatementKind.UNRECORDED, StatementKind.DYNAMIC)
        if is_listed and operation_named() is not None:
            raise UsageError(
                f"{called(self._plans, plan)} takes no operation id. Nothing was run.",
                hint=f"{_TAKES_ONE} The id is used up: run the statement again to do it without one.",
            )
