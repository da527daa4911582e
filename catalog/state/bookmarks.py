"""How far something has been read, by name: one row each."""

from sqlalchemy import Connection, select

from lakewarden.catalog.state.db import Database, insert_or
from lakewarden.catalog.state.models import BOOKMARK

__all__ = ["DatabaseBookmarks", "put_bookmark"]


class DatabaseBookmarks:
    """`Bookmarks` on SQLite or PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> int | None:
        with self._database.transaction() as connection:
            found = connection.execute(select(BOOKMARK.c.value).where(BOOKMARK.c.name == name))
            return found.scalar_one_or_none()

    def put(self, name: str, value: int) -> None:
        with self._database.transaction() as connection:
            put_bookmark(connection, name, value)


def put_bookmark(connection: Connection, name: str, value: int) -> None:
    """Within a transaction: move it there, or make it."""
    row = insert_or(connection, BOOKMARK).values(name=name, value=value)
    connection.execute(row.on_conflict_do_update(index_elements=[BOOKMARK.c.name], set_={"value": value}))
