"""Statements under an operation id: done once, and again only after they were undone."""

import hashlib
import uuid
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.lineage_record import RENUMBERED
from lakewarden.jobs.engines.delta.stream_offsets import last_number, lower_number
from lakewarden.jobs.engines.spark.session import stamped
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.upserts.history import holds
from lakewarden.jobs.sql.compile.values import OPERATION_KEY

__all__ = ["APP", "NUMBER", "Once"]

APP: Final = "spark.databricks.delta.write.txnAppId"
NUMBER: Final = "spark.databricks.delta.write.txnVersion"
_UNDONE: Final = 0
"""The number of an operation that was undone: no text has it."""
_BYTES: Final = 7


@dataclass(frozen=True, kw_only=True)
class Once:
    """One statement on the table at `location` (canonical), whose `text` its `operation` stands for."""

    plans: Plans
    reader: TableReader
    operation: str
    text: str
    location: str

    def name(self, session: Any) -> None:
        """Let what a session (in the JVM, a clone for this alone) commits next be known as this operation."""
        session.conf().set(APP, self._app)
        session.conf().set(NUMBER, str(self._number))

    def is_done(self) -> bool:
        """Whether the table holds it. What was undone by a RESTORE that left its number has no number afterwards: Delta
        would skip it. Raises `PreconditionError` if the table holds another statement under this id."""
        head, last = last_number(self.plans.spark, self.location, app=self._app)
        if last <= _UNDONE:
            return False
        if not holds(self.reader, self.location, head=head, app=self._app, number=last):
            with stamped(self.plans.spark, f"{RENUMBERED}{uuid.uuid4().hex}", "operation") as spark:
                lower_number(spark, self.location, requires=head, app=self._app, number=_UNDONE)
            return False
        if last != self._number:
            raise PreconditionError(
                f"Another statement was done on this table as operation {self.operation}.",
                hint=f"Give this one an id of its own: SET {OPERATION_KEY} = '...'.",
            )
        return True

    def head(self) -> int:
        """The table's version now."""
        return last_number(self.plans.spark, self.location, app=self._app)[0]

    def was_by_another(self, run_id: str, *, after: int) -> bool:
        """Whether the table holds it and `run_id` has not committed after that version: somebody else was first, and
        Delta has skipped this one without a word. Raises as `is_done`."""
        if not self.is_done():
            return False
        return all(one.run_id != run_id for one in self.reader.commits(self.location, after=after))

    @property
    def _app(self) -> str:
        return f"lakewarden-sql-{self.operation}"

    @property
    def _number(self) -> int:
        """The text as a number above that of what was undone."""
        digest = hashlib.sha256(self.text.strip().rstrip(";").rstrip().encode()).digest()
        return int.from_bytes(digest[:_BYTES], "big") + _UNDONE + 1
