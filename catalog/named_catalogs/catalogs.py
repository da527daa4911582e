"""Opens the declared catalogs, each when it is first asked."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lakewarden.catalog.errors import CatalogAwayError
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.catalog.named_catalogs.port import TableCatalog
from lakewarden.catalog.named_catalogs.rest_catalog import RestCatalog
from lakewarden.catalog.named_catalogs.sql_catalog import SqlCatalog

__all__ = ["DeclaredCatalogs"]

_KINDS: Final[Mapping[CatalogKind, Callable[[CatalogDeclaration], TableCatalog]]] = {
    CatalogKind.SQL: SqlCatalog,
    CatalogKind.REST: RestCatalog,
}


class DeclaredCatalogs:
    """`NamedCatalogs` as the settings declare them."""

    def __init__(self, declared: Sequence[CatalogDeclaration]) -> None:
        self._declared = {one.name: one for one in declared}
        self._opened: dict[str, TableCatalog] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._declared)

    def catalog(self, name: str) -> TableCatalog:
        declared = self._declared.get(name)
        if declared is None:
            raise CatalogAwayError(
                f"The settings declare no catalog {name}.",
                hint=f"Write [catalogs.{name}] in the settings file.",
            )
        with self._lock:
            if name not in self._opened:
                self._opened[name] = _KINDS[declared.kind](declared)
            return self._opened[name]

    def address(self, where: str) -> CatalogAddress | None:
        catalog, _, entry = where.strip().replace("`", "").partition(".")
        namespace, _, table = entry.rpartition(".")
        if catalog not in self._declared or not namespace or not table or set("/:") & set(where):
            return None
        return CatalogAddress(catalog=catalog, entry=entry)
