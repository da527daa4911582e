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
"""Seconds for which an answer counts."""
_PAUSE: Final = 10.0
"""Seconds for which a metastore that did not answer is not asked again: each time takes as long as its timeout."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was said of the tables of one database, or that nothing was, and until when that counts."""

    until: float
    files: Mapping[str, str] | UnavailableError


class TableHeads:
    """Asks the metastore for heads of tables that are managed by their entries. Thread-safe."""

    def __init__(
        self,
        metastore: Callable[[], Metastore | None],
        rows: Callable[[], Rows[TableRow]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metastore, self._rows, self._monotonic = metastore, rows, monotonic
        self._known: dict[str, str] = {}
        self._stored: tuple[int, Mapping[str, str]] | None = None
        self._answers: dict[str, _Answer] = {}
        self._lock = threading.Lock()

    def know(self, location: str, entry: str) -> None:
        """A table that is about to be managed by an entry: no row says so yet."""
        with self._lock:
            self._known[location] = entry
            self._answers.pop(entry.partition(".")[0], None)

    def __call__(self, location: str) -> CatalogHead | None:
        """The head of the table at a location, None where no entry keeps it. Raises `UnavailableError`."""
        with self._lock:
            entries = self._entries()
            entry = entries.get(location)
            if entry is None:
                return None
            database, _, table = entry.partition(".")
            files = self._files(database, [one for one in entries.values() if one.startswith(f"{database}.")])
            return CatalogHead(entry=entry, file=files.get(table))

    def _entries(self) -> Mapping[str, str]:
        """Entries by location, of rows and of what is about to be one."""
        rows = self._rows()
        if self._stored is None or self._stored[0] != rows.version:
            found = sorted(
                rows.find(kind=RowKind.TABLE, format="iceberg"),
                key=lambda row: (row.state not in GONE, row.row),
            )
            told = ((row.location or "", row.properties.get(CATALOG_ENTRY)) for row in found)
            self._stored = rows.version, {location: entry for location, entry in told if entry}
        return {**self._known, **self._stored[1]}

    def _files(self, database: str, entries: list[str]) -> Mapping[str, str]:
        now, known = self._monotonic(), self._answers.get(database)
        if known is None or now >= known.until:
            known = self._answers[database] = self._asked(database, sorted(entries))
        if isinstance(known.files, UnavailableError):
            raise known.files
        return known.files

    def _asked(self, database: str, entries: list[str]) -> _Answer:
        metastore = self._metastore()
        if metastore is None:
            raise MetastoreAwayError(
                f"A metastore keeps the heads of tables in {database}, and none is configured.",
                hint="Set metastore.uri.",
            )
        try:
            files = metastore.metadata_files(database, [one.partition(".")[2] for one in entries])
        except UnavailableError as error:
            return _Answer(until=self._monotonic() + _PAUSE, files=error)
        return _Answer(until=self._monotonic() + _MOMENT, files=files)
