"""Hints that wait for the next cycle, in the order in which they arrived."""

from collections.abc import Iterable

from sqlalchemy import delete, select

from lakewarden.catalog.clock import from_millis, to_millis
from lakewarden.catalog.state.db import Database, insert_or
from lakewarden.catalog.state.models import HINT
from lakewarden.catalog.state.port import Hint, HintKind

__all__ = ["DatabaseInbox"]


class DatabaseInbox:
    """`Inbox` on SQLite or PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, hints: Iterable[Hint]) -> None:
        rows = [
            {
                "hint_id": hint.hint_id,
                "subject": hint.subject,
                "kind": hint.kind.value,
                "at": to_millis(hint.at),
            }
            for hint in hints
        ]
        if rows:
            with self._database.transaction() as connection:
                connection.execute(insert_or(connection, HINT).on_conflict_do_nothing(), rows)

    def claim(self, limit: int) -> tuple[Hint, ...]:
        with self._database.transaction() as connection:
            rows = connection.execute(select(HINT).order_by(HINT.c.seq).limit(limit)).all()
        return tuple(
            Hint(hint_id=row.hint_id, subject=row.subject, kind=HintKind(row.kind), at=from_millis(row.at))
            for row in rows
        )

    def done(self, hint_ids: Iterable[str]) -> None:
        rows = list(hint_ids)
        if rows:
            with self._database.transaction() as connection:
                connection.execute(delete(HINT).where(HINT.c.hint_id.in_(rows)))
