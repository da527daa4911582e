"""One transaction at a time on SQLite (embedded) or PostgreSQL (production): creation, migration, errors.

Every transaction looks at the database's own version row first. So a database that was deleted is made anew in the
same breath, and a program that finds a newer schema stops before it writes anything.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Table, insert, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.schema import CreateTable

from lakewarden.catalog.errors import ConflictError, OutdatedError, UnavailableError, UsageError
from lakewarden.catalog.state.database_engines import FileConnection, postgresql_engine, sqlite_engine
from lakewarden.catalog.state.models import META, STEPS, Steps

__all__ = ["Database", "insert_or", "milliseconds", "open_database"]

_CREATION_LOCK: Final = int.from_bytes(b"lakeward")
"""Key of PostgreSQL's advisory lock: any 64-bit number that nobody else uses would do."""

_URLS: Final = "Write sqlite:///absolute/path/state.db or postgresql+psycopg://user:password@host/name."
_KNOWN: Final = {
    "sqlite": text("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'lakewarden_meta'"),
    # Not to_regclass: within a transaction it may go on saying NULL after another one created the table.
    "postgresql": text(
        "SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'lakewarden_meta' AND pg_table_is_visible(oid)"
    ),
}


class Database:
    """The operational database. Safe to share between threads; opens nothing before the first transaction.

    On SQLite each transaction checks that its connection is to the file now under that name: a deleted and recreated
    one is seen at once, and nobody goes on writing to one that is gone.
    """

    def __init__(self, url: URL, *, steps: Steps = STEPS, as_it_is: bool = False) -> None:
        """`as_it_is`: neither made nor upgraded, as befits a glance of which nobody knows."""
        self._file = Path(url.database or "").absolute() if url.get_backend_name() == "sqlite" else None
        self._where = (
            f"{url.host or 'the local socket'}/{url.database}" if self._file is None else str(self._file)
        )
        self._steps = steps
        self._as_it_is = as_it_is
        self._engine = postgresql_engine(url) if self._file is None else sqlite_engine(self._file)

    def __repr__(self) -> str:
        return f"Database({self._where})"

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction that commits at the end of the block and rolls back on any error.

        Raises `UnavailableError` when the database does not answer, is locked, or was deleted before the commit
        could count, or would have to be made or upgraded and is taken `as_it_is`; `ConflictError` when a concurrent
        change wins; `OutdatedError` when its schema is newer.
        """
        if self._as_it_is and self._file is not None and not self._file.exists():
            raise UnavailableError(f"There is no operational database {self._where} yet.")
        with self._answering():
            with self._engine.connect() as connection:
                with connection.begin():
                    self._prepare(connection)
                    yield connection
                replaced = self._replaced(connection)
            if replaced:
                # What was committed went into a file without a name. Never call that a success.
                raise UnavailableError(
                    f"The operational database {self._where} was replaced during a transaction.",
                    hint="Nothing has to be done: the next attempt uses the new one.",
                )

    def incarnation(self) -> str:
        """The id this database was given when it was created."""
        with self.transaction() as connection:
            return str(connection.execute(select(META.c.incarnation)).scalar_one())

    def close(self) -> None:
        """Give pooled connections back."""
        self._engine.dispose()

    def _prepare(self, connection: Connection) -> None:
        version = self._version(connection)
        if version == len(self._steps):
            return
        if version < len(self._steps) and self._as_it_is:
            raise UnavailableError(
                f"The operational database {self._where} has schema version {version}; this lakewarden reads "
                f"{len(self._steps)}.",
                hint="Nothing has to be done: the next command that needs it upgrades it.",
            )
        if version < len(self._steps) and connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATION_LOCK})
            version = self._version(connection)  # somebody else may have done it while we waited
        if version > len(self._steps):
            raise OutdatedError(
                f"The operational database {self._where} has schema version {version}; this lakewarden knows "
                f"{len(self._steps)}.",
                hint="Install the newer lakewarden that upgraded it.",
            )
        self._migrate(connection, version)

    def _migrate(self, connection: Connection, version: int) -> None:
        if version < 0:
            connection.execute(CreateTable(META))
            connection.execute(insert(META), {"id": 1, "schema_version": 0, "incarnation": uuid.uuid4().hex})
        for step in self._steps[max(version, 0) :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(update(META).values(schema_version=len(self._steps)))

    def _version(self, connection: Connection) -> int:
        """The schema version, -1 for a database without our tables."""
        # Asking for a missing table would spoil a PostgreSQL transaction.
        known = connection.execute(_KNOWN[connection.dialect.name]).scalar()
        if known is None:
            return -1
        return int(connection.execute(select(META.c.schema_version)).scalar_one())

    def _replaced(self, connection: Connection) -> bool:
        opened = connection.connection.dbapi_connection
        return self._file is not None and isinstance(opened, FileConnection) and not opened.is_to(self._file)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError) as error:
            if isinstance(error, IntegrityError) or _lost_a_race(error):
                raise ConflictError(
                    "Another process changed the operational database at the same time."
                ) from error
            raise UnavailableError(
                f"The operational database {self._where} does not answer.", hint=self._advice()
            ) from error

    def _advice(self) -> str:
        if self._file is None:
            return "Check that PostgreSQL runs, and user, password and database in database.url."
        if not self._file.parent.is_dir():
            return f"There is no folder {self._file.parent}: `lakewarden init` makes it."
        return "Check the file's permissions and the disk. It is a cache: if it is damaged, delete it."


def open_database(url: str, *, steps: Steps = STEPS, as_it_is: bool = False) -> Database:
    """A database by URL: `sqlite:///path/to/state.db` or `postgresql+psycopg://user:password@host/name`.

    It is made and upgraded when it is used, unless it is taken `as_it_is`. Raises `UsageError` for other URLs. Connects
    only when it is used.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise UsageError("database.url is not a database URL.", hint=_URLS) from error
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "postgresql+psycopg"):
        raise UsageError(f"The operational database cannot be {parsed.drivername}.", hint=_URLS)
    if parsed.drivername == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise UsageError("The operational database has to be a file: several processes share it.", hint=_URLS)
    return Database(parsed, steps=steps, as_it_is=as_it_is)


def insert_or(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that can say ON CONFLICT, in the dialect of the connection: both spell it alike."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def milliseconds(duration: timedelta) -> int:
    """A duration in the unit of all moments here."""
    return duration // timedelta(milliseconds=1)


def _lost_a_race(error: Exception) -> bool:
    """Whether PostgreSQL chose this transaction as the victim of a deadlock or a serialisation failure."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in ("40001", "40P01")
