"""What kinds of tables a random history has: their format, where they are, who writes to them and what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from deltalake import DeltaTable

from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.engines.spark.names import table_at
from support.histories.scribes import Content, DeltaRs, Kind, Scribe, rows_at

__all__ = ["KINDS", "DeltaTables", "TableKind"]

KINDS: Final[Mapping[Kind, int]] = {
    Kind.APPEND: 34,
    Kind.OVERWRITE: 16,
    Kind.PARTIAL: 7,
    Kind.MERGE: 9,
    Kind.UPDATE: 5,
    Kind.DELETE: 5,
    Kind.AGAIN: 7,
    Kind.COMPACT: 9,
    Kind.RESTORE: 8,
}
"""What is written, and how often."""


class TableKind(Protocol):
    """Tables of one format."""

    format: TableFormat
    first: int
    """The version that a table's first write makes."""
    kinds: Mapping[Kind, int]
    """What is written, and how often."""
    restores_by_commit: bool
    """Whether somebody who sets it back does so by a commit, which is a new version."""

    @property
    def reads_others(self) -> bool:
        """Whether its writes read other tables."""

    @property
    def scribes(self) -> Sequence[Scribe]:
        """Who writes; the first of them makes a table's first version."""

    def create(self, name: str) -> None:
        """Whatever has to be there before the first write."""

    def address(self, name: str) -> str:
        """How it is registered."""

    def place(self, name: str) -> str:
        """Its canonical location."""

    def rows(self, name: str) -> Content:
        """What it holds now."""

    def head(self, name: str) -> int:
        """The version that it is at."""

    def identity(self, name: str) -> str:
        """What its format calls it by."""

    def sql(self, name: str, version: int | None) -> str:
        """What a query says for it; with a version, for that one."""


@dataclass
class DeltaTables:
    """Below `root`."""

    root: str
    scribes: Sequence[Scribe] = (DeltaRs(),)
    kinds: Mapping[Kind, int] = field(default_factory=lambda: KINDS)
    format: TableFormat = "delta"
    first: int = 0
    reads_others: bool = True
    restores_by_commit: bool = True

    def create(self, name: str) -> None:
        """The first write makes it."""

    def address(self, name: str) -> str:
        return self.place(name)

    def place(self, name: str) -> str:
        return canonical(f"{self.root}/{name}")

    def rows(self, name: str) -> Content:
        return rows_at(self.place(name))

    def head(self, name: str) -> int:
        return DeltaTable(self.place(name)).version()

    def identity(self, name: str) -> str:
        return str(DeltaTable(self.place(name)).metadata().id)

    def sql(self, name: str, version: int | None) -> str:
        table = table_at(self.place(name))
        return table if version is None else f"{table} VERSION AS OF {version}"
