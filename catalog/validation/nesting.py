"""Is a location one table's alone? Managed tables at, in or around it, and any table around it."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lakewarden.catalog.formats.outer_tables import Above
from lakewarden.catalog.model.identity import Follow, ancestors
from lakewarden.catalog.model.rows import PLACELESS, Finding, RowKind, TableRow
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.validation.context import Subject

__all__ = ["NEIGHBOUR_COLUMNS", "Neighbours", "location_findings"]

NEIGHBOUR_COLUMNS: Final = ("table_id", "kind", "name", "location", "state")
_Index = tuple[str, str, str, str | None, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbours:
    """Managed tables by where they are now: all names of a place have become one spelling."""

    at: Mapping[str, tuple[tuple[str, str], ...]]
    """Place to (table_id, name) of those there."""
    places: tuple[str, ...]
    """All places, sorted."""
    follow: Follow
    """Gives a place its spelling."""

    @classmethod
    def of(cls, rows: Iterable[TableRow]) -> "Neighbours":
        """All tables among the rows that have files. Follows links on local disks: make it once per round."""
        return cls._of(
            ((one.table_id, one.kind, one.name, one.location, one.state) for one in rows), Moment().spelling
        )

    @classmethod
    def of_index(cls, index: pa.Table, *, follow: Follow) -> "Neighbours":
        """The same from `NEIGHBOUR_COLUMNS` of `lakewarden.tables`; `follow` brings a location to one spelling."""
        columns = (index.column(name).to_pylist() for name in NEIGHBOUR_COLUMNS)
        return cls._of(zip(*columns, strict=True), follow)

    @classmethod
    def _of(cls, rows: Iterable[_Index], follow: Follow) -> "Neighbours":
        at: dict[str, tuple[tuple[str, str], ...]] = {}
        for table_id, kind, name, location, state in rows:
            if kind == RowKind.TABLE and location and state not in PLACELESS:
                place = follow(location)
                at[place] = (*at.get(place, ()), (table_id, name))
        return cls(at=at, places=tuple(sorted(at)), follow=follow)

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


def location_findings(subject: Subject, neighbours: Neighbours, above: Above) -> tuple[Finding, ...]:
    """At most one finding, naming every table that shares the location or part of it."""
    here, own = neighbours.follow(subject.row.location or ""), subject.row.table_id
    said = [
        subject.say("location_unique", "same", other=name).message
        for table_id, name in neighbours.at.get(here, ())
        if table_id != own
    ]
    for case, places in (("inside", neighbours.inside(here)), ("around", neighbours.around(here))):
        for place in places:
            for _, name in neighbours.at[place]:
                said.append(subject.say("location_unique", case, other=name, location=place).message)
    outer = above(subject.row.location or "")
    if outer is not None and neighbours.follow(outer) not in neighbours.at:
        said.append(subject.say("location_unique", "outer", location=outer).message)
    return (subject.finding("location_unique", " ".join(said)),) if said else ()
