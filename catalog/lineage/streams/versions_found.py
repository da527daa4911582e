"""Which managed table has a version that an offset names, where the offset names no table."""

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Final

from lakewarden.catalog.errors import UnavailableError, UnreadableError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.formats.stream_sources import KnownTable
from lakewarden.catalog.model.rows import GONE, RowKind, TableFormat, TableRow

__all__ = ["VersionSearch"]


_NOWHERE: Final = "in none of "


class VersionSearch:
    """Looks through the tables of a format, each at most once, until one has the version.

    `remembered` has the `table_id` where a version was found before: what comes after it is looked for there first.
    What comes after a version that none of them had is in none either, until there are other tables.
    """

    def __init__(
        self, rows: Iterable[TableRow], readers: Sequence[TableReader], remembered: MutableMapping[str, str]
    ) -> None:
        self._rows = [
            row for row in rows if row.kind is RowKind.TABLE and row.location and row.state not in GONE
        ]
        self._readers, self._remembered = readers, remembered
        self._read: dict[str, KnownTable] = {}

    def __call__(self, format_: TableFormat, own_id: str, near: str | None) -> KnownTable | None:
        """See `FindTable`."""
        nowhere = f"{_NOWHERE}{hash(frozenset(row.table_id for row in self._rows if row.format == format_))}"
        if near is not None and self._remembered.get(near) == nowhere:
            self._remembered[own_id] = nowhere
            return None
        away: UnavailableError | None = None
        for row in self._in_order(format_, own_id, near):
            try:
                known = self._known(row)
            except UnavailableError as error:
                away = error
                continue
            if any(one.own_id == own_id for one in known.commits):
                self._remembered[own_id] = known.table_id
                return known
        if away is not None:
            raise away
        self._remembered[own_id] = nowhere
        return None

    def _in_order(self, format_: TableFormat, own_id: str, near: str | None) -> Iterator[TableRow]:
        likely = {self._remembered.get(own_id), self._remembered.get(near or "")}
        rows = [row for row in self._rows if row.format == format_]
        yield from sorted(rows, key=lambda row: row.table_id not in likely)

    def _known(self, row: TableRow) -> KnownTable:
        if row.table_id not in self._read:
            try:
                reader = reader_of(self._readers, row.format)
                commits = tuple(reader.commits(row.location or "", after=-1))
            except UnreadableError:
                commits = ()  # broken, and told so by its findings
            format_id = row.format_ids[-1] if row.format_ids else None
            self._read[row.table_id] = KnownTable(table_id=row.table_id, format_id=format_id, commits=commits)
        return self._read[row.table_id]
