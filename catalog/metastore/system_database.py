"""A metastore in which the system tables stand in a database of another name than `lakewarden`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.metastore.lookup import SYSTEM, parse_name
from lakewarden.catalog.metastore.port import Entry, Metastore, Notification

__all__ = ["with_system_database"]


def with_system_database(metastore: Metastore, database: str) -> Metastore:
    """`metastore`, whose `database` is called `lakewarden` here, and the other way round: what is really called so is
    another installation's, and has our name here. Raises `UsageError` for what is no name of a database."""
    name = parse_name(f"{database}.t")
    if name is None:
        raise UsageError(
            f"'{database}' is not the name of a database.", hint="Correct the setting system.database."
        )
    ours = name.removesuffix(".t")
    return metastore if ours == SYSTEM else _Renamed(metastore, ours)


class _Renamed:
    """`Metastore` by another one, with one database under another name."""

    def __init__(self, metastore: Metastore, database: str) -> None:
        self._metastore, self._ours = metastore, database

    def databases(self) -> tuple[str, ...]:
        return tuple(map(self._swapped, self._metastore.databases()))

    def tables(self, database: str) -> tuple[str, ...]:
        return self._metastore.tables(self._swapped(database))

    def get(self, database: str, table: str) -> Entry | None:
        found = self._metastore.get(self._swapped(database), table)
        return None if found is None else replace(found, database=database)

    def metadata_files(self, database: str, tables: Sequence[str]) -> Mapping[str, str]:
        return self._metastore.metadata_files(self._swapped(database), tables)

    def locations(self, database: str) -> Mapping[str, str]:
        return self._metastore.locations(self._swapped(database))

    def partitions(self, database: str, table: str) -> Mapping[str, str]:
        return self._metastore.partitions(self._swapped(database), table)

    def create_database(self, database: str, location: str | None = None) -> None:
        self._metastore.create_database(self._swapped(database), location)

    def create(self, entry: Entry) -> None:
        self._metastore.create(self._entry(entry))

    def replace(self, entry: Entry, *, expected: Entry) -> None:
        self._metastore.replace(self._entry(entry), expected=self._entry(expected))

    def compares(self, database: str, table: str) -> bool | None:
        return self._metastore.compares(self._swapped(database), table)

    def drop(self, database: str, table: str) -> None:
        self._metastore.drop(self._swapped(database), table)

    def take_away(self, database: str, table: str, *, name: str, file: str) -> None:
        self._metastore.take_away(self._swapped(database), table, name=name, file=file)

    def put_back(self, database: str, name: str, *, table: str, file: str) -> None:
        self._metastore.put_back(self._swapped(database), name, table=table, file=file)

    def strict_columns(self) -> bool:
        return self._metastore.strict_columns()

    def refuses_lock(self, database: str, table: str) -> str | None:
        return self._metastore.refuses_lock(self._swapped(database), table)

    def notifications(self, *, after: int, limit: int) -> tuple[Notification, ...]:
        told = self._metastore.notifications(after=after, limit=limit)
        return tuple(one._replace(database=self._swapped(one.database)) for one in told)

    def newest_notification(self) -> int | None:
        return self._metastore.newest_notification()

    def _swapped(self, database: str) -> str:
        return {SYSTEM: self._ours, self._ours: SYSTEM}.get(database.lower(), database)

    def _entry(self, entry: Entry) -> Entry:
        return replace(entry, database=self._swapped(entry.database))
