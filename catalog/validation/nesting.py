"""Is a location one table's alone? Managed tables at, in or around it. Pure."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lakewarden.catalog.model.identity import ancestors
from lakewarden.catalog.model.rows import Finding, RowKind, TableRow, TableState
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.validation.context import Subject

__all__ = ["Neighbours", "location_findings"]

_GONE = (TableState.DROPPED, TableState.PURGED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbours:
    """Managed tables by where they are now: aliases of a path (links, `..`, `s3a`) have become one spelling.

    `at` maps a canonical location to (table_id, name) of those there; `places` are its keys, sorted.
    """

    at: Mapping[str, tuple[tuple[str, str], ...]]
    places: tuple[str, ...]

    @classmethod
    def of(cls, rows: Iterable[TableRow]) -> "Neighbours":
        """All tables among the rows that have files. Follows links on local disks: make it once per round."""
        at: dict[str, tuple[tuple[str, str], ...]] = {}
        for row in rows:
            if row.kind is RowKind.TABLE and row.location and row.state not in _GONE:
                place = canonical(row.location)
                at[place] = (*at.get(place, ()), (row.table_id, row.name))
        return cls(at=at, places=tuple(sorted(at)))

    def inside(self, location: str) -> Iterator[str]:
        """Locations strictly below this one."""
        prefix = location.rstrip("/") + "/"
        for place in self.places[bisect_left(self.places, prefix) :]:
            if not place.startswith(prefix):
                return
            yield place

    def around(self, location: str) -> Iterator[str]:
        """Locations strictly above this one, nearest first."""
        return (place for place in ancestors(location) if place in self.at)


def location_findings(subject: Subject, neighbours: Neighbours) -> tuple[Finding, ...]:
    """At most one finding, naming every table that shares the location or part of it."""
    here, own = canonical(subject.row.location or ""), subject.row.table_id
    said = [
        subject.say("location_unique", "same", other=name).message
        for table_id, name in neighbours.at.get(here, ())
        if table_id != own
    ]
    for case, places in (("inside", neighbours.inside(here)), ("around", neighbours.around(here))):
        for place in places:
            for _, name in neighbours.at[place]:
                said.append(subject.say("location_unique", case, other=name, location=place).message)
    return (subject.finding("location_unique", " ".join(said)),) if said else ()
