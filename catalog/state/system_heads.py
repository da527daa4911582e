"""What the system tables were when they were last seen: two bookmarks each, its version and what tells its commit.

No table of its own: a lakewarden of before, beside this one, knows the database by its schema version.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from sqlalchemy import select

from lakewarden.catalog.model.system_head import DIGITS, SystemHead
from lakewarden.catalog.state.bookmarks import put_bookmark
from lakewarden.catalog.state.db import Database
from lakewarden.catalog.state.models import BOOKMARK

__all__ = ["DatabaseSystemHeads"]

_VERSION: Final = "version"
_DIGEST: Final = "digest"


class DatabaseSystemHeads:
    """`SystemHeads` on SQLite or PostgreSQL, for the system tables at `location`."""

    def __init__(self, database: Database, location: str) -> None:
        self._database = database
        self._begin = f"system head {sha256(location.encode()).hexdigest()} "

    def get(self) -> Mapping[str, SystemHead]:
        with self._database.transaction() as connection:
            mine = BOOKMARK.c.name.startswith(self._begin, autoescape=True)
            rows = connection.execute(select(BOOKMARK).where(mine))
            known = {tuple(row.name.removeprefix(self._begin).split()): row.value for row in rows}
        return {
            name: SystemHead(version=value, digest=f"{known[name, _DIGEST]:0{DIGITS}x}")
            for (name, kind), value in known.items()
            if kind == _VERSION
        }

    def put(self, heads: Mapping[str, SystemHead]) -> None:
        with self._database.transaction() as connection:
            for name, head in heads.items():
                put_bookmark(connection, f"{self._begin}{name} {_VERSION}", head.version)
                put_bookmark(connection, f"{self._begin}{name} {_DIGEST}", int(head.digest, 16))
