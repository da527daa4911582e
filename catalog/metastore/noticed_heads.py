"""Which metadata files entries of the Hive metastore name, read again only where the metastore's notifications say that
something changed.

Reading the entries of a thousand tables costs the server most of a second; that no notification came costs it one small
query. A notification counts only where the server writes it in the transaction of the change
(`DbNotificationListener` as a transactional listener): that is asked each time. Whatever notifications say, all entries
are read again from time to time: other servers of one metastore may be set up otherwise, and Hive 2.3 may give two
changes that are made at once one number (HIVE-16886).
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lakewarden.catalog.metastore.port import Metastore, Notification

__all__ = ["NoticedHeads"]

_WHOLE: Final = 600.0
"""Seconds after which all entries are read again, whatever notifications say."""
_AT_ONCE: Final = 1_000
"""Notifications that are read; where more came, all entries are."""
_AGAIN: Final = 50
"""Notifications before the last one known that are looked at once more: of two with one number, one may be late."""
_ALTERED: Final = "ALTER_TABLE"
_NO_TABLE: Final = frozenset({"CREATE_DATABASE", "ALTER_DATABASE", "DROP_DATABASE"})


@dataclass(frozen=True, slots=True)
class _KnownHeads:
    """What the entries of one database named."""

    newest: int
    """The newest notification before they were read."""
    until: float
    """When all are read again, by the monotonic clock."""
    asked: frozenset[str]
    files: Mapping[str, str]
    others: frozenset[tuple[str, str]] = field(default=frozenset())
    """Tables (database, name) that were altered, are there, and were not asked for: no table asked for was given such
    a name, and as long as it is there none can be."""


class NoticedHeads:
    """A `HeadSource` by a metastore. One thread asks at a time."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._read: dict[str, _KnownHeads] = {}

    def metadata_files(self, metastore: Metastore, database: str, tables: Sequence[str]) -> Mapping[str, str]:
        """Table -> the metadata file that its entry names, of those that name one. Raises `UnavailableError`."""
        newest, before = metastore.newest_notification(), self._read.pop(database, None)
        if newest is None:
            return metastore.metadata_files(database, tables)
        if before is None or self._monotonic() >= before.until or not before.asked.issuperset(tables):
            kept = frozenset[tuple[str, str]]() if before is None else before.others
            now = self._whole(metastore, database, tables, newest, kept)
        else:
            now = self._since(metastore, database, before, newest)
        self._read[database] = now
        return now.files

    def forget(self) -> None:
        """Read all entries at the next question."""
        self._read.clear()

    def _whole(
        self,
        metastore: Metastore,
        database: str,
        tables: Iterable[str],
        newest: int,
        others: frozenset[tuple[str, str]],
    ) -> _KnownHeads:
        asked = frozenset(tables)
        files = metastore.metadata_files(database, sorted(asked))
        ours = {(database, table) for table in asked}
        return _KnownHeads(
            newest=newest,
            until=self._monotonic() + _WHOLE,
            asked=asked,
            files=files,
            others=frozenset(_those_there(metastore, others - ours)),
        )

    def _since(self, metastore: Metastore, database: str, before: _KnownHeads, newest: int) -> _KnownHeads:
        """What they name now: of those that notifications speak of, read again."""
        if newest == before.newest:
            return before
        told = metastore.notifications(after=max(0, before.newest - _AGAIN), limit=_AT_ONCE)
        known = {table.lower(): table for table in before.asked}
        renamed = {
            (database_of, table)
            for _, kind, database_of, table in told
            if kind == _ALTERED and not (database_of == database and table in known)
        }
        others = before.others - _gone(told)
        if (
            not _complete(told, before.newest, newest)
            or any(kind in _NO_TABLE and of == database for _, kind, of, _ in told)
            or not renamed <= others
        ):
            return self._whole(metastore, database, before.asked, newest, others | renamed)
        moved = {known[table] for _, _, of, table in told if of == database and table in known}
        files = {table: file for table, file in before.files.items() if table not in moved}
        files |= metastore.metadata_files(database, sorted(moved)) if moved else {}
        return _KnownHeads(newest=newest, until=before.until, asked=before.asked, files=files, others=others)


def _complete(told: Sequence[Notification], known: int, newest: int) -> bool:
    """Whether these are all that came after the last one known: none was cleaned away, and no more are to be read."""
    numbers = {number for number, _, _, _ in told}
    return len(told) < _AT_ONCE and numbers.issuperset(range(known + 1, newest + 1))


def _gone(told: Sequence[Notification]) -> frozenset[tuple[str, str]]:
    return frozenset((of, table) for _, kind, of, table in told if kind == "DROP_TABLE")


def _those_there(metastore: Metastore, others: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    by_database = defaultdict[str, set[str]](set)
    for database, table in others:
        by_database[database].add(table)
    for database, names in by_database.items():
        yield from ((database, name) for name in names.intersection(metastore.tables(database)))
