"""The operational database under test: the fake, a SQLite file and PostgreSQL behind one face."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.state.bookmarks import DatabaseBookmarks
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.inbox import DatabaseInbox
from lakewarden.catalog.state.lease import DatabaseLeases
from lakewarden.catalog.state.port import Bookmarks, Inbox, Leases, Queue, RunLog, RunRequest, SystemHeads
from lakewarden.catalog.state.queue import DatabaseQueue
from lakewarden.catalog.state.run_log import DatabaseRunLog
from lakewarden.catalog.state.system_heads import DatabaseSystemHeads
from support.fakes.clock import ManualClock
from support.fakes.state import (
    FakeBookmarks,
    FakeInbox,
    FakeLeases,
    FakeQueue,
    FakeRunLog,
    FakeSystemHeads,
)

__all__ = ["LONG", "SHORT", "State", "database_state", "fake_state", "own_schema", "request", "sqlite_url"]

SHORT = timedelta(milliseconds=150)
"""A time to live that a test can wait out on a real database."""
LONG = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class State:
    """The six ports on one database; `wait` lets time pass for it."""

    leases: Leases
    inbox: Inbox
    queue: Queue
    bookmarks: Bookmarks
    run_log: RunLog
    heads: SystemHeads
    wait: Callable[[timedelta], None]


def fake_state() -> State:
    clock = ManualClock()
    return State(
        leases=FakeLeases(clock),
        inbox=FakeInbox(),
        queue=FakeQueue(clock),
        bookmarks=FakeBookmarks(),
        run_log=FakeRunLog(),
        heads=FakeSystemHeads(),
        wait=clock.advance,
    )


@contextmanager
def database_state(url: str) -> Iterator[State]:
    database = open_database(url)
    yield State(
        leases=DatabaseLeases(database),
        inbox=DatabaseInbox(database),
        queue=DatabaseQueue(database),
        bookmarks=DatabaseBookmarks(database),
        run_log=DatabaseRunLog(database),
        heads=DatabaseSystemHeads(database, "file:///lake/system"),
        wait=lambda duration: time.sleep(duration.total_seconds()),
    )
    database.close()


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'state.db'}"


@contextmanager
def own_schema(postgres_url: str) -> Iterator[str]:
    """A URL of the same PostgreSQL database that sees a new, empty schema only."""
    server = make_url(postgres_url)
    schema = f"t_{uuid.uuid4().hex}"
    plain = server.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        yield server.update_query_dict({"options": f"-c search_path={schema}"}).render_as_string(
            hide_password=False
        )
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


def request(table: str = "t", **changes: Any) -> RunRequest:
    """A vacuum of a table, to be queued."""
    base = RunRequest(
        run_id=uuid.uuid4().hex,
        table_id=f"id-{table}",
        name=f"db.{table}",
        location=f"file:///lake/{table}",
        action=Action.VACUUM,
        payload="{}",
        because="3 tombstones are older than 7 days",
    )
    return replace(base, **changes)
