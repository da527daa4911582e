"""The real metastore, spoken to by thrift.

Changes are compare-and-set: `alter_table_with_environment_context` with `expected_parameter_key` (HIVE-26882; 2.3.10
and 4.0, where it is one conditional UPDATE in the metastore's database). The parameter compared is `DDL_TIME`, because
Spark and Hive renew it too: a parameter of our own would only tell lakewarden's own changes apart. It counts seconds,
so a foreign change within the same second as the one that was read goes unnoticed; ours always move it on.
"""

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from pymetastore.hive_metastore.ttypes import (
    AlreadyExistsException,
    ConfigValSecurityException,
    Database,
    EnvironmentContext,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    NotificationEventRequest,
    UnlockRequest,
)
from thrift.Thrift import TApplicationException

from lakewarden.catalog.clock import Clock, SystemClock
from lakewarden.catalog.errors import ConflictError, NotFoundError, RefusedError
from lakewarden.catalog.metastore.port import (
    DDL_TIME,
    METADATA_FILE,
    TAKEN,
    TAKEN_FILE,
    Entry,
    Notification,
    head_file,
)
from lakewarden.catalog.metastore.thrift_pool import ABSENT, Client, Pool
from lakewarden.catalog.metastore.thrift_tables import entry_of, partition_values, table_of, with_entry

__all__ = ["HiveMetastore"]

_EXPECTED_KEY: Final = "expected_parameter_key"
_EXPECTED_VALUE: Final = "expected_parameter_value"
# Otherwise the server lists the folder to count bytes, which Spark would then take for the size of the table.
_LEAVE_STATISTICS: Final = {"DO_NOT_UPDATE_STATS": "true"}
_STRICT: Final = "hive.metastore.disallow.incompatible.col.type.changes"
_LISTENERS: Final = "hive.metastore.transactional.event.listeners"
_RECORDER: Final = "DbNotificationListener"
_NAMES_AT_ONCE: Final = 500
_EXTERNAL: Final = "EXTERNAL_TABLE"
"""The type of a table whose folder stays where it is when the entry gets another name."""


class HiveMetastore:
    """A Hive metastore by its address. Thread-safe; connects when first asked and again after a failure."""

    def __init__(
        self,
        uri: str,
        *,
        timeout: timedelta = timedelta(seconds=20),
        user: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`uri` is `thrift://host:port` (several, joined by commas, are tried in order). Raises `UsageError` for
        another form. `user` is who the server takes us for, where it does not authenticate."""
        self._pool = Pool(uri, timeout=timeout, user=user)
        self._clock = clock or SystemClock()
        self._strict: bool | None = None

    def databases(self) -> tuple[str, ...]:
        """Names of all databases."""
        return tuple(self._pool.call("list databases", lambda client: client.get_all_databases()))

    def tables(self, database: str) -> tuple[str, ...]:
        """Names of all tables and views of a database; empty when there is no such database."""

        def names(client: Client) -> list[str]:
            try:
                found: list[str] = client.get_all_tables(database)
            except ABSENT:
                return []
            return found

        return tuple(self._pool.call(f"list the tables of {database}", names))

    def get(self, database: str, table: str) -> Entry | None:
        """One entry, None if there is none."""
        found = self._pool.call(f"read {database}.{table}", lambda client: _find(client, database, table))
        return entry_of(found) if found is not None else None

    def metadata_files(self, database: str, tables: Sequence[str]) -> Mapping[str, str]:
        """Table -> the metadata file that its entry names, of those that name one."""

        told = ((one.tableName, head_file(one.parameters or {})) for one in self._tables(database, tables))
        return {name: file for name, file in told if file}

    def locations(self, database: str) -> Mapping[str, str]:
        """Table -> where its files are, of all that have files."""
        found = map(entry_of, self._tables(database, self.tables(database)))
        return {one.table: one.location for one in found if one.location and "VIEW" not in one.table_type}

    def partitions(self, database: str, table: str) -> Mapping[str, str]:
        """Partition name -> location; empty when the entry has none."""

        def read(client: Client) -> dict[str, str]:
            found_table = _find(client, database, table)
            if found_table is None or not found_table.partitionKeys:
                return {}
            names: list[str] = client.get_partition_names(database, table, -1)
            by_values = {partition_values(name): name for name in names}
            found: dict[str, str] = {}
            for start in range(0, len(names), _NAMES_AT_ONCE):
                some = client.get_partitions_by_names(database, table, names[start : start + _NAMES_AT_ONCE])
                for partition in some:
                    found[by_values[tuple(partition.values)]] = partition.sd.location
            return found

        return self._pool.call(f"read the partitions of {database}.{table}", read)

    def create_database(self, database: str, location: str | None = None) -> None:
        """Create a database if absent."""

        def make(client: Client) -> None:
            if database.lower() in client.get_all_databases():
                return
            with suppress(AlreadyExistsException):  # somebody was quicker, which is as good
                client.create_database(Database(name=database, locationUri=location, parameters={}))

        self._pool.call(f"create the database {database}", make)

    def create(self, entry: Entry) -> None:
        """Create a table entry. Raises `ConflictError` when there is one, `NotFoundError` without its database."""
        name = f"{entry.database}.{entry.table}"

        def make(client: Client) -> None:
            if entry.database.lower() not in client.get_all_databases():
                raise NotFoundError(
                    f"The metastore has no database {entry.database}.",
                    hint=f"CREATE DATABASE {entry.database}, then retry.",
                )
            table = table_of(entry, now_seconds=int(self._clock.now().timestamp()))
            client.create_table_with_environment_context(table, EnvironmentContext(dict(_LEAVE_STATISTICS)))

        self._pool.call(f"create {name}", make)

    def replace(self, entry: Entry, *, expected: Entry) -> None:
        """Change the entry from `expected` to `entry`. Raises `ConflictError` if it is no longer `expected`.

        Where a column's type changes the columns are taken away first and the new ones put in their place: that is
        the only way past a server with strict columns. Whoever looks in between sees an entry without columns.
        """
        name = f"{expected.database}.{expected.table}"

        def change(client: Client) -> None:
            current = _find(client, expected.database, expected.table)
            if current is None or entry_of(current) != expected:
                raise ConflictError(f"The metastore entry {name} is not as it was read; nothing was changed.")
            wanted = with_entry(current, entry)
            if _types_differ(expected, entry):
                bare = with_entry(current, replace(entry, columns=()))
                current = self._alter(client, bare, since=current)
            self._alter(client, wanted, since=current)

        self._pool.call(f"change {name}", change)

    def compares(self, database: str, table: str) -> bool | None:
        """Whether the server refuses a change whose expectation is wrong; None without such an entry."""

        def expect_what_is_not_there(client: Client) -> bool | None:
            current = _find(client, database, table)
            if current is None:
                return None
            context = EnvironmentContext(
                {**_LEAVE_STATISTICS, _EXPECTED_KEY: DDL_TIME, _EXPECTED_VALUE: "never"}
            )
            client.alter_table_with_environment_context(current.dbName, current.tableName, current, context)
            return False

        try:
            return self._pool.call(f"compare {database}.{table}", expect_what_is_not_there)
        except ConflictError:
            return True

    def drop(self, database: str, table: str) -> None:
        """Remove the entry, never the data; quietly when there is none."""

        def remove(client: Client) -> None:
            if _find(client, database, table) is not None:
                with suppress(*ABSENT):  # somebody was quicker, which is as good
                    client.drop_table(database, table, False)

        self._pool.call(f"drop {database}.{table}", remove)

    def take_away(self, database: str, table: str, *, name: str, file: str) -> None:
        """Rename an entry by one compare-and-set on the metadata file that it names. The value changes with it: else a
        commit that waits for the entry would find it as it expects, and undo the renaming."""
        if self.compares(database, table) is False:
            raise RefusedError(
                f"The metastore does not compare before it changes the entry of {database}.{table}, so a commit that "
                "comes first would be lost.",
                hint="docs/reference/metastore.md lists the versions that do.",
            )

        def take(client: Client) -> None:
            current = _find(client, database, table)
            if current is None or (current.parameters or {}).get(METADATA_FILE) != file:
                raise ConflictError(
                    f"The metastore's entry {database}.{table} does not name {file} any more."
                )
            if current.tableType != _EXTERNAL or str(current.parameters.get("EXTERNAL")).upper() != "TRUE":
                raise RefusedError(
                    f"The metastore has {database}.{table} as a table of its own, and would move its folder with its "
                    "name.",
                    hint="Make it external: ALTER TABLE ... SET TBLPROPERTIES ('EXTERNAL'='TRUE').",
                )
            wanted = deepcopy(current)
            wanted.tableName = name
            wanted.parameters |= {METADATA_FILE: f"{file}{TAKEN}", TAKEN_FILE: file}
            _compare_and_set(client, current, wanted, file)

        self._pool.call(f"take {database}.{table} away", take)

    def put_back(self, database: str, name: str, *, table: str, file: str) -> None:
        """The other way round."""

        def put(client: Client) -> None:
            current = _find(client, database, name)
            if current is None or (current.parameters or {}).get(TAKEN_FILE) != file:
                raise ConflictError(f"The metastore has no entry {database}.{name} of {file}.")
            if _find(client, database, table) is not None:
                raise ConflictError(f"The metastore has another table {database}.{table} by now.")
            wanted = deepcopy(current)
            wanted.tableName = table
            del wanted.parameters[TAKEN_FILE]
            wanted.parameters[METADATA_FILE] = file
            _compare_and_set(client, current, wanted, f"{file}{TAKEN}")

        self._pool.call(f"put {database}.{table} back", put)

    def strict_columns(self) -> bool:
        """Whether the server refuses to change a column to an incompatible type."""

        def ask(client: Client) -> str:
            try:
                return str(client.get_config_value(_STRICT, "true"))
            except ConfigValSecurityException:
                return "true"

        if self._strict is None:
            self._strict = self._pool.call("tell its settings", ask).strip().lower() != "false"
        return self._strict

    def refuses_lock(self, database: str, table: str) -> str | None:
        """Why the server gives no lock on an entry; None where it gives one."""
        wanted = LockComponent(
            type=LockType.SHARED_READ, level=LockLevel.TABLE, dbname=database, tablename=table
        )
        host = socket.gethostname()
        request = LockRequest(component=[wanted], user="lakewarden", hostname=host)

        def ask(client: Client) -> str | None:
            try:
                given = client.lock(request)
            except (MetaException, TApplicationException) as error:
                return str(error.message).partition("\n")[0].strip() or type(error).__name__
            client.unlock(UnlockRequest(lockid=given.lockid))
            is_given = given.state == LockState.ACQUIRED
            return None if is_given else "somebody holds a lock on it that keeps everybody else out"

        return self._pool.call(f"lock {database}.{table}", ask)

    def notifications(self, *, after: int, limit: int) -> tuple[Notification, ...]:
        """The oldest with a larger number; empty where the server keeps none."""
        request = NotificationEventRequest(lastEvent=after, maxEvents=limit)
        told = self._pool.call("tell what changed", lambda client: client.get_next_notification(request))
        return tuple(
            Notification(
                int(event.eventId),
                event.eventType,
                (event.dbName or "").lower(),
                (event.tableName or "").lower(),  # whoever made the table may have spelled it otherwise
            )
            for event in told.events or ()
        )

    def newest_notification(self) -> int | None:
        """The number of the newest one, None where the server does not record each change with the change itself. Some
        servers tell only their administrators."""

        def ask(client: Client) -> int | None:
            try:
                if _RECORDER not in client.get_config_value(_LISTENERS, ""):
                    return None
                return int(client.get_current_notificationEventId().eventId)
            except (ConfigValSecurityException, MetaException, TApplicationException):
                return None

        return self._pool.call("tell whether something changed", ask)

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._pool.close()

    def _tables(self, database: str, tables: Sequence[str]) -> list[Any]:
        """Thrift's `Table`s of those that are there."""

        def read(client: Client) -> list[Any]:
            found: list[Any] = []
            for start in range(0, len(tables), _NAMES_AT_ONCE):
                try:
                    found += client.get_table_objects_by_name(
                        database, list(tables[start : start + _NAMES_AT_ONCE])
                    )
                except TApplicationException:  # so it says that the database is not there
                    if database.lower() not in client.get_all_databases():
                        return []
                    raise
            return found

        return self._pool.call(f"read tables of {database}", read)

    def _alter(self, client: Client, wanted: Any, *, since: Any) -> Any:
        """One compare-and-set on the entry as it was in `since`. Returns the table as it is now."""
        context = dict(_LEAVE_STATISTICS)
        read = (since.parameters or {}).get(DDL_TIME)
        now = int(self._clock.now().timestamp())
        if read is not None and read.isdigit():
            context |= {_EXPECTED_KEY: DDL_TIME, _EXPECTED_VALUE: read}
            now = max(
                now, int(read) + 1
            )  # the server compares values: an unchanged one would let a second in
        wanted.parameters[DDL_TIME] = str(now)
        client.alter_table_with_environment_context(
            wanted.dbName, wanted.tableName, wanted, EnvironmentContext(context)
        )
        return wanted


def _compare_and_set(client: Client, current: Any, wanted: Any, expected: str) -> None:
    """By the metadata file; whoever compares by the time finds another one, too."""
    read = str(wanted.parameters.get(DDL_TIME, ""))
    wanted.parameters[DDL_TIME] = str(int(read) + 1 if read.isdigit() else 1)
    context = {**_LEAVE_STATISTICS, _EXPECTED_KEY: METADATA_FILE, _EXPECTED_VALUE: expected}
    client.alter_table_with_environment_context(
        current.dbName, current.tableName, wanted, EnvironmentContext(context)
    )


def _find(client: Client, database: str, table: str) -> Any:
    try:
        return client.get_table(database, table)
    except ABSENT:
        return None


def _types_differ(before: Entry, after: Entry) -> bool:
    pairs = zip(before.columns, after.columns, strict=False)
    return any(old.type.lower() != new.type.lower() for old, new in pairs)
