"""How one write of a statement over several tables becomes a commit of its table: one that is made on exactly the
version that was journaled, once, and also where nothing changes.

In the format's own terms: a Delta transaction that is numbered, or a snapshot of Iceberg's on the metadata that was
looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.lineage_record import group_app
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.jobs.engines.spark.session import COMMIT_ATTEMPTS
from lakewarden.jobs.session.iceberg.staged_writes import StagedWrite
from lakewarden.jobs.session.plans import JavaPlan, Plans
from lakewarden.jobs.session.upserts.operation_ids import APP, NUMBER, Once, digest_of, statement_app
from lakewarden.jobs.session.write_plans.write_shapes import Shape
from lakewarden.jobs.session.write_recorder import RecordCarrier
from lakewarden.jobs.upsert.once import OperationVerdict, fence_of

__all__ = ["DeltaCommit", "HeldOperation", "TableCommit", "WriteMark", "commit_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteMark:
    """By what the log of its table tells a group's write: the group's id, a transaction's number under an application
    id, and the digest of the text that an operation id stands for, None where there is none."""

    group_id: str
    app: str
    number: int = 1
    digest: str | None = None

    @classmethod
    def of(cls, group_id: str) -> "WriteMark":
        """The mark of a statement without an operation id: each group is an application of its own."""
        return cls(group_id=group_id, app=group_app(group_id))

    @property
    def apps(self) -> tuple[str, ...]:
        """The application ids whose numbers go back with the table where the write is taken back."""
        return () if self.digest is None else (self.app,)

    @property
    def fence(self) -> int:
        """The number by which a table says that the write was not made, and never will be."""
        return self.number if self.digest is None else fence_of(self.number)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOperation:
    """What a version of a table holds of a statement under an operation id."""

    head: int
    """The version."""
    verdict: OperationVerdict
    is_same: bool
    """Nothing speaks against its being the very statement that was asked for."""
    number: int = 1
    """That of the next try."""
    run_id: str | None = None
    """The run of its commit, None if unknown."""


class TableCommit(Protocol):
    """One write's commit. For a session in the JVM, a clone for this write alone."""

    @property
    def format(self) -> TableFormat:
        """That of the table."""

    @property
    def carrier(self) -> RecordCarrier | None:
        """What gives it its record; None: `WriteRecorder` does."""

    def read_at(self, snapshots: Mapping[str, Any]) -> int | None:
        """The version that other steps of the statement have read its table at, as `pin` tells, or that the write was
        prepared on; None where neither is so."""

    def look(self, operation: str, text: str) -> HeldOperation:
        """What the table holds of a statement under an operation id. Raises `ConflictError` if others keep
        committing."""

    def name(self, session: Any, mark: WriteMark) -> None:
        """Let what the session commits next be known by a mark, and be tried but once."""

    def run(self, session: Any, plan: JavaPlan) -> DataFrame:
        """Run an analysed and pinned statement. Raises what Spark and the format raise."""

    def is_made(self, frame: DataFrame) -> bool:
        """Whether `run` has committed: False where the table says that this was done already."""


@dataclass(frozen=True)
class DeltaCommit:
    """A transaction with a number, which Delta makes once, or never where something else has taken its number."""

    plans: Plans
    spark: Any
    reader: TableReader
    location: str
    format: TableFormat = "delta"
    carrier: None = None

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
        session.conf().set(APP, mark.app)
        session.conf().set(NUMBER, str(mark.number))
        session.conf().set(COMMIT_ATTEMPTS, "0")

    def run(self, session: Any, plan: JavaPlan) -> DataFrame:
        return self.plans.run(session, plan)

    def is_made(self, frame: DataFrame) -> bool:
        return bool(frame.collect())  # Delta has no result where it did nothing


@dataclass(frozen=True)
class _StagedCommit:
    """One snapshot, on exactly the metadata that was looked at: whatever came in between, such as a fence, keeps it
    out."""

    staged: StagedWrite
    key: str
    """What tells its table from others in the statement."""
    format: TableFormat = "iceberg"

    @property
    def carrier(self) -> RecordCarrier:
        return self.staged

    def read_at(self, snapshots: Mapping[str, Any]) -> int:
        return int(snapshots[self.key].currentSnapshot().sequenceNumber())

    def look(self, operation: str, text: str) -> HeldOperation:
        is_held, done = self.staged.holds(statement_app(operation))
        return HeldOperation(
            head=self.staged.version,
            verdict=OperationVerdict.DONE if is_held else OperationVerdict.NOT_DONE,
            is_same=done is None or done.statement == digest_of(text),
            run_id=None if done is None else done.run_id,
        )

    def name(self, session: Any, mark: WriteMark) -> None:
        self.staged.make_version()
        if mark.digest is not None:
            self.staged.name(mark.app, mark.number)

    def run(self, session: Any, plan: JavaPlan) -> DataFrame:
        return self.staged.run(session, plan)

    def is_made(self, frame: DataFrame) -> bool:
        return True


def commit_of(plans: Plans, reader: TableReader, shape: Shape, called: str) -> TableCommit:
    """How a write of this shape, to the table that is `called` so, is committed. `reader` reads Delta's logs. Raises
    `UsageError` for a table that could not be taken back to what it is."""
    assert shape.target is not None, "a table that is there is changed"
    if not isinstance(shape.staged, StagedWrite):
        return DeltaCommit(plans, plans.spark, reader, shape.target)
    if shape.staged.target.base.currentSnapshot() is None:
        raise UsageError(
            f"{called} has no version so far to which it could be taken back.",
            hint="Insert a row into it first, or write one statement for each table.",
        )
    (key,) = shape.heads
    return _StagedCommit(shape.staged, key)
