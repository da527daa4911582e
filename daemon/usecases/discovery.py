"""Discovery with this installation's metastore, roots and readers."""

from collections import defaultdict
from collections.abc import Generator, Iterator
from functools import partial

from lakewarden.catalog.errors import CatalogAwayError, EntryAwayError, LakewardenError
from lakewarden.catalog.metastore.table_heads import address_in
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.registry.discovery import DiscoveredTable, in_catalog, in_metastore, under_root
from lakewarden.catalog.storage.file_store import spelled
from lakewarden.catalog.storage.troubles import silent
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
    """Catalogs before roots: under a root lie tables of which only a catalog knows the head. A catalog that does not
    answer is said after the others, and the roots, were asked."""
    if services.metastore is not None:
        yield from in_metastore(
            services.metastore, services.readers, known, answers=partial(_answers, services)
        )
    away: LakewardenError | None = yield from _in_catalogs(services)
    for root in services.settings.discovery_roots:
        if not _answers(services, root):
            away = away or silent(spelled(root))
            continue
        yield from under_root(root, services.storage(root), services.readers, known)
    if away is not None:
        raise away


def _answers(services: Services, location: str) -> bool:
    """Whether a place is on no disk that hangs: who follows a link there waits for as long as it does."""
    return services.disks.held([spelled(location)]) is None


def _in_catalogs(services: Services) -> Generator[DiscoveredTable | None, None, CatalogAwayError | None]:
    """Tables of all declared catalogs. Returns what one says that does not answer, or not of all."""
    catalogs = services.catalogs
    away: CatalogAwayError | None = None
    if catalogs is None:
        return None
    rows = services.store.rows(TABLES).find(format="iceberg")
    managed = defaultdict[CatalogAddress, set[str]](set)
    for row in rows:
        address = address_in(row.properties)
        if address is not None and row.location is not None:
            managed[address].add(row.location)
    for name in catalogs.names:
        try:
            yield from in_catalog(name, catalogs.catalog(name), managed)
        except CatalogAwayError as error:
            away = error if away is None or isinstance(away, EntryAwayError) else away
    return away
