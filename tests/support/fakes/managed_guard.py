"""A guard that allows everything, and knows the managed tables by their rows alone: no system tables."""

from dataclasses import dataclass

from lakewarden.catalog.formats.files_elsewhere import Look, reads_from
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.storage.place import Moment

__all__ = ["ManagedGuard"]


@dataclass(frozen=True)
class ManagedGuard:
    """`Guard` of a run. Nothing has moved since the last sweep."""

    rows: tuple[TableRow, ...]
    """All managed tables."""

    def confirm(self) -> None:
        """The run is ours."""

    def ask(self, table_id: str, name: str, location: str) -> None:
        """It may go on."""

    def readers_of(self, location: str) -> tuple[TableRow, ...]:
        return tuple(row for row in self.rows if reads_from(row, location, Moment()))

    def moved(self, look: Look) -> tuple[TableRow, ...]:
        return ()
