"""How a write of a Delta table becomes a commit: its own transaction, with our record, numbered where it has to be."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.lineage_record import LineageRecord, user_metadata
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import USER_METADATA
from lakewarden.jobs.engines.spark.errors import is_lost_race
from lakewarden.jobs.session.conflicts.lost_races import look_for_own_commit
from lakewarden.jobs.session.delta.operation_ids import Once
from lakewarden.jobs.session.delta.session_keys import commit_at_once, number_commit
from lakewarden.jobs.session.formats.table_commits import HeldOperation, WriteMark
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["DeltaCommit", "DeltaRecords"]

_FROM_JAVA: Final = (PySparkException, Py4JJavaError)


@dataclass(frozen=True)
class DeltaCommit:
    """A transaction with a number, which Delta makes once, or never where something else has taken its number."""

    plans: Plans
    spark: Any
    reader: TableReader
    location: str
    format: TableFormat = DELTA

    def read_at(self, snapshots: Mapping[str, Any]) -> int | None:
        snapshot = snapshots.get(self.location)
        return None if snapshot is None else int(snapshot.version())

    def look(self, operation: str, text: str) -> HeldOperation:
        once = Once(
            spark=self.spark, reader=self.reader, operation=operation, text=text, location=self.location
        )
        found = once.look()
        commit = found.finding.commit
        return HeldOperation(
            head=found.head,
            verdict=found.finding.verdict,
            is_same=found.is_same,
            number=found.number,
            run_id=None if commit is None else commit.run_id,
        )

    def name(self, session: Any, mark: WriteMark) -> None:
        number_commit(session, mark.app, mark.number)
        commit_at_once(session)

    def run(self, session: Any, plan: JavaPlan) -> DataFrame:
        return self.plans.run(session, plan)

    def is_made(self, frame: DataFrame) -> bool:
        return bool(frame.collect())  # Delta has no result where it did nothing


@dataclass(frozen=True)
class DeltaRecords:
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
