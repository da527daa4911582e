"""What was said during runs, line by line. Kept for as long as the ids of recorded runs are."""

from collections.abc import Sequence

from sqlalchemy import insert, select

from lakewarden.catalog.clock import from_millis, to_millis
from lakewarden.catalog.state.db import Database
from lakewarden.catalog.state.models import RUN_LINE
from lakewarden.catalog.state.port import RunLine

__all__ = ["DatabaseRunLog"]


class DatabaseRunLog:
    """`RunLog` on SQLite or PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, run_id: str, lines: Sequence[RunLine]) -> None:
        rows = [
            {"run_id": run_id, "at": to_millis(line.at), "level": line.level, "message": line.message}
            for line in lines
        ]
        if rows:
            with self._database.transaction() as connection:
                connection.execute(insert(RUN_LINE), rows)

    def read(self, run_id: str, *, after: int = 0) -> tuple[RunLine, ...]:
        found = (
            select(RUN_LINE)
            .where(RUN_LINE.c.run_id == run_id, RUN_LINE.c.seq > after)
            .order_by(RUN_LINE.c.seq)
        )
        with self._database.transaction() as connection:
            rows = connection.execute(found).all()
        return tuple(
            RunLine(seq=row.seq, at=from_millis(row.at), level=row.level, message=row.message) for row in rows
        )
