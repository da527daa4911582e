"""A catalog in a database: Iceberg's table `iceberg_tables`, as its JDBC catalog (schemas V0 and V1) and pyiceberg's
SQL catalog write it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import URL, column, create_engine, delete, make_url, select, text, update
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql import ColumnElement, Select, table

from lakewarden.catalog.errors import CatalogAwayError, ConflictError
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration
from lakewarden.catalog.named_catalogs.port import CatalogEntries
from lakewarden.catalog.storage.file_store import local_path
from lakewarden.catalog.storage.named_files import lies_in
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.storage.secret_files import current

__all__ = ["SqlCatalog"]

_TABLE: Final = "iceberg_tables"
_ENTRIES: Final = table(
    _TABLE,
    *(column(name) for name in ("catalog_name", "table_namespace", "table_name", "metadata_location")),
)
_VIEW: Final = "VIEW"
"""The kind of an entry that is none of a table. Schema V0 has no views, and no column for the kind."""
_PATIENCE: Final = 5
"""Seconds for which a database is waited for: to be connected to, and to answer."""
_WAITING: Final[Mapping[str, Mapping[str, Any]]] = {
    "sqlite": {"timeout": _PATIENCE},
    "postgresql": {"connect_timeout": _PATIENCE, "options": f"-c statement_timeout={1000 * _PATIENCE}"},
}
_OTHERS_WAITING: Final[Mapping[str, Any]] = {"connect_timeout": _PATIENCE}


class SqlCatalog:
    """`TableCatalog` of a database. Holds no connection between questions; user and password are read each time."""

    bulk: Final = True
    takes_entries: Final = True

    def __init__(self, declared: CatalogDeclaration) -> None:
        self._declared = declared

    def metadata_files(self, namespace: str, tables: Sequence[str]) -> Mapping[str, str]:
        if not tables:
            return {}
        wanted = _entries_of(self._declared.name).where(column("table_namespace") == namespace)
        if len(tables) == 1:
            wanted = wanted.where(column("table_name") == tables[0])
        asked = frozenset(tables)
        return {table: file for _, _, table, file in self._rows(wanted) if table in asked}

    def naming(self, location: str) -> tuple[str, ...]:
        wanted = _every_entry()
        if local_path(location) is None:  # on a disk, links lead to a folder from anywhere
            folder = location.rpartition("/")[2]  # others spell the authority, and slashes, in another way
            wanted = wanted.where(column("metadata_location").contains(f"/{folder}/", autoescape=True))
        now = Moment()
        return tuple(
            f"{catalog}.{namespace}.{table}"
            for catalog, namespace, table, file in self._rows(wanted)
            if lies_in(file, location, now)
        )

    def naming_in(self, namespace: str | None, location: str) -> tuple[str, ...]:
        return self.naming(location)

    def entries(self) -> CatalogEntries:
        return CatalogEntries(
            files={
                f"{namespace}.{table}": file
                for _, namespace, table, file in self._rows(_entries_of(self._declared.name))
            }
        )

    def take_away(self, namespace: str, table: str, *, name: str, file: str) -> None:
        self._rename(namespace, table, name, file)

    def put_back(self, namespace: str, name: str, *, table: str, file: str) -> None:
        self._rename(namespace, name, table, file)

    def drop(self, namespace: str, table: str) -> None:
        with self._writing() as connection:
            connection.execute(delete(_ENTRIES).where(*self._is(namespace, table)))

    def _rename(self, namespace: str, table: str, name: str, file: str) -> None:
        wanted = (*self._is(namespace, table), column("metadata_location") == file)
        try:
            with self._writing() as connection:
                changed = connection.execute(update(_ENTRIES).where(*wanted).values(table_name=name)).rowcount
                if changed != 1:
                    raise ConflictError(
                        f"The entry {namespace}.{table} of the catalog {self._declared.name} does not name {file} "
                        "any more."
                    )
        except IntegrityError as error:
            raise ConflictError(
                f"The catalog {self._declared.name} has another table {namespace}.{name} by now."
            ) from error

    def _is(self, namespace: str, table: str) -> tuple[ColumnElement[bool], ...]:
        return (
            column("catalog_name") == self._declared.name,
            column("table_namespace") == namespace,
            column("table_name") == table,
        )

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """One transaction."""
        with self._answering(), self._engine(writing=True).begin() as connection:
            yield connection

    def _rows(self, wanted: "Select[Any]") -> Iterator[tuple[str, str, str, str]]:
        """Catalog, namespace, table and metadata file of the entries that are tables'."""
        with self._answering():
            engine = self._engine()
            with engine.connect() as connection:
                found = [dict(row) for row in connection.execute(wanted).mappings()]
        for one in found:
            file = one["metadata_location"]
            if file is not None and one.get("iceberg_type") != _VIEW:
                yield one["catalog_name"], one["table_namespace"], one["table_name"], file

    def _engine(self, *, writing: bool = False) -> Engine:
        url = _url(self._declared, "rw" if writing else "ro")
        waiting = _WAITING.get(url.get_backend_name(), _OTHERS_WAITING)
        return create_engine(url, poolclass=NullPool, connect_args=dict(waiting))

    @contextmanager
    def _answering(self) -> Iterator[None]:
        name = self._declared.name
        try:
            yield
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
            raise CatalogAwayError(
                f"The catalog {name} cannot be asked: {_first_line(error)}.",
                hint=f"Check catalogs.{name}.uri, and whether its Python driver is installed.",
            ) from error
        except IntegrityError:
            raise  # an answer: there is such an entry already
        except SQLAlchemyError as error:
            told = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
            raise CatalogAwayError(
                f"The catalog {name} does not answer: {_first_line(told)}.",
                hint=f"Check catalogs.{name}.uri, user and password, and that the database has {_TABLE}.",
            ) from error


def _every_entry() -> "Select[Any]":
    """All columns: schema V0 has one less."""
    return select(text("*")).select_from(table(_TABLE))


def _entries_of(name: str) -> "Select[Any]":
    return _every_entry().where(column("catalog_name") == name)


def _url(declared: CatalogDeclaration, mode: str) -> URL:
    """The database's address for SQLAlchemy. A file of SQLite's that is not there is not made."""
    url, options = make_url(declared.uri), current(declared.options)
    if url.get_backend_name() == "sqlite":
        return url.set(database=f"file:{quote(url.database or '')}", query={"mode": mode, "uri": "true"})
    return url.set(username=options.get("user", url.username), password=options.get("password", url.password))


def _first_line(error: BaseException) -> str:
    """What a driver says, in one line and without its full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".: ")
