"""Statements under an operation id: done once, and again only after they were undone."""

import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.lineage_record import RENUMBERED
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import stamped
from lakewarden.jobs.engines.delta.stream_offsets import last_number, lower_number, number_at
from lakewarden.jobs.session.delta.history import found
from lakewarden.jobs.session.delta.session_keys import number_commit
from lakewarden.jobs.session.formats.table_commits import digest_of, statement_app
from lakewarden.jobs.sql.compile.values import OPERATION_KEY
from lakewarden.jobs.upsert.once import (
    OperationFinding,
    OperationVerdict,
    is_of_old,
    is_statement,
    next_number,
)

__all__ = ["Once", "OperationLookup"]

_FIRST: Final = 1
_UNDONE: Final = 0
"""The number of an older build's operation that was undone."""
_ATTEMPTS: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationLookup:
    """What a version of a table holds of an operation."""

    head: int
    """The version."""
    last: int | None
    """The number that it knows, None for none."""
    finding: OperationFinding
    is_same: bool
    """Nothing speaks against its being the very statement that was asked for."""

    @property
    def number(self) -> int:
        """The number of the next try. Under one number Delta does a second statement never, whatever its text."""
        return next_number(self.last)


@dataclass(frozen=True, kw_only=True)
class Once:
    """One statement on a table, whose text its operation id stands for."""

    spark: SparkSession
    reader: TableReader
    operation: str
    text: str
    location: str
    """Canonical."""

    @property
    def digest(self) -> str:
        """What its commit says of the text."""
        return digest_of(self.text)

    def name(self, session: Any, number: int) -> None:
        """Let what a session (in the JVM, a clone for this alone) commits next be known as this operation."""
        number_commit(session, self._app, number)

    def due(self) -> int | None:
        """The number to do it under, None if the table holds it. Raises `PreconditionError` if the table holds another
        statement under this id, or if nobody can tell; `ConflictError` if others keep committing."""
        look = self.look()
        return None if self._is_held(look) else look.number

    def look(self) -> OperationLookup:
        """What the table holds of it now. Raises `ConflictError` if others keep committing."""
        for _ in range(_ATTEMPTS - 1):
            with suppress(ConflictError):  # what was decided on moved: it is looked at anew
                return self._look()
        return self._look()

    def _look(self) -> OperationLookup:
        head, last = last_number(self.spark, self.location, app=self._app)
        if last is None:
            return OperationLookup(
                head=head,
                last=None,
                finding=OperationFinding(verdict=OperationVerdict.NOT_DONE),
                is_same=True,
            )
        finding = found(
            self.reader,
            self.location,
            head=head,
            app=self._app,
            number=_FIRST,
            last=last,
            known=lambda version: number_at(self.spark, self.location, version=version, app=self._app),
            by_parity=True,
        )
        if finding.verdict is OperationVerdict.NOT_DONE and is_of_old(last):
            with stamped(self.spark, f"{RENUMBERED}{uuid.uuid4().hex}", "operation") as spark:
                lower_number(spark, self.location, requires=head, app=self._app, number=_UNDONE)
            raise ConflictError(f"{self.location} moved past version {head}.")  # by this very commit
        is_same = is_statement(finding.commit, app=self._app, last=last, digest=self.digest)
        return OperationLookup(head=head, last=last, finding=finding, is_same=is_same)

    def head(self) -> int:
        """The table's version now."""
        return last_number(self.spark, self.location, app=self._app)[0]

    def was_by_another(self, run_id: str, *, number: int, after: int) -> bool:
        """Whether `run_id` has not committed after a version, because somebody else did the same first: Delta has
        skipped this one without a word. Raises as `due`, and `ConflictError` if nobody did, and it was skipped."""
        if any(one.run_id == run_id for one in self.reader.commits(self.location, after=after)):
            return False
        look = self.look()
        if self._is_held(look):
            return True
        if look.last is not None and look.last >= number:
            raise self.overtaken()
        return False  # it found nothing to change

    def overtaken(self) -> ConflictError:
        """The error if somebody else committed first, and not this very operation."""
        return ConflictError(
            f"Somebody else committed to the table while operation {self.operation} ran: it was not done.",
            hint=f"Run it again under the same id (SET {OPERATION_KEY}): nothing of it is in the table.",
        )

    def _is_held(self, look: OperationLookup) -> bool:
        if look.finding.verdict is OperationVerdict.UNTOLD:
            raise PreconditionError(
                f"Whether operation {self.operation} was done, or undone since, "
                "the table's log does not tell any more.",
                hint="Look at the table's rows, then give the statement another id: "
                f"SET {OPERATION_KEY} = '...'.",
            )
        if look.finding.verdict is not OperationVerdict.DONE:
            return False
        if not look.is_same:
            raise PreconditionError(
                f"Another statement was done on this table as operation {self.operation}.",
                hint=f"Give this one an id of its own: SET {OPERATION_KEY} = '...'.",
            )
        return True

    @property
    def _app(self) -> str:
        return statement_app(self.operation)
