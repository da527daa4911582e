"""The same three tables in Spark, as Delta or Iceberg tables, and in a real PostgreSQL or MariaDB."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.registry.register import register
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.session.attached import Attached
from support.builders.callers import actor
from support.two_databases.stored import AsDelta, Stored

__all__ = [
    "COLUMNS",
    "DOUBLE",
    "INT",
    "ROWS",
    "TEXT",
    "Both",
    "Connection",
    "Rows",
    "Server",
    "create",
    "two_sides",
]

_ADMIN: Final = actor("ana", admin=True)
Rows = Sequence[tuple[object, ...]]
INT, TEXT, DOUBLE = pa.int32(), pa.string(), pa.float64()
COLUMNS: Final = {
    "t": {"id": INT, "k": INT, "a": INT, "s": TEXT, "d": DOUBLE},
    "s": {"k": INT, "b": INT, "c": TEXT, "n": DOUBLE},
    "u": {"k": INT, "e": INT},
}
ROWS: Final[Mapping[str, Rows]] = {
    "t": [
        (1, 1, 10, "x", 0.5),
        (2, 2, 20, "y", 1.5),
        (3, None, 30, None, None),
        (4, 1, -41, "z", 2.5),
        (5, 7, None, "x", 3.5),
        (5, 7, None, "x", 3.5),
    ],
    "s": [(1, 100, "p", 2.5), (2, 200, "x", -3.5), (None, 300, "r", 1.0), (9, None, "z", None)],
    "u": [(1, 5), (2, 6), (2, 7), (None, 8)],
}
NAMES: Final = {INT: "INT", TEXT: "TEXT", DOUBLE: "DOUBLE PRECISION"}


class Connection(Protocol):
    """What a connection to the other database answers, as psycopg's does."""

    def execute(self, text: bytes) -> Any:
        """A cursor."""

    def cursor(self) -> Any:
        """A cursor that has run nothing yet."""


class Server(Protocol):
    """A running database server. `dialect` is what it speaks, `row_id` a column that tells rows apart, `row_id_column`
    how a table gets one where it has none by itself; `refusals` are its errors."""

    dialect: str
    row_id: str
    row_id_column: str
    refusals: type[Exception]

    def connected(self) -> AbstractContextManager[Connection]:
        """A connection to a new, empty database."""


@dataclass
class Both:
    """Both sides, with the current database of each."""

    spark: SparkSession
    lw: Attached
    services: Services
    folder: Path
    server: Server
    connection: Connection
    stored: Stored
    write: str | None = None
    """In which way our statements are asked to write rows."""
    places: dict[str, str] = field(default_factory=dict)
    """Where managed tables are, by their names."""

    def create(self) -> None:
        """Make the tables, with the rows that tests begin with."""
        for name in COLUMNS:
            self.stored.create(name, _arrow(name, ROWS[name]))
        create(self.server, self.connection)

    def manage(self) -> None:
        """Have the tables managed, as what several of them are changed by needs it."""
        for name in COLUMNS:
            came = register(self.services.registry, self.stored.place(name), actor=_ADMIN, name=f"db.{name}")
            assert came.row.location is not None
            self.places[name] = came.row.location

    def sql(self, text: str) -> Any:
        """The answer to one of our statements."""
        return self.lw.sql(text, write=self.write)

    def fill(self, rows: Mapping[str, Rows]) -> None:
        """Put these rows in place of those that the tables hold, on both sides."""
        for name, wanted in rows.items():
            self.stored.fill(name, _arrow(name, wanted))
            self.connection.execute(f"DELETE FROM {name}".encode())
            _insert(self.connection, name, wanted)

    def ours(self, name: str = "t") -> list[Any]:
        """What a table holds in Spark."""
        return sorted(self.stored.rows(name), key=repr)

    def theirs(self, name: str = "t") -> list[Any]:
        """What a table holds in the other database."""
        return sorted(self.connection.execute(f"SELECT * FROM {name}".encode()).fetchall(), key=repr)

    def head(self) -> Commit:
        """The newest commit of t."""
        return list(self.services.readers[0].commits((self.folder / "t").as_uri(), after=-1))[-1]


def create(server: Server, connection: Connection) -> None:
    """Make the tables in the other database, with the rows that tests begin with."""
    for name, columns in COLUMNS.items():
        listed = ", ".join(f"{column} {NAMES[kind]}" for column, kind in columns.items())
        connection.execute(f"CREATE TABLE {name} ({listed}{server.row_id_column})".encode())
        _insert(connection, name, ROWS[name])


def _insert(connection: Connection, name: str, rows: Rows) -> None:
    places = ", ".join(["%s"] * len(COLUMNS[name]))
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {name} VALUES ({places})", rows)


@contextmanager
def two_sides(
    spark: SparkSession, server: Server, folder: Path, stored: Stored | None = None
) -> Iterator[Both]:
    """A database of its own on both sides, with the tables in it, as Delta tables unless told otherwise, and an
    installation that the session belongs to."""
    tables = folder / "tables"
    stored = stored or AsDelta(spark, tables)
    services = open_services(home=folder / "home", flags=stored.settings)
    initialise(services, services.user)
    database, before = f"c_{uuid.uuid4().hex[:10]}", spark.catalog.currentDatabase()
    spark.sql(f"CREATE DATABASE {database}")
    spark.catalog.setCurrentDatabase(database)
    with (
        server.connected() as connection,
        lakewarden.attach(spark, home=services.settings.home, settings=stored.settings) as lw,
    ):
        both = Both(spark, lw, services, tables, server, connection, stored)
        both.create()
        yield both
    spark.catalog.setCurrentDatabase(before)
    spark.sql(f"DROP DATABASE {database} CASCADE")


def _arrow(name: str, rows: Rows) -> pa.Table:
    schema = pa.schema(list(COLUMNS[name].items()))
    return pa.Table.from_pylist([dict(zip(COLUMNS[name], row, strict=True)) for row in rows], schema=schema)
