"""What only PostgreSQL has: a server that goes away, rows locked by others, sessions that were frozen."""

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import select, text
from sqlalchemy.engine import make_url

from lakewarden.catalog.state.db import Database, open_database
from lakewarden.catalog.state.models import RUN
from lakewarden.catalog.state.queue import DatabaseQueue
from support.builders.states import LONG, own_schema, request
from support.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres_url: str) -> Iterator[str]:
    with own_schema(postgres_url) as found:
        yield found


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    found = open_database(url)
    yield found
    found.close()


def test_a_server_that_dropped_its_connections_is_used_again(database: Database, postgres_url: str) -> None:
    incarnation = database.incarnation()
    plain = make_url(postgres_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as admin:
        dropped = admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lakewarden'"
        ).fetchall()
    assert dropped
    assert database.incarnation() == incarnation


def test_a_run_that_is_being_claimed_is_skipped_not_waited_for(database: Database, url: str) -> None:
    queue = DatabaseQueue(database)
    best, second = request("a", rank=2), request("b", rank=1)
    queue.enqueue([best, second])
    with open_database(url).transaction() as slow:
        slow.execute(select(RUN).where(RUN.c.run_id == best.run_id).with_for_update())
        claimed = queue.claim("w1", LONG)
    assert claimed is not None
    assert claimed.request == second


def test_nobody_can_hold_locks_for_long(database: Database) -> None:
    with database.transaction() as connection:
        limits = {
            name: connection.execute(text(f"SHOW {name}")).scalar_one()
            for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
        }
    assert limits == {
        "lock_timeout": "10s",
        "statement_timeout": "30s",
        "idle_in_transaction_session_timeout": "10s",
    }


def test_a_database_without_an_encoding_holds_any_text(postgres: PostgresServer) -> None:
    """`initdb` under LC_ALL=C makes such ones."""
    with psycopg.connect(postgres.url().replace("+psycopg", ""), autocommit=True) as admin:
        admin.execute(
            "CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
    database, asked = open_database(postgres.url("ascii")), request("größe")
    try:
        DatabaseQueue(database).enqueue([asked])
        (run,) = DatabaseQueue(database).unfinished()
    finally:
        database.close()
    assert run.request == asked
