"""What is asked of a catalog, whatever its kind."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from lakewarden.catalog.model.identity import CatalogAddress

__all__ = ["NamedCatalogs", "TableCatalog"]


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

    def entries(self) -> Mapping[str, str | None]:
        """`namespace.table` -> the metadata file that it names, of all tables; None where that takes another
        question."""


class NamedCatalogs(Protocol):
    """The catalogs of an installation, by the names that they were declared by."""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""

    def catalog(self, name: str) -> TableCatalog:
        """The one of that name. Raises `CatalogAwayError` where none is declared: it may be the settings' fault."""

    def address(self, where: str) -> CatalogAddress | None:
        """What a user means by `catalog.namespace.table`; None where he means none of these catalogs."""
