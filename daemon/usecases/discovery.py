"""Discovery with this installation's metastore, roots and readers."""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import datetime
from functools import partial

import pyarrow.compute as pc

from lakewarden.catalog.errors import CatalogAwayError, EntryAwayError, LakewardenError
from lakewarden.catalog.metastore.known_tables import ENTERED, is_renamed
from lakewarden.catalog.metastore.table_heads import address_in
from lakewarden.catalog.model.identity import CatalogAddress, Follow
from lakewarden.catalog.model.left_by_users import LEFT_AT, is_left, is_recent
from lakewarden.catalog.model.rows import GONE, TableState
from lakewarden.catalog.registry.discovery import DiscoveredTable, in_catalog, in_metastore, under_root
from lakewarden.catalog.storage.file_store import spelled
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.storage.troubles import silent
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services

__all__ = ["candidates"]


def candidates(services: Services, *, renamed: bool = False) -> Iterator[DiscoveredTable | None]:
    """Tables that exist in the metastore or under a discovery root and have no row: one of a table that was dropped
    counts, but for what was purged, and for what its users dropped so long ago that nobody watches its place any more.

    With `renamed` also those that their users renamed in the metastore: a second entry of a managed table is none.

    None for each look that found nothing: a search through a large metastore takes minutes, and may be left off
    in between.
    """
    known = _known(services)
    entered = _entered(services) if renamed else {}
    for found in _looks(services, known, partial(_is_renamed, services, entered)):
        if found is not None and found.location is not None:
            known.add(found.location)
        yield found


def _known(services: Services) -> set[str]:
    """The places of rows."""
    now = services.clock.now()
    index = services.store.rows(TABLES).arrow(["location", "state", "properties"])
    left = pc.map_lookup(index.column("properties"), query_key=LEFT_AT, occurrence="first").to_pylist()
    told = zip(index.column("location").to_pylist(), index.column("state").to_pylist(), left, strict=True)
    return {
        place for place, state, left_at in told if place and _keeps_place(TableState(state), left_at, now)
    }


def _entered(services: Services) -> dict[str, str]:
    """By location, the `table_id` of tables that the metastore has had under their names."""
    index = services.store.rows(TABLES).arrow(["location", "table_id", "name", "state", "properties"])
    entered = pc.map_lookup(index.column("properties"), query_key=ENTERED, occurrence="first").to_pylist()
    told = zip(
        *(index.column(one).to_pylist() for one in ("location", "table_id", "name", "state")),
        entered,
        strict=True,
    )
    return {
        place: table_id
        for place, table_id, name, state, entry in told
        if place and name == entry and TableState(state) not in GONE
    }


def _is_renamed(services: Services, entered: Mapping[str, str], name: str, location: str) -> bool:
    """Whether an entry at a managed table's place is what the table was renamed to."""
    metastore, table_id = services.metastore, entered.get(location)
    if metastore is None or table_id is None:
        return False
    return is_renamed(metastore, services.registry.get(table_id), name, follow=_follow(services))


def _follow(services: Services) -> Follow:
    """The one spelling of a location; on a disk that hangs, the one that it has."""

    def follow(location: str) -> str:
        return Moment(unanswered=services.disks.ask([location])).spelling(location)

    return follow


def _keeps_place(state: TableState, left_at: str | None, now: datetime) -> bool:
    if is_left(state, left_at):
        return is_recent(left_at, now)
    return state is not TableState.PURGED


def _looks(
    services: Services, known: set[str], renamed: Callable[[str, str], bool]
) -> Iterator[DiscoveredTable | None]:
    """Catalogs before roots: under a root lie tables of which only a catalog knows the head. A catalog that does not
    answer is said after the others, and the roots, were asked."""
    if services.metastore is not None:
        yield from in_metastore(
            services.metastore, services.readers, known, answers=partial(_answers, services), renamed=renamed
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
    rows, now = services.store.rows(TABLES).find(format="iceberg"), services.clock.now()
    managed = defaultdict[CatalogAddress, set[str]](set)
    for row in rows:
        address = address_in(row.properties)
        left_at = row.properties.get(LEFT_AT)
        if address is not None and row.location is not None and _keeps_place(row.state, left_at, now):
            managed[address].add(row.location)
    for name in catalogs.names:
        try:
            yield from in_catalog(name, catalogs.catalog(name), managed, answers=partial(_answers, services))
        except CatalogAwayError as error:
            away = error if away is None or isinstance(away, EntryAwayError) else away
    return away
