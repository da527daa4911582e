"""Is a location one table's alone? Managed tables at, in or around it. Pure."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lakewarden.catalog.model.identity import ancestors
from lakewarden.catalog.model.rows import Finding, RowKind, TableRow, TableState
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.validation.context import Subject

__all__ = ["NEIGHBOUR_COLUMNS", "Neighbours", "location_findings"]

NEIGHBOUR_COLUMNS: Final = ("table_id", "kind", "name", "location", "state")
_Index = tuple[str, str, str, str | None, str]
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
        return cls._of(
            ((one.table_id, one.kind, one.name, one.location, one.state) for one in rows), canonical
        )

    @classmethod
    def of_index(cls, index: pa.Table, *, follow: Callable[[str], str]) -> "Neighbours":
        """The same from `NEIGHBOUR_COLUMNS` of `lakewarden.tables`; `follow` brings a location to one spelling."""
        columns = (index.column(name).to_pylist() for name in NEIGHBOUR_COLUMNS)
        return cls._of(zip(*columns, strict=True), follow)

    @classmethod
    def _of(cls, rows: Iterable[_Index], follow: Callable[[str], str]) -> "Neighbours":
        at: dict[str, tuple[tuple[str, str], ...]] = {}
        for table_id, kind, name, location, state in rows:
            if kind == RowKind.TABLE and location and state not in _GONE:
                place = follow(location)
                at[place] = (*at.get(place, ()), (table_id, name))
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
