"""A catalog as the settings declare it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from unicodedata import category

from lakewarden.catalog.storage.credentials import NO_OPTIONS, StorageOptions

__all__ = ["CatalogDeclaration", "CatalogKind", "unsendable"]

_TOKEN: Final = "token"
_SENT: Final = (_TOKEN, "credential", "scope")
"""What a server is sent."""


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


def unsendable(options: Mapping[str, str]) -> str | None:
    """The option that cannot be sent to a server: one with a line end or another control character, or a token with a
    letter that no header can hold. None without one."""
    for name in _SENT:
        value = options.get(name, "")
        if any(category(one) == "Cc" for one in value):
            return name
        if name == _TOKEN and any(ord(one) > 0xFF for one in value):
            return name
    return None
