"""What is asked of a catalog, whatever its kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakewarden.catalog.errors import EntryAwayError
from lakewarden.catalog.model.identity import CatalogAddress

__all__ = ["CatalogEntries", "NamedCatalogs", "TableCatalog"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogEntries:
    """The tables that a catalog tells of."""

    files: Mapping[str, str | None]
    """`namespace.table` -> the metadata file that it names; None where that takes another question."""
    untold: EntryAwayError | None = None
    """Why those of some namespaces are not among them."""


class TableCatalog(Protocol):
    """One catalog. Tables go by `namespace.table`; a namespace may have dots itself. Thread-safe. Every method raises
    `UnavailableError` while it does not answer."""

    @property
    def bulk(self) -> bool:
        """Whether one question tells of many tables."""

    def metadata_files(self, namespace: str, tables: Sequence[str]) -> Mapping[str, str]:
        """Table -> the metadata file that its entry names, of those tables that are there."""

    def naming(self, location: str) -> tuple[str, ...]:
        """`catalog.namespace.table` of the entries that name a file in the folder at a canonical location, of whichever
        catalog that is kept in the same place; none where that takes asking for every table."""

    def naming_in(self, namespace: str | None, location: str) -> tuple[str, ...]:
        """The same of a namespace at least (None: of all), if it takes asking for each table. Raises
        `UnavailableError`, too, where one of them is not told."""

    @property
    def takes_entries(self) -> bool:
        """Whether an entry can be called by another name; asks."""

    def take_away(self, namespace: str, table: str, *, name: str, file: str) -> None:
        """Call an entry `name`, so that no commit to its table by its own name succeeds any more, if it still names
        this metadata file. Raises `ConflictError` if it does not, `RefusedError` where `takes_entries` is false. A
        catalog that does not compare may have called it so for a moment, or, where this process is killed, until
        somebody puts it back."""

    def put_back(self, namespace: str, name: str, *, table: str, file: str) -> None:
        """Call an entry that was taken away as before. Raises `ConflictError` if it is not there, or `table` is."""

    def drop(self, namespace: str, table: str) -> None:
        """Remove the entry, never a file; quietly when there is none."""

    def entries(self) -> CatalogEntries:
        """All tables."""


class NamedCatalogs(Protocol):
    """The catalogs of an installation, by the names that they were declared by."""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""

    def catalog(self, name: str) -> TableCatalog:
        """The one of that name. Raises `CatalogAwayError` where none is declared: it may be the settings' fault."""

    def address(self, where: str) -> CatalogAddress | None:
        """What a user means by `catalog.namespace.table`; None where he means none of these catalogs."""
