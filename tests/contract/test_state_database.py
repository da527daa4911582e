"""The operational database itself: made on the fly, migrated forward, deleted, unreachable: always one sentence."""

import os
import socket
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, insert, select, text
from sqlalchemy.schema import CreateTable

from lakewarden.catalog.errors import (
    ConflictError,
    LakewardenError,
    OutdatedError,
    UnavailableError,
    UsageError,
)
from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.state.db import Database, open_database
from lakewarden.catalog.state.models import META, RUN, STEPS
from lakewarden.catalog.state.port import Result, RunState
from lakewarden.catalog.state.queue import DatabaseQueue
from lakewarden.catalog.state.run_rows import to_columns
from support.builders.states import LONG, request, sqlite_url

MOON = Table("lakewarden_moon", MetaData(), Column("phase", Integer, primary_key=True))
NEWER = (*STEPS, (CreateTable(MOON),))
"""What a later version might add."""


def version(database: Database) -> int:
    with database.transaction() as connection:
        return int(connection.execute(select(META.c.schema_version)).scalar_one())


def test_a_missing_database_is_made_on_the_fly_and_keeps_its_id(url: str) -> None:
    first, second = open_database(url), open_database(url)
    assert first.incarnation() == second.incarnation() != ""
    assert version(first) == len(STEPS)


def test_connections_that_find_nothing_at_the_same_moment_make_one_database(url: str) -> None:
    together = threading.Barrier(8)

    def create() -> str:
        database = open_database(url)
        together.wait()
        try:
            return database.incarnation()
        finally:
            database.close()

    with ThreadPoolExecutor(together.parties) as pool:
        incarnations = [pool.submit(create) for _ in range(together.parties)]
    assert len({future.result() for future in incarnations}) == 1


def test_a_newer_program_takes_the_database_forward_and_nothing_is_lost(url: str) -> None:
    old = open_database(url)
    incarnation = old.incarnation()
    new = open_database(url, steps=NEWER)
    assert new.incarnation() == incarnation
    assert version(new) == len(NEWER)
    with new.transaction() as connection:
        connection.execute(insert(MOON), {"phase": 3})


def test_runs_of_before_hints_were_kept_are_still_there(url: str) -> None:
    old = open_database(url, steps=STEPS[:2])
    values = to_columns(request("t"), RunState.FINISHED) | {"queued_at": 1, "finished_at": 2}
    del values["runtime"]  # came later, too
    with old.transaction() as connection:
        connection.execute(
            insert(RUN), values | {"outcome": "failed", "message": "It broke.", "retry": False}
        )
    queue = DatabaseQueue(open_database(url))
    [kept] = queue.finished(10)
    assert kept.request == request("t", run_id=kept.request.run_id)
    assert kept.result == Result(outcome=Outcome.FAILED, message="It broke.")
    queue.enqueue([request("u")])
    run = queue.claim("w1", LONG)
    assert run is not None
    queue.finish(run, "w1", Result(outcome=Outcome.FAILED, hint="Mend it."))
    assert [one.result.hint for one in queue.finished(10) if one.result is not None] == [None, "Mend it."]


def test_an_older_program_steps_down_even_while_it_runs(url: str) -> None:
    old = open_database(url)
    old.incarnation()
    open_database(url, steps=NEWER).incarnation()
    with pytest.raises(
        OutdatedError, match=f"schema version {len(NEWER)}; this lakewarden knows {len(STEPS)}"
    ) as caught:
        old.incarnation()
    assert "newer lakewarden" in caught.value.hint


def test_a_database_without_any_step_taken_is_migrated_through_all(url: str) -> None:
    open_database(url, steps=()).incarnation()
    assert version(open_database(url, steps=NEWER)) == len(NEWER)


def test_a_migration_that_fails_leaves_the_old_version(url: str) -> None:
    old = open_database(url)
    old.incarnation()
    broken = (*STEPS, (CreateTable(MOON), CreateTable(MOON)))
    with pytest.raises(UnavailableError):
        open_database(url, steps=broken).incarnation()
    assert version(old) == len(STEPS)
    assert version(open_database(url, steps=NEWER)) == len(NEWER)


def test_an_error_in_the_block_undoes_it(url: str) -> None:
    database = open_database(url, steps=NEWER)
    with pytest.raises(LakewardenError, match="on purpose"), database.transaction() as connection:
        connection.execute(insert(MOON), {"phase": 1})
        raise LakewardenError("on purpose")
    with database.transaction() as connection:
        assert connection.execute(select(MOON)).all() == []


def test_a_broken_constraint_is_a_conflict(url: str) -> None:
    database = open_database(url, steps=NEWER)
    with pytest.raises(ConflictError), database.transaction() as connection:
        connection.execute(insert(MOON), {"phase": 1})
        connection.execute(insert(MOON), {"phase": 1})


def test_what_the_library_says_is_never_shown(url: str) -> None:
    database = open_database(url)
    with pytest.raises(UnavailableError) as caught, database.transaction() as connection:
        connection.execute(text("SELECT * FROM nothing"))
    assert "nothing" not in str(caught.value) + caught.value.hint
    assert caught.value.retry


@pytest.mark.parametrize("side_files", [False, True], ids=["the file alone", "with its side files"])
def test_a_deleted_file_is_made_anew_with_another_id(tmp_path: Path, side_files: bool) -> None:
    database, other = open_database(sqlite_url(tmp_path)), open_database(sqlite_url(tmp_path))
    before = database.incarnation()
    assert other.incarnation() == before
    for suffix in ("", "-wal", "-shm") if side_files else ("",):
        (tmp_path / f"state.db{suffix}").unlink(missing_ok=True)
    after = database.incarnation()
    assert after != before
    assert other.incarnation() == after


@pytest.mark.heavy
def test_who_comes_and_goes_leaves_the_log_to_those_who_have_it_open(tmp_path: Path) -> None:
    """The last to leave a database deletes its log, and by its locks SQLite tells who that is: a process that opened
    and closed the file beside SQLite would have none any more, and go on with a log that nobody else sees."""
    file = tmp_path / "state.db"
    ours = [open_database(sqlite_url(tmp_path)) for _ in range(2)]  # two connections
    for one in ours:
        one.incarnation()
    assert _runs_seen_by_another(file) == 0
    DatabaseQueue(ours[0]).enqueue([request("a")])
    assert _runs_seen_by_another(file) == 1


def _runs_seen_by_another(file: Path) -> int:
    """By a process that opens the database, looks, and closes it again."""
    look = "import sqlite3, sys; one = sqlite3.connect(sys.argv[1]); "
    look += "print(one.execute('SELECT count(*) FROM lakewarden_run').fetchone()[0]); one.close()"
    done = subprocess.run([sys.executable, "-c", look, file], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_a_commit_into_a_deleted_file_is_not_called_a_success(tmp_path: Path) -> None:
    database = open_database(sqlite_url(tmp_path), steps=NEWER)
    with pytest.raises(UnavailableError, match="was replaced"), database.transaction() as connection:
        connection.execute(insert(MOON), {"phase": 1})
        (tmp_path / "state.db").unlink()
    with database.transaction() as connection:
        assert connection.execute(select(MOON)).all() == []


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    database = open_database(sqlite_url(tmp_path / "nowhere"))
    with pytest.raises(UnavailableError) as caught:
        database.incarnation()
    assert "lakewarden init" in caught.value.hint
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_is_no_database_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_text("a shopping list, and a long one, for a rainy day\n" * 100)
    with pytest.raises(UnavailableError) as caught:
        open_database(sqlite_url(tmp_path)).incarnation()
    assert "delete it" in caught.value.hint


def test_a_database_that_somebody_else_uses_keeps_its_other_tables(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute("CREATE TABLE theirs (a INTEGER)")
    connection.close()
    assert open_database(sqlite_url(tmp_path)).incarnation()


def test_an_unreachable_postgresql_never_shows_the_password() -> None:
    database = open_database("postgresql://ana:s3cret@127.0.0.1:1/lake")
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1/lake does not answer") as caught:
        database.incarnation()
    assert "s3cret" not in f"{caught.value}{caught.value.hint}{database!r}"


@pytest.mark.parametrize(
    "url", ["", "nonsense", "mysql://h/d", "sqlite://", "sqlite:///:memory:", "postgresql+asyncpg://h/d"]
)
def test_other_urls_are_refused_with_an_example(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_database(url)
    assert "sqlite:///" in caught.value.hint


@pytest.mark.postgres
@pytest.mark.parametrize(("asked", "milliseconds"), [("", 30_000), ("?tcp_user_timeout=7000", 7_000)])
def test_a_server_that_says_nothing_any_more_is_given_up_within_a_lease(
    postgres_url: str, asked: str, milliseconds: int
) -> None:
    database = open_database(f"{postgres_url}{asked}")
    with database.transaction() as connection:
        driven = connection.connection.driver_connection
        assert driven is not None
        with socket.socket(fileno=os.dup(driven.pgconn.socket)) as ours:
            options = (socket.TCP_USER_TIMEOUT, socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            kept = [ours.getsockopt(socket.IPPROTO_TCP, one) for one in options]
    database.close()
    assert kept == [milliseconds, 10, 5, 4]
