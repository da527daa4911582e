"""What the system tables were when they were last seen: one row each."""

from collections.abc import Mapping

from sqlalchemy import select

from lakewarden.catalog.model.system_head import SystemHead
from lakewarden.catalog.state.db import Database, insert_or
from lakewarden.catalog.state.models import SYSTEM_HEAD

__all__ = ["DatabaseSystemHeads"]


class DatabaseSystemHeads:
    """`SystemHeads` on SQLite or PostgreSQL, for the system tables at `location`."""

    def __init__(self, database: Database, location: str) -> None:
        self._database, self._location = database, location

    def get(self) -> Mapping[str, SystemHead]:
        with self._database.transaction() as connection:
            rows = connection.execute(select(SYSTEM_HEAD).where(SYSTEM_HEAD.c.location == self._location))
            return {row.name: SystemHead(version=row.version, digest=row.digest) for row in rows}

    def put(self, heads: Mapping[str, SystemHead]) -> None:
        with self._database.transaction() as connection:
            for name, head in heads.items():
                now = {"version": head.version, "digest": head.digest}
                row = insert_or(connection, SYSTEM_HEAD).values(location=self._location, name=name, **now)
                keys = [SYSTEM_HEAD.c.location, SYSTEM_HEAD.c.name]
                connection.execute(row.on_conflict_do_update(index_elements=keys, set_=now))
