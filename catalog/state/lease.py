"""The leader's lease: one row and one statement, judged by the database's clock alone.

A lease with a fencing token: the row is never deleted, and its token grows with every change of holder. The token tells
former holders from the current one (Gray and Cheriton, "Leases", 1989).
"""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, case, or_, select, update

from lakewarden.catalog.clock import from_millis
from lakewarden.catalog.state.db import Database, insert_or, milliseconds
from lakewarden.catalog.state.models import LEASE, now_ms
from lakewarden.catalog.state.port import Lease

__all__ = ["DatabaseLeases"]

_HELD = LEASE.c.expires_at > now_ms()


class DatabaseLeases:
    """`Leases` on SQLite or PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def acquire(self, name: str, holder: str, ttl: timedelta) -> Lease | None:
        with self._database.transaction() as connection:
            until = now_ms() + milliseconds(ttl)
            statement = insert_or(connection, LEASE).values(
                name=name, holder=holder, token=1, expires_at=until
            )
            taken = statement.on_conflict_do_update(
                index_elements=[LEASE.c.name],
                set_={
                    "holder": holder,
                    "token": case((LEASE.c.holder == holder, LEASE.c.token), else_=LEASE.c.token + 1),
                    "expires_at": until,
                },
                where=or_(LEASE.c.holder == holder, ~_HELD),
            ).returning(*LEASE.c)
            return _lease(connection.execute(taken).one_or_none())

    def advance(self, name: str, holder: str, token: int) -> Lease | None:
        with self._database.transaction() as connection:
            higher = case((LEASE.c.token < token, token), else_=LEASE.c.token)
            lifted = (
                update(LEASE)
                .where(LEASE.c.name == name, LEASE.c.holder == holder, _HELD)
                .values(token=higher)
            )
            return _lease(connection.execute(lifted.returning(*LEASE.c)).one_or_none())

    def release(self, name: str, holder: str) -> None:
        with self._database.transaction() as connection:
            mine = (LEASE.c.name == name) & (LEASE.c.holder == holder)
            connection.execute(update(LEASE).where(mine).values(expires_at=0))

    def current(self, name: str) -> Lease | None:
        with self._database.transaction() as connection:
            return _lease(connection.execute(select(LEASE).where(LEASE.c.name == name, _HELD)).one_or_none())

    def incarnation(self) -> str:
        return self._database.incarnation()

    def now(self) -> datetime:
        with self._database.transaction() as connection:
            return from_millis(connection.execute(select(now_ms())).scalar_one())


def _lease(row: Row[Any] | None) -> Lease | None:
    if row is None:
        return None
    return Lease(name=row.name, holder=row.holder, token=row.token, expires_at=from_millis(row.expires_at))
