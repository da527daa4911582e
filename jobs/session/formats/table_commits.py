"""How one write becomes a commit of its table: with its record, under an operation id once, and of a statement over
several tables on exactly the version that was journaled, also where nothing changes.

In the format's own terms, such as a transaction of Delta's that is numbered.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame

from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.lineage_record import STATEMENT, LineageRecord, group_app
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.jobs.session.plans import JavaPlan
from lakewarden.jobs.upsert.once import OperationVerdict, fence_of

__all__ = [
    "HeldOperation",
    "OperationOnce",
    "Readers",
    "RecordCarrier",
    "TableCommit",
    "WriteMark",
    "digest_of",
    "statement_app",
]

Readers = Callable[[TableFormat | None], TableReader]
"""Readers of tables' logs, by their format."""


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


class RecordCarrier(Protocol):
    """How one write becomes a commit with its record, in the format of its table. For a session in the JVM, a clone for
    this write alone."""

    def carry(self, session: Any, record: LineageRecord) -> None:
        """Have what the session commits next carry the record."""

    def settle(self, error: Exception, *, run_id: str, is_mendable: bool) -> None:
        """Return if the commit was made in spite of an error. Raises `LostRaceError` if somebody else came first, of
        which another try makes sense where it `is_mendable`; the error itself if it is another one."""


class OperationOnce(Protocol):
    """One statement on a table, whose text its operation id stands for."""

    @property
    def operation(self) -> str:
        """The id."""

    @property
    def digest(self) -> str:
        """What its commit says of the text."""

    def due(self) -> int | None:
        """The number to do it under, None if the table holds it. Raises `PreconditionError` if the table holds another
        statement under this id, or if nobody can tell; `ConflictError` if others keep committing."""

    def name(self, session: Any, number: int) -> None:
        """Let what a session (in the JVM, a clone for this alone) commits next be known as this operation."""

    def head(self) -> int:
        """The table's version now."""

    def was_by_another(self, run_id: str, *, number: int, after: int) -> bool:
        """Whether `run_id` has not committed after a version, because somebody else did the same first. Raises as
        `due`, and `ConflictError` if nobody did, and it was not done."""


class TableCommit(Protocol):
    """One write's commit. For a session in the JVM, a clone for this write alone."""

    @property
    def format(self) -> TableFormat:
        """That of the table."""

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


def statement_app(operation: str) -> str:
    """The application id of statements under an operation id."""
    return f"{STATEMENT}{operation}"


def digest_of(text: str) -> str:
    """What the commit of a statement under an operation id says of its text."""
    return hashlib.sha256(text.strip().rstrip(";").rstrip().encode()).hexdigest()
