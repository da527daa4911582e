"""Which metadata files entries of the Hive metastore name, read again only where the metastore's notifications say that
something changed.

Reading the entries of a thousand tables costs the server most of a second; that no notification came costs it one small
query. A notification counts only where the server writes it in the transaction of the change
(`DbNotificationListener` as a transactional listener): that is asked each time. Whatever notifications say, all entries
are read again from time to time: other servers of one metastore may be set up otherwise, and Hive 2.3 may give two
changes that are made at once one number (HIVE-16886).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True)
class _Told:
    """Notifications that were read once for all databases."""

    after: int
    newest: int
    events: tuple[Notification, ...] = ()


class NoticedHeads:
    """A `HeadSource` by a metastore. One thread asks at a time."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._known: dict[str, _KnownHeads] = {}
        self._told = _Told(after=-1, newest=-1)

    def metadata_files(self, metastore: Metastore, database: str, tables: Sequence[str]) -> Mapping[str, str]:
        """Table -> the metadata file that its entry names, of those that name one. Raises `UnavailableError`."""
        newest, before = metastore.newest_notification(), self._known.pop(database, None)
        if newest is None:
            return metastore.metadata_files(database, tables)
        if before is None or self._monotonic() >= before.until or not before.asked.issuperset(tables):
            now = self._whole(metastore, database, frozenset(tables), newest)
        elif newest == before.newest:
            now = before
        else:
            now = self._since(metastore, database, before, newest)
        self._known[database] = now
        return now.files

    def forget(self) -> None:
        """Read all entries at the next question."""
        self._known.clear()

    def _whole(self, metastore: Metastore, database: str, asked: frozenset[str], newest: int) -> _KnownHeads:
        files = metastore.metadata_files(database, sorted(asked))
        return _KnownHeads(newest=newest, until=self._monotonic() + _WHOLE, asked=asked, files=files)

    def _since(self, metastore: Metastore, database: str, before: _KnownHeads, newest: int) -> _KnownHeads:
        """What they name now: of those that notifications speak of, read again."""
        told = self._since_then(metastore, max(0, before.newest - _AGAIN), newest)
        if not _are_all(told, before.newest, newest) or any(
            one.kind in _NO_TABLE and one.database == database for one in told
        ):
            return self._whole(metastore, database, before.asked, newest)
        known = {table.lower(): table for table in before.asked}
        here = {one.table for one in told if one.database == database and one.table in known}
        gone = set[str]()
        if any(
            one.kind == _ALTERED and not (one.database == database and one.table in known) for one in told
        ):
            # One of ours may have got that name: the old one is not told.
            gone = known.keys() - {name.lower() for name in metastore.tables(database)}
        moved = {known[name] for name in here - gone}
        left = {known[name] for name in gone}
        files = {table: file for table, file in before.files.items() if table not in moved | left}
        files |= metastore.metadata_files(database, sorted(moved)) if moved else {}
        return replace(before, newest=newest, files=files)

    def _since_then(self, metastore: Metastore, after: int, newest: int) -> tuple[Notification, ...]:
        if (self._told.after, self._told.newest) != (after, newest):
            self._told = _Told(after, newest, metastore.notifications(after=after, limit=_AT_ONCE))
        return self._told.events


def _are_all(told: Sequence[Notification], known: int, newest: int) -> bool:
    """Whether these are all that came after the last one known: none was cleaned away, no more are to be read, and the
    numbers are still of the same metastore, which may have been put back from a backup."""
    numbers = {one.number for one in told}
    return known < newest and len(told) < _AT_ONCE and numbers.issuperset(range(known + 1, newest + 1))
