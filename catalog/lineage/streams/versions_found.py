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
_MISSED: Final = "not found in "


class VersionSearch:
    """Looks through the tables of a format, each at most once, until one has the version.

    `remembered` has the `table_id` where a version was found before: what comes after it is looked for there first.
    What comes after a version that none of them had, whenever it was looked for, is in none either, until there are
    other tables. One search does not tell that: a head may have been asked a moment before.
    """

    def __init__(
        self, rows: Iterable[TableRow], readers: Sequence[TableReader], remembered: MutableMapping[str, str]
    ) -> None:
        self._rows = [
            row for row in rows if row.kind is RowKind.TABLE and row.location and row.state not in GONE
        ]
        self._readers, self._remembered = readers, remembered
        self._read: dict[str, KnownTable] = {}
        self._broken = False

    def __call__(self, format_: TableFormat, own_id: str, near: str | None) -> KnownTable | None:
        """See `FindTable`."""
        tables = hash(frozenset(row.table_id for row in self._rows if row.format == format_))
        nowhere, missed = f"{_NOWHERE}{tables}", f"{_MISSED}{tables}"
        ids = (own_id,) if near is None else (near, own_id)
        if nowhere in map(self._remembered.get, ids):
            self._remembered[own_id] = nowhere
            return None
        away: UnavailableError | None = None
        for row in self._in_order(format_, own_id, near):
            try:
                known = self._known(row)
            except UnavailableError as error:
                away = error
                continue
            here = {one.own_id for one in known.commits}
            self._remembered.update((one, known.table_id) for one in ids if one in here)
            if own_id in here:
                self._remembered.update(dict.fromkeys(ids, known.table_id))
                return known
        if away is not None:
            raise away
        told = [self._remembered.get(one, "") for one in ids]
        if not self._broken and all(not one or one == missed for one in told):
            self._remembered.update(dict.fromkeys(ids, nowhere if missed in told else missed))
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
            except UnreadableError:  # broken, and told so by its findings
                commits, self._broken = (), True
            format_id = row.format_ids[-1] if row.format_ids else None
            self._read[row.table_id] = KnownTable(table_id=row.table_id, format_id=format_id, commits=commits)
        return self._read[row.table_id]
