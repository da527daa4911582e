"""A statement under an operation id on an Iceberg table: the id is in the summary of its snapshot."""

from dataclasses import dataclass
from typing import Any

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.session.formats.table_commits import digest_of, statement_app
from lakewarden.jobs.session.iceberg.staged_writes import StagedWrite
from lakewarden.jobs.sql.compile.values import OPERATION_KEY

__all__ = ["StagedOnce"]


@dataclass(frozen=True, kw_only=True)
class StagedOnce:
    """One statement, whose text its operation id stands for. The table holds it while main descends from its snapshot:
    after a rollback it is done again. Its commit is on exactly the table that was looked at, so that of two who do the
    same at once one loses the race, and looks again."""

    staged: StagedWrite
    operation: str
    text: str

    @property
    def digest(self) -> str:
        """What its commit says of the text."""
        return digest_of(self.text)

    def due(self) -> int | None:
        """None if the table holds it. Raises `PreconditionError` if the table holds another statement under this id."""
        is_held, done = self.staged.holds(statement_app(self.operation))
        if done is not None and done.statement != self.digest:
            raise PreconditionError(
                f"Another statement was done on this table as operation {self.operation}.",
                hint=f"Give this one an id of its own: SET {OPERATION_KEY} = '...'.",
            )
        return None if is_held else 0

    def name(self, session: Any, number: int) -> None:
        """Let its snapshot be known as this operation."""
        self.staged.name(statement_app(self.operation))

    def head(self) -> int:
        """The version that was looked at."""
        return self.staged.version

    def was_by_another(self, run_id: str, *, number: int, after: int) -> bool:
        """Nobody else's commit is taken for this one."""
        return False
