"""Heads that the metastore keeps: which metadata file its entry of a table names.

The metastore is asked once for all tables of a database, and its answer counts for a moment: a sweep of a thousand
tables asks a few times, not a thousand.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.errors import MetastoreAwayError, UnavailableError
from lakewarden.catalog.formats.spec import CatalogHead
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.model.rows import GONE, RowKind, TableRow
from lakewarden.catalog.system.port import Rows

__all__ = ["CATALOG_ENTRY", "TableHeads"]

CATALOG_ENTRY: Final = "catalog.entry"
"""Row property: the metastore's entry (`db.t`) that keeps the table's head, where its folder does not."""
_MOMENT: Final = 1.0
"""Seconds for which an answer counts, unless somebody says otherwise."""
_PAUSE: Final = 10.0
"""Seconds for which a metastore that did not answer is not asked again: each time takes as long as its timeout."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer for the requested tables of one database, or that there was none."""

    until: float
    """The end of the answer's validity, by the monotonic clock."""
    asked: frozenset[str]
    files: Mapping[str, str] | UnavailableError


class TableHeads:
    """Asks the metastore for heads of tables that are managed by their entries. Thread-safe."""

    def __init__(
        self,
        metastore: Callable[[], Metastore | None],
        rows: Callable[[], Rows[TableRow]],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        moment: float = _MOMENT,
    ) -> None:
        """`moment`: the seconds for which an answer counts; 0 for whoever acts by it, and reads again what he
        did: he asks for one table at a time."""
        self._metastore, self._rows, self._monotonic, self._moment = metastore, rows, monotonic, moment
        self._known: dict[str, str] = {}
        self._stored: Mapping[str, str] = {}
        self._places: frozenset[str | None] = frozenset()
        self._stored_until = float("-inf")
        self._answers: dict[str, _Answer] = {}
        self._lock = threading.Lock()

    def know(self, location: str, entry: str) -> None:
        """A table that is about to be managed by an entry: no row says so yet."""
        with self._lock:
            self._known[location] = entry

    def forget(self) -> None:
        """Ask anew, whatever was answered a moment ago: somebody decides by what has just happened."""
        with self._lock:
            self._answers = {
                key: one for key, one in self._answers.items() if not isinstance(one.files, Mapping)
            }

    def __call__(self, location: str) -> CatalogHead | None:
        """The head of the table at a location, None where no entry keeps it. Raises `UnavailableError`."""
        with self._lock:
            entry = self._entry(location)
            if entry is None:
                return None
            database, _, table = entry.partition(".")
            return CatalogHead(entry=entry, file=self._files(database, table).get(table))

    def _entry(self, location: str) -> str | None:
        """The entry of the table at a location, by its row, or about to be in one. Rows, too, are asked once in a
        moment, unless none of them is at this location: it may have come just now."""
        now = self._monotonic()
        if now >= self._stored_until or not (location in self._places or location in self._known):
            found = sorted(
                self._rows().find(kind=RowKind.TABLE, format="iceberg"),
                key=lambda row: (row.state not in GONE, row.row),
            )
            told = ((row.location or "", row.properties.get(CATALOG_ENTRY)) for row in found)
            self._stored = {place: entry for place, entry in told if entry}
            self._places = frozenset(row.location for row in found)
            self._known = {place: entry for place, entry in self._known.items() if place not in self._places}
            self._stored_until = now + _MOMENT
        return self._known.get(location) or self._stored.get(location)

    def _files(self, database: str, table: str) -> Mapping[str, str]:
        """The files that the entries of a database's tables name. What was answered to a question without this table
        does not count."""
        known = self._answers.get(database)
        if known is None or self._monotonic() >= known.until or table not in known.asked:
            known = self._answers[database] = self._asked(database, table)
        if isinstance(known.files, UnavailableError):
            raise known.files
        return known.files

    def _asked(self, database: str, table: str) -> _Answer:
        metastore = self._metastore()
        if metastore is None:
            raise MetastoreAwayError(
                f"A metastore keeps the heads of tables in {database}, and none is configured.",
                hint="Set metastore.uri.",
            )
        entries = (one.partition(".") for one in (*self._stored.values(), *self._known.values()))
        all_of_it = (one for first, _, one in entries if first == database)
        tables = frozenset(all_of_it if self._moment else [table])
        try:
            files = metastore.metadata_files(database, sorted(tables))
        except UnavailableError as error:
            return _Answer(until=self._monotonic() + _PAUSE, asked=tables, files=error)
        return _Answer(until=self._monotonic() + self._moment, asked=tables, files=files)
