"""Statements under an operation id: done once, and again only after they were undone."""

import hashlib
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.catalog.model.lineage_record import RENUMBERED, STATEMENT
from lakewarden.jobs.engines.delta.stream_offsets import last_number, lower_number, number_at
from lakewarden.jobs.engines.spark.session import stamped
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.upserts.history import found
from lakewarden.jobs.sql.compile.values import OPERATION_KEY
from lakewarden.jobs.upsert.once import Verdict, is_statement

__all__ = ["APP", "NUMBER", "Once"]

APP: Final = "spark.databricks.delta.write.txnAppId"
NUMBER: Final = "spark.databricks.delta.write.txnVersion"
_DONE: Final = 1
"""The number of every operation: under one id Delta does a second statement never, whatever its text."""
_UNDONE: Final = 0
"""The number of an operation that was undone."""
_ATTEMPTS: Final = 5


@dataclass(frozen=True, kw_only=True)
class Once:
    """One statement on the table at `location` (canonical), whose `text` its `operation` stands for."""

    plans: Plans
    reader: TableReader
    operation: str
    text: str
    location: str

    @property
    def digest(self) -> str:
        """What its commit says of the text."""
        return hashlib.sha256(self.text.strip().rstrip(";").rstrip().encode()).hexdigest()

    def name(self, session: Any) -> None:
        """Let what a session (in the JVM, a clone for this alone) commits next be known as this operation."""
        session.conf().set(APP, self._app)
        session.conf().set(NUMBER, str(_DONE))

    def is_done(self) -> bool:
        """Whether the table holds it. What was undone by a RESTORE that left its number has no number afterwards: Delta
        would skip it. Raises `PreconditionError` if the table holds another statement under this id, or if nobody can
        tell; `ConflictError` if others keep committing."""
        for _ in range(_ATTEMPTS - 1):
            with suppress(ConflictError):  # what was decided on moved: it is looked at anew
                return self._is_done()
        return self._is_done()

    def _is_done(self) -> bool:
        head, last = last_number(self.plans.spark, self.location, app=self._app)
        if last is None:
            return False
        finding = found(
            self.reader,
            self.location,
            head=head,
            app=self._app,
            number=_DONE,
            last=last,
            known=lambda version: number_at(self.plans.spark, self.location, version=version, app=self._app),
        )
        if finding.verdict is Verdict.DONE:
            self._require_same(finding.commit, last)
            return True
        if finding.verdict is Verdict.UNTOLD:
            raise PreconditionError(
                f"Whether operation {self.operation} was done, or undone since, the table's log does not tell any more.",
                hint=f"Look at the table's rows, then give the statement another id: SET {OPERATION_KEY} = '...'.",
            )
        if last > _UNDONE:
            with stamped(self.plans.spark, f"{RENUMBERED}{uuid.uuid4().hex}", "operation") as spark:
                lower_number(spark, self.location, requires=head, app=self._app, number=_UNDONE)
        return False

    def head(self) -> int:
        """The table's version now."""
        return last_number(self.plans.spark, self.location, app=self._app)[0]

    def was_by_another(self, run_id: str, *, after: int) -> bool:
        """Whether the table holds it and `run_id` has not committed after that version: somebody else was first, and
        Delta has skipped this one without a word. Raises as `is_done`."""
        if not self.is_done():
            return False
        return all(one.run_id != run_id for one in self.reader.commits(self.location, after=after))

    def overtaken(self) -> ConflictError:
        """Why it failed where somebody else committed first, and not this very operation."""
        return ConflictError(
            f"Somebody else committed to the table while operation {self.operation} ran: it was not done.",
            hint=f"Run it again under the same id (SET {OPERATION_KEY}): nothing of it is in the table.",
        )

    def _require_same(self, commit: Commit | None, last: int) -> None:
        if not is_statement(commit, app=self._app, last=last, digest=self.digest):
            raise PreconditionError(
                f"Another statement was done on this table as operation {self.operation}.",
                hint=f"Give this one an id of its own: SET {OPERATION_KEY} = '...'.",
            )

    @property
    def _app(self) -> str:
        return f"{STATEMENT}{self.operation}"
