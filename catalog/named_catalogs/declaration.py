"""A catalog as the settings declare it. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum

from lakewarden.catalog.storage.credentials import NO_OPTIONS, StorageOptions

__all__ = ["CatalogDeclaration", "CatalogKind"]


class CatalogKind(StrEnum):
    """How a catalog is asked: a database with the tables of Iceberg's JDBC catalog, or a server that speaks Iceberg's
    REST protocol."""

    SQL = "sql"
    REST = "rest"


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogDeclaration:
    """One declared catalog."""

    name: str
    """What engines call it, too: a database keeps the tables of several catalogs apart by it."""
    kind: CatalogKind
    uri: str
    """Without a password."""
    warehouse: str | None = None
    """Where engines make its tables; what a REST server calls one of its catalogs."""
    options: StorageOptions = field(default=NO_OPTIONS)
    """User and password, token or credential, and properties of Iceberg's own."""
