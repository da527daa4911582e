"""A metastore in memory: passes the same contract suite as the real one."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakewarden.catalog.clock import Clock, SystemClock
from lakewarden.catalog.errors import ConflictError, MetastoreAwayError, NotFoundError, RefusedError
from lakewarden.catalog.metastore.port import (
    DDL_TIME,
    METADATA_FILE,
    TAKEN,
    TAKEN_FILE,
    Entry,
    EntryColumn,
    Notification,
    head_file,
)

__all__ = ["FakeMetastore"]


class FakeMetastore:
    """Databases, entries, partitions and notifications in memory. Set `down` to make it stop answering.
    `comparing` is what it says of itself,
    `records` whether it says that it records each change."""

    def __init__(self, *, strict: bool = True, clock: Clock | None = None) -> None:
        self.down = False
        self.comparing = True
        self.unlocked: str | None = None
        self.records = True
        self.questions = 0
        self._strict = strict
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._databases = {"default"}
        self._entries: dict[tuple[str, str], Entry] = {}
        self._partitions: dict[tuple[str, str], dict[str, str]] = {}
        self._events: list[Notification] = []

    def databases(self) -> tuple[str, ...]:
        """Names of all databases."""
        self._answer()
        return tuple(sorted(self._databases))

    def tables(self, database: str) -> tuple[str, ...]:
        """Names of all tables of a database; empty when there is no such database."""
        self._answer()
        return tuple(sorted(table for owner, table in self._entries if owner == database.lower()))

    def get(self, database: str, table: str) -> Entry | None:
        """One entry, None if there is none."""
        self._answer()
        return self._entries.get((database.lower(), table.lower()))

    def metadata_files(self, database: str, tables: Sequence[str]) -> Mapping[str, str]:
        """Table -> the metadata file that its entry names."""
        self._answer()
        found = ((table, self._entries.get((database.lower(), table.lower()))) for table in tables)
        told = ((table, entry and head_file(entry.parameters)) for table, entry in found)
        return {table: file for table, file in told if file}

    def locations(self, database: str) -> Mapping[str, str]:
        """Table -> where its files are."""
        self._answer()
        mine = [one for (owner, _), one in self._entries.items() if owner == database.lower()]
        return {one.table: one.location for one in mine if one.location and "VIEW" not in one.table_type}

    def partitions(self, database: str, table: str) -> Mapping[str, str]:
        """Partition name -> location; empty when the entry has none."""
        self._answer()
        return dict(self._partitions.get((database.lower(), table.lower()), {}))

    def create_database(self, database: str, location: str | None = None) -> None:
        """Create a database if absent."""
        self._answer()
        with self._lock:
            self._databases.add(database.lower())

    def create(self, entry: Entry) -> None:
        """Create a table entry. Raises `ConflictError` when there is one, `NotFoundError` without its database."""
        self._answer()
        key = (entry.database.lower(), entry.table.lower())
        with self._lock:
            if key[0] not in self._databases:
                raise NotFoundError(
                    f"The metastore has no database {entry.database}.",
                    hint=f"CREATE DATABASE {entry.database}, then retry.",
                )
            if key in self._entries:
                raise ConflictError(f"The metastore could not create {'.'.join(key)}: there is one already.")
            self._keep(key, entry, at_least=0)
            self._tell("CREATE_TABLE", key)

    def replace(self, entry: Entry, *, expected: Entry) -> None:
        """Change the entry from `expected` to `entry`. Raises `ConflictError` if it is no longer `expected`."""
        self._answer()
        key = (expected.database.lower(), expected.table.lower())
        with self._lock:
            current = self._entries.get(key)
            if current is None or current != expected:
                raise ConflictError(
                    f"The metastore entry {'.'.join(key)} is not as it was read; nothing was changed."
                )
            kept = replace(
                entry,
                table_type=current.table_type,
                owner=current.owner,
                partition_columns=current.partition_columns,
            )
            self._keep(key, kept, at_least=int(current.parameters[DDL_TIME]) + 1)
            self._tell("ALTER_TABLE", key)

    def compares(self, database: str, table: str) -> bool | None:
        """It does, unless a test says otherwise."""
        return None if self.get(database, table) is None else self.comparing

    def drop(self, database: str, table: str) -> None:
        """Remove the entry; quietly when there is none."""
        self._answer()
        key = (database.lower(), table.lower())
        with self._lock:
            self._partitions.pop(key, None)
            if self._entries.pop(key, None) is not None:
                self._tell("DROP_TABLE", key)

    def take_away(self, database: str, table: str, *, name: str, file: str) -> None:
        """Rename an entry that names this metadata file."""
        if self.compares(database, table) is False:
            raise RefusedError("The metastore does not compare.", hint="Another version does.")
        self._rename(
            database, table, name, {METADATA_FILE: file}, {METADATA_FILE: f"{file}{TAKEN}", TAKEN_FILE: file}
        )

    def put_back(self, database: str, name: str, *, table: str, file: str) -> None:
        """The other way round."""
        self._rename(database, name, table, {TAKEN_FILE: file}, {METADATA_FILE: file})

    def _rename(
        self, database: str, table: str, name: str, expected: dict[str, str], wanted: dict[str, str]
    ) -> None:
        self._answer()
        key, new = (database.lower(), table.lower()), (database.lower(), name.lower())
        with self._lock:
            current = self._entries.get(key)
            if current is None or new in self._entries or not expected.items() <= current.parameters.items():
                raise ConflictError(f"The metastore entry {'.'.join(key)} is another one by now.")
            del self._entries[key]
            rest = {key: value for key, value in current.parameters.items() if key != TAKEN_FILE}
            self._keep(new, replace(current, parameters={**rest, **wanted}), at_least=0)
            self._tell("ALTER_TABLE", key)

    def strict_columns(self) -> bool:
        """Whether it plays a server with strict columns."""
        self._answer()
        return self._strict

    def refuses_lock(self, database: str, table: str) -> str | None:
        """It gives one, unless a test says otherwise."""
        self._answer()
        return self.unlocked

    def notifications(self, *, after: int, limit: int) -> tuple[Notification, ...]:
        """The oldest with a larger number."""
        self._answer()
        return tuple(event for event in self._events if event.number > after)[:limit]

    def newest_notification(self) -> int | None:
        """The number of the newest one, unless a test says that it records none."""
        self._answer()
        return len(self._events) if self.records else None

    def add_partition(self, database: str, table: str, name: str, location: str) -> None:
        """Register a partition, as Spark or Hive would."""
        self._partitions.setdefault((database.lower(), table.lower()), {})[name] = location

    def _keep(self, key: tuple[str, str], entry: Entry, *, at_least: int) -> None:
        seconds = max(int(self._clock.now().timestamp()), at_least)
        self._entries[key] = replace(
            entry,
            database=key[0],
            table=key[1],
            columns=tuple(map(_stored, entry.columns)),
            parameters={**entry.parameters, DDL_TIME: str(seconds)},
        )

    def _tell(self, kind: str, key: tuple[str, str]) -> None:
        self._events.append(Notification(len(self._events) + 1, kind, *key))

    def _answer(self) -> None:
        self.questions += 1
        if self.down:
            raise MetastoreAwayError(
                "The metastore at fake does not answer.",
                hint="Check that it runs and metastore.uri; then retry.",
            )


def _stored(column: EntryColumn) -> EntryColumn:
    return replace(column, name=column.name.lower())
