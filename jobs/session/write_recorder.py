"""A write that says in its own commit what it read, and is watched while it runs."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.policy.rows_write import ChosenWay
from lakewarden.jobs.engines.spark.cancellation import require_wanted
from lakewarden.jobs.engines.spark.session import require_safe_commits
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError, lose_for_good
from lakewarden.jobs.session.formats.table_commits import Readers, RecordCarrier
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.read_plans.executed_plans import PlanRecorder
from lakewarden.jobs.session.session_formats import FORMATS, first_known
from lakewarden.jobs.session.write_records import compare, record_of
from lakewarden.jobs.session.writes import Directory, Observed, Read, Written
from lakewarden.jobs.sql.compile.values import Chosen

__all__ = ["WriteRecorder"]

_FROM_JAVA: Final = (PySparkException, Py4JJavaError)


@dataclass(frozen=True, kw_only=True)
class WriteRecorder:
    """Records what a user writes in one Spark application."""

    plans: Plans
    plan_recorder: PlanRecorder
    directory: Directory
    user: str
    readers: Readers

    def unwritten(self, operation: Operation, target: str | None, id_: str) -> Written:
        """The result of a write that was done before under its operation id."""
        record = record_of(
            run_id=uuid.uuid4().hex, operation=operation, user=self.user, reads=(), reads_self=False,
            user_metadata=None, directory=self.directory,
        )  # fmt: skip
        observed = Observed(seen=True)
        return Written(
            run_id=record.run_id, record=record, location=target, observed=observed, operation=id_,
            done_before=True
        )  # fmt: skip

    def run(
        self,
        session: Any,
        execute: Callable[[], DataFrame],
        *,
        operation: Operation,
        reads: Sequence[Read],
        reads_self: bool,
        target: str | None,
        locate: Callable[[], str | None],
        known: int,
        committer: RecordCarrier,
        own: str | None = None,
        run_id: str | None = None,
        statement: str | None = None,
        reads_fixed: bool = False,
        chosen: Chosen | None = None,
        seen: Sequence[Read] | None = (),
        query: str | None = None,
        way: ChosenWay | None = None,
    ) -> tuple[DataFrame | None, Written]:
        """Execute what commits in `session` (in the JVM, a clone for this alone). `own` is the user's own metadata,
        None for what the session has; `run_id` is a new one where none is given; `statement` the digest of the text
        that an operation id stands for, `chosen` how it was read; `query` the streaming query whose batch it is.
        `known` is a version that the target's head is not before; `reads_fixed`: another try would read the target at
        the version that this one does; `seen` is what was read for it before, None where Spark did not tell.
        `committer` gives the commit its record; `way` is how rows that change are written, if anybody asked. No
        DataFrame: it is done, and Spark was not told so. Raises `CancelledError` if it is not wanted, `RefusedError` if
        other writers could overwrite what the session commits, `LostRaceError` if somebody committed first."""
        require_wanted()
        if target is not None:
            require_safe_commits(self.plans.spark, target)
        if own is None:
            own = first_known(one.own_metadata(self.plans, session) for one in FORMATS)
        record = record_of(
            run_id=run_id or uuid.uuid4().hex, operation=operation, user=self.user, reads=reads,
            reads_self=reads_self, user_metadata=own, directory=self.directory, statement=statement,
            chosen=chosen, query=query, way=way,
        )  # fmt: skip
        committer.carry(session, record)
        with self.plan_recorder.watching(session, f"lakewarden-{record.run_id}") as evidence:
            try:
                frame: DataFrame | None = execute()
            except LostRaceError as error:
                if reads_fixed and error.is_mendable:
                    lose_for_good(error)
                raise
            except _FROM_JAVA as error:
                committer.settle(error, run_id=record.run_id, is_mendable=not reads_fixed)
                frame = None
        executed = None if seen is None or evidence.reads is None else (*seen, *evidence.reads)
        observed = compare(reads, executed, target)
        location = locate() if observed.unrecorded or target is None else target
        notes = () if chosen is None else chosen.notes
        notes += () if way is None or way.note is None else (way.note,)
        return frame, Written(
            run_id=record.run_id, record=record, location=location, observed=observed, notes=notes,
            after=known if location == target else -1,
        )  # fmt: skip
