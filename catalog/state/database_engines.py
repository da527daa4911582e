"""The two databases there are, each made to behave: SQLite in a file, PostgreSQL behind a pool.

SQLite alone does not notice that its file was deleted: it goes on with one that has no name any more. So each
connection knows which file it has open, and is given up when the name belongs to another one.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import QueuePool

from lakewarden.catalog.private_files import private_opener, tighten

__all__ = ["FileConnection", "postgresql_engine", "sqlite_engine"]

_BUSY_SECONDS: Final = 10.0
_CONNECT_SECONDS: Final = 5
_GONE: Final = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
"""When a server counts as gone that says nothing, not even that it is: a machine that lost its power, a firewall that
forgot the connection. Seconds, and milliseconds for what was sent and not acknowledged. By the kernel's own values it
would take a quarter of an hour, or two hours; a leader has to know within its lease."""
_LOCK_PAUSE_SECONDS: Final = 0.01


class FileConnection(sqlite3.Connection):
    """A connection that knows which file it has open. While it is open the inode cannot be given to another."""

    file: tuple[int, int] | None = None

    def is_to(self, path: Path) -> bool:
        """Whether the open file still has this name."""
        return self.file is not None and self.file == _identity(path)


def sqlite_engine(path: Path) -> Engine:
    """An engine on the file that has this name at the start of each transaction; made when there is none, in a
    folder that is there."""
    engine = create_engine(
        "sqlite://", creator=lambda: _open_file(path), poolclass=QueuePool, pool_size=2, max_overflow=8
    )

    @event.listens_for(engine, "checkout")
    def _check(connection: FileConnection, _record: object, _proxy: object) -> None:
        if not connection.is_to(path):
            raise DisconnectionError("the file was deleted or replaced")  # the pool connects anew

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # Taking the write lock first makes "read, then decide, then write" safe, and waiting possible: a
        # transaction that starts as a reader fails at once with SQLITE_BUSY when it wants to write.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def postgresql_engine(url: URL) -> Engine:
    """An engine with a small pool. `options` in the URL are passed on, after ours."""
    busy = int(_BUSY_SECONDS * 1000)
    # The last one ends the transaction of a process that was frozen in the middle of it, and frees its locks.
    options = (
        f"-c lock_timeout={busy} -c statement_timeout={3 * busy} -c "
        f"idle_in_transaction_session_timeout={busy}"
    )
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_size=2,
        max_overflow=8,
        pool_timeout=_BUSY_SECONDS,
        connect_args={
            "connect_timeout": _CONNECT_SECONDS,
            **{name: value for name, value in _GONE.items() if name not in url.query},
            "application_name": "lakewarden",
            "client_encoding": "utf8",  # else text of a database made as SQL_ASCII comes as bytes
            "options": f"{options} {url.query.get('options', '')}",
        },
    )


def _open_file(path: Path) -> FileConnection:
    with _alone_in(path.parent):
        if not path.exists():
            # Somebody deleted the database alone. What is left of its log would make the new one unusable.
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            with open(path, "xb", opener=private_opener):
                pass  # SQLite would make it by the umask; its log gets the rights of the database
        # One that is there must not be opened to tighten it: to close it would end this process' locks on it, all
        # connections' (POSIX), and the next process to leave the database would delete its log under them.
        tighten(path)
        connection = sqlite3.connect(
            path,
            timeout=_BUSY_SECONDS,
            isolation_level=None,  # no implicit BEGIN by the driver: ours takes the write lock
            check_same_thread=False,  # the pool hands a connection to one thread at a time
            factory=FileConnection,
        )
        connection.execute("PRAGMA journal_mode = WAL")
        # A commit survives the process, not a power cut (then the file is merely older): a cache needs no more,
        # and it costs 0.4 ms instead of 5.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.file = _identity(path)
    return connection


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Only one process at a time opens a database file of this folder: a lock on the folder itself, so that no lock
    file can be deleted along with the database."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise sqlite3.OperationalError("the folder cannot be opened") from error
    try:
        until = time.monotonic() + _BUSY_SECONDS
        while not _try_lock(handle):
            if time.monotonic() > until:
                raise sqlite3.OperationalError("another process has been opening the file for too long")
            time.sleep(_LOCK_PAUSE_SECONDS)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _identity(file: Path) -> tuple[int, int] | None:
    """Device and inode; None while there is no such file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
