"""Discovery with this installation's metastore, roots and readers."""

from collections import defaultdict
from collections.abc import Iterator

from lakewarden.catalog.errors import CatalogAwayError, EntryAwayError
from lakewarden.catalog.metastore.table_heads import address_in
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.registry.discovery import DiscoveredTable, in_catalog, in_metastore, under_root
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services

__all__ = ["candidates"]


def candidates(services: Services) -> Iterator[DiscoveredTable | None]:
    """Tables that exist in the metastore or under a discovery root and have no row, dropped ones included.

    None for each look that found nothing: a search through a large metastore takes minutes, and may be left off
    in between.
    """
    known = {
        location
        for location in services.store.rows(TABLES).arrow(["location"]).column(0).to_pylist()
        if location
    }
    for found in _looks(services, known):
        if found is not None and found.location is not None:
            known.add(found.location)
        yield found


def _looks(services: Services, known: set[str]) -> Iterator[DiscoveredTable | None]:
    if services.metastore is not None:
        yield from in_metastore(services.metastore, services.readers, known)
    for root in services.settings.discovery_roots:
        yield from under_root(root, services.storage(root), services.readers, known)
    yield from _in_catalogs(services)


def _in_catalogs(services: Services) -> Iterator[DiscoveredTable | None]:
    """Tables of all declared catalogs. One that does not answer, or not of all, is said after the others were asked."""
    catalogs = services.catalogs
    if catalogs is None:
        return
    rows = services.store.rows(TABLES).find(format="iceberg")
    managed = defaultdict[CatalogAddress, set[str]](set)
    for row in rows:
        address = address_in(row.properties)
        if address is not None and row.location is not None:
            managed[address].add(row.location)
    away: CatalogAwayError | None = None
    for name in catalogs.names:
        try:
            yield from in_catalog(name, catalogs.catalog(name), managed)
        except CatalogAwayError as error:
            away = error if away is None or isinstance(away, EntryAwayError) else away
    if away is not None:
        raise away
