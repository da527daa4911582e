"""Discovery with this installation's metastore, roots and readers."""

from collections.abc import Callable, Iterator

from lakewarden.catalog.registry.discovery import Candidate, in_metastore, under_root
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services

__all__ = ["candidates"]


def candidates(services: Services, *, go_on: Callable[[], None] = lambda: None) -> Iterator[Candidate]:
    """Tables that exist in the metastore or under a discovery root and have no row, dropped ones included. `go_on` is
    called all the time and may raise: a search through a large metastore takes minutes."""
    known = {
        location
        for location in services.store.rows(TABLES).arrow(["location"]).column(0).to_pylist()
        if location
    }
    if services.metastore is not None:
        for found in in_metastore(services.metastore, services.readers, known, go_on=go_on):
            known.add(found.location)
            yield found
    for root in services.settings.discovery_roots:
        for found in under_root(root, services.storage(root), services.readers, known, go_on=go_on):
            known.add(found.location)
            yield found
