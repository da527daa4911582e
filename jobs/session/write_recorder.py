"""A write that says in its own commit what it read, and is watched while it runs."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.lineage_record import LineageRecord, Operation, user_metadata
from lakewarden.catalog.policy.rows_write import ChosenWay
from lakewarden.jobs.engines.spark.cancellation import require_wanted
from lakewarden.jobs.engines.spark.errors import is_lost_race
from lakewarden.jobs.engines.spark.session import USER_METADATA, require_safe_commits
from lakewarden.jobs.session.conflicts.lost_races import look_for_own_commit
from lakewarden.jobs.session.executed_plans import PlanRecorder
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.write_records import compare, record_of
from lakewarden.jobs.session.writes import Directory, Observed, Read, Written
from lakewarden.jobs.sql.compile.values import Chosen

__all__ = ["RecordCarrier", "WriteRecorder"]

_FROM_JAVA: Final = (PySparkException, Py4JJavaError)


class RecordCarrier(Protocol):
    """How one write becomes a commit with its record, in the format of its table. For a session in the JVM, a clone for
    this write alone."""

    def carry(self, session: Any, record: LineageRecord) -> None:
        """Have what the session commits next carry the record."""

    def settle(self, error: Exception, *, run_id: str, is_mendable: bool) -> None:
        """Return if the commit was made in spite of an error. Raises `LostRaceError` if somebody else came first, of
        which another try makes sense where it `is_mendable`; the error itself if it is another one."""


@dataclass(frozen=True, kw_only=True)
class WriteRecorder:
    """Records what a user writes in one Spark application."""

    plans: Plans
    plan_recorder: PlanRecorder
    directory: Directory
    user: str
    reader: TableReader
    """Reads the logs of the tables."""

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
        own: str | None = None,
        run_id: str | None = None,
        statement: str | None = None,
        reads_fixed: bool = False,
        chosen: Chosen | None = None,
        seen: Sequence[Read] | None = (),
        query: str | None = None,
        committer: RecordCarrier | None = None,
        way: ChosenWay | None = None,
    ) -> tuple[DataFrame | None, Written]:
        """Execute what commits in `session` (in the JVM, a clone for this alone). `own` is the user's own metadata,
        None for what the session has; `run_id` is a new one where none is given; `statement` the digest of the text
        that an operation id stands for, `chosen` how it was read; `query` the streaming query whose batch it is.
        `known` is a version that the target's head is not before; `reads_fixed`: another try would read the target at
        the version that this one does; `seen` is what was read for it before, None where Spark did not tell.
        `committer` is Delta's unless told otherwise; `way` is how rows that change are written, if anybody asked. No
        DataFrame: it is done, and Spark was not told so. Raises `CancelledError` if it is not wanted, `RefusedError` if
        other writers could overwrite what the session commits, `LostRaceError` if somebody committed first."""
        require_wanted()
        if target is not None:
            require_safe_commits(self.plans.spark, target)
        own = self.plans.option(session.conf().getOption(USER_METADATA)) if own is None else own
        record = record_of(
            run_id=run_id or uuid.uuid4().hex, operation=operation, user=self.user, reads=reads,
            reads_self=reads_self, user_metadata=own, directory=self.directory, statement=statement,
            chosen=chosen, query=query, way=way,
        )  # fmt: skip
        by = committer or _DeltaCommits(
            self.reader, target, known, makes_table=operation is Operation.REPLACE
        )
        by.carry(session, record)
        with self.plan_recorder.watching(session, f"lakewarden-{record.run_id}") as evidence:
            try:
                frame: DataFrame | None = execute()
            except _FROM_JAVA as error:
                by.settle(error, run_id=record.run_id, is_mendable=not reads_fixed)
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


@dataclass(frozen=True)
class _DeltaCommits:
    """`RecordCarrier` of a Delta table: its own transaction commits."""

    reader: TableReader
    target: str | None
    known: int
    """A version that the target's head is not before."""
    _: KW_ONLY
    makes_table: bool

    def carry(self, session: Any, record: LineageRecord) -> None:
        session.conf().set(USER_METADATA, user_metadata(record))

    def settle(self, error: Exception, *, run_id: str, is_mendable: bool) -> None:
        if self.target is None or not isinstance(error, _FROM_JAVA) or not is_lost_race(error):
            raise error
        look_for_own_commit(
            self.reader,
            self.target,
            since=self.known,
            run_id=run_id,
            said=str(error),
            reads_fixed=not is_mendable,
            makes_table=self.makes_table,
        )
