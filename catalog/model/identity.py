"""Is this table one we know? Same, moved, replaced, copied, nested or new: decided purely from rows and two facts.

Identity is the `table_id` we minted. A format's own UUID and the location are attributes that change: CREATE OR
REPLACE and RESTORE change the UUID while the log goes on, a move changes the location, a copy repeats the UUID.
"""

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.errors import RefusedError, UsageError
from lakewarden.catalog.model.left_by_users import LEFT_AT, is_left, is_recent
from lakewarden.catalog.model.rows import PLACELESS, RowKind, TableRow, TableState

__all__ = [
    "INDEX_COLUMNS",
    "AlreadyManaged",
    "CatalogAddress",
    "Copy",
    "Follow",
    "Held",
    "Moved",
    "New",
    "OneOfSeveral",
    "RegisteredPlaces",
    "Verdict",
    "ancestors",
    "check_nesting",
    "identify",
    "require_beginning",
]

INDEX_COLUMNS = ("table_id", "kind", "name", "location", "state", "format_ids", "properties")
Follow = Callable[[str], str]
"""Gives all locations of one place one spelling, as `Moment.spelling` does."""
_ODD: Final = re.compile(r"\W+")


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogAddress:
    """The entry of a catalog that keeps a table's head."""

    catalog: str | None = None
    """The name of a declared catalog; None: the Hive metastore."""
    entry: str
    """`namespace.table`, as the catalog has it."""

    @property
    def namespace(self) -> str:
        """All but the table's own name."""
        return self.entry.rpartition(".")[0]

    @property
    def table(self) -> str:
        """The table's own name."""
        return self.entry.rpartition(".")[2]

    @property
    def managed_as(self) -> str:
        """What its table is managed as, unless somebody says otherwise: `db.t`; of a declared catalog's namespace with
        several parts, and of odd letters, as near to that as a name comes."""
        if self.catalog is None:
            return self.entry.lower()
        namespace, table = (_ODD.sub("_", part).strip("_") for part in (self.namespace, self.table))
        return f"{namespace or 'default'}.{table or 'table'}".lower()

    def __str__(self) -> str:
        return self.entry if self.catalog is None else f"{self.catalog}.{self.entry}"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlreadyManaged:
    """The location is that of a managed table already, dropped ones included."""

    table_id: str
    state: TableState


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """A managed table with this UUID is no longer where it was: this is it."""

    table_id: str
    from_location: str
    is_back: bool = False
    """It had counted as dropped by its users."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """A managed table with this UUID is still alive elsewhere."""

    table_id: str
    name: str
    location: str
    lost: tuple[str, ...] = ()
    """Names of others with it that are no longer where they were: it may be one of those."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OneOfSeveral:
    """Several managed tables with this UUID are no longer where they were: it is one of them, or another copy."""

    lost: tuple[str, ...]
    """Their names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class New:
    """Nobody we know."""


Verdict = AlreadyManaged | Moved | OneOfSeveral | Copy | New


@dataclass(frozen=True, slots=True)
class Held:
    """What a row of a table holds: a name, a place, and the newest UUID (None: not known)."""

    table_id: str
    name: str
    location: str | None
    state: TableState
    format_id: str | None
    left_at: str | None = None
    """When its users dropped it, as it seemed: its files and its metastore entry were gone."""

    @property
    def left(self) -> bool:
        """Whether that is so."""
        return is_left(self.state, self.left_at)


class RegisteredPlaces:
    """The holders of places, UUIDs and names on one version of `lakewarden.tables`: looked up, whatever their number.

    Places are compared as they were resolved when this was made. `add` takes in a row that was decided on since, so
    that the next decision sees it.
    """

    def __init__(self, index: pa.Table, *, follow: Follow) -> None:
        """`index` holds `INDEX_COLUMNS` of `lakewarden.tables`; `follow` gives locations of one place one spelling."""
        self.follow: Final = follow
        self._at: dict[str, tuple[Held, ...]] = {}
        self._with_id: dict[str, tuple[Held, ...]] = {}
        self._named: dict[str, tuple[Held, ...]] = {}
        self._live: list[str] = []
        self._by_id: dict[str, Held] = {}
        told = pc.map_lookup(index.column(INDEX_COLUMNS[-1]), query_key=LEFT_AT, occurrence="first")
        columns = (index.column(name).to_pylist() for name in INDEX_COLUMNS[:-1])
        for table_id, kind, name, location, state, ids, left_at in zip(
            *columns, told.to_pylist(), strict=True
        ):
            held = Held(table_id, name, location, TableState(state), ids[-1] if ids else None, left_at)
            is_table = kind == RowKind.TABLE.value
            self._take(held, is_table=is_table)
            if is_table:
                self._by_id[table_id] = held
                if _is_live(held):
                    self._live.append(follow(held.location or ""))
        self._live.sort()

    def copy(self) -> "RegisteredPlaces":
        """The same, apart: what is added to the one is not in the other."""
        made = copy(self)
        made._at, made._with_id, made._named = dict(self._at), dict(self._with_id), dict(self._named)
        made._live, made._by_id = list(self._live), dict(self._by_id)
        return made

    def add(self, row: TableRow) -> None:
        """Take in what the row of a table holds now; what it held before is free."""
        held = Held(
            row.table_id,
            row.name,
            row.location,
            row.state,
            row.format_ids[-1] if row.format_ids else None,
            row.properties.get(LEFT_AT),
        )
        before, self._by_id[row.table_id] = self._by_id.get(row.table_id), held
        if before is not None:
            self._free(before)
        self._take(held, is_table=True)
        if _is_live(held):
            insort(self._live, self.follow(held.location or ""))

    def at(self, location: str) -> tuple[Held, ...]:
        """Tables at a location whose files have not been purged, dropped ones included."""
        return self._at.get(self.follow(location), ())

    def twins(self, format_id: str | None) -> tuple[Held, ...]:
        """Tables whose newest UUID this is: live ones, and those that their users dropped, as it seemed."""
        return () if format_id is None else self._with_id.get(format_id, ())

    def named(self, name: str) -> tuple[Held, ...]:
        """Whatever has, or had, this name."""
        return self._named.get(name, ())

    def around(self, location: str) -> Iterator[Held]:
        """Live tables in a folder above, nearest first."""
        return (one for above in ancestors(self.follow(location)) for one in self._live_at(above))

    def inside(self, location: str) -> Iterator[Held]:
        """Live tables in a folder below."""
        prefix = self.follow(location).rstrip("/") + "/"
        for number in range(bisect_left(self._live, prefix), len(self._live)):
            if not self._live[number].startswith(prefix):
                return
            yield from self._live_at(self._live[number])

    def _live_at(self, location: str) -> Iterator[Held]:
        return (one for one in self._at.get(location, ()) if one.state not in PLACELESS)

    def _take(self, held: Held, *, is_table: bool) -> None:
        _append(self._named, held.name, held)
        if not is_table or held.location is None or held.state is TableState.PURGED:
            return  # a purged table is history: its place is free
        _append(self._at, self.follow(held.location), held)
        if (_is_live(held) or held.left) and held.format_id is not None:
            _append(self._with_id, held.format_id, held)

    def _free(self, held: Held) -> None:
        _remove(self._named, held.name, held)
        _remove(self._at, self.follow(held.location or ""), held)
        _remove(self._with_id, held.format_id or "", held)
        if _is_live(held):
            del self._live[bisect_left(self._live, self.follow(held.location or ""))]


def _is_live(held: Held) -> bool:
    """Whether the row is a managed table with a place."""
    return held.location is not None and held.state not in PLACELESS


def _remove(of: dict[str, tuple[Held, ...]], key: str, held: Held) -> None:
    if key in of:
        of[key] = tuple(one for one in of[key] if one.table_id != held.table_id)


def _append(to: dict[str, tuple[Held, ...]], key: str, held: Held) -> None:
    to[key] = (*to[key], held) if key in to else (held,)


def ancestors(location: str) -> tuple[str, ...]:
    """Every folder above a canonical location, nearest first, down to the storage's root."""
    scheme, _, path = location.partition("://")
    parts = path.split("/")
    return tuple(f"{scheme}://{'/'.join(parts[:depth])}" for depth in range(len(parts) - 1, 0, -1))


def identify(
    places: RegisteredPlaces,
    location: str,
    format_id: str | None,
    *,
    alive: Collection[str],
    now: datetime | None = None,
    name: str | None = None,
    at_head: Collection[str] = (),
) -> Verdict:
    """Decide who a table at a canonical `location` with UUID `format_id` is.

    `alive` are those locations of tables with the same UUID that still hold a table (the caller looked). Copies share
    a UUID for ever: of several tables with it, the one is meant that is no longer where it was and has the `name` that
    was asked for, else that alone was last seen `at_head`, the very commit that this one is at (their `table_id`s).
    What appears `now` at the place of a table that its users dropped long ago is another one, unless the UUID is the
    same: then it has come back.
    """
    twins, at = places.twins(format_id), places.at(location)
    here = sorted(at, key=lambda one: one.state in PLACELESS)
    if here and now is not None and all(one.left and not is_recent(one.left_at, now) for one in here):
        same = [one for one in here if one in twins]
        if same:
            return _moved_from(same[-1])
    elif here:
        return AlreadyManaged(table_id=here[0].table_id, state=here[0].state)
    living = [twin for twin in twins if twin.location in alive]
    lost = [twin for twin in twins if twin.location not in alive]
    named = [twin for twin in lost if twin.name == name]
    same = [twin for twin in twins if twin.table_id in at_head]
    if not living and len(lost) == 1:
        return _moved_from(lost[0])
    for told in (named, same):
        if len(told) == 1 and told[0] in lost:
            return _moved_from(told[0])
    names = tuple(sorted(twin.name for twin in lost))
    if living:
        one = living[0]
        return Copy(table_id=one.table_id, name=one.name, location=one.location or "", lost=names)
    return OneOfSeveral(lost=names) if lost else New()


def _moved_from(twin: Held) -> Moved:
    return Moved(table_id=twin.table_id, from_location=twin.location or "", is_back=twin.left)


def check_nesting(
    places: RegisteredPlaces, location: str, *, outer: str | None, but: str | None = None
) -> None:
    """Refuse a location inside another table's, or around a managed one. One location, one table. `outer` is the
    table that somebody found around it, managed or not; `but` is the `table_id` of the table itself."""
    for one in places.around(location):
        if one.table_id != but:
            raise RefusedError(
                f"{location} lies inside the managed table {one.name} ({one.location}).",
                hint="Move one of them: a vacuum of the outer table would delete the inner one's files.",
            )
    if outer is not None:
        raise RefusedError(
            f"{location} lies inside another table, {outer}, which nobody manages here.",
            hint="Move one of them: a vacuum of the outer table would delete the inner one's files.",
        )
    for one in places.inside(location):
        if one.table_id != but:
            raise RefusedError(
                f"The managed table {one.name} ({one.location}) lies inside {location}.",
                hint="Move one of them: a vacuum of the outer table would delete the inner one's files.",
            )


def require_beginning(text: str, what: str) -> None:
    """Raise `UsageError` for a name of nothing: every id begins with it, so it would mean whichever is the only one."""
    if not text.strip():
        raise UsageError(
            f"The {what} is not named.",
            hint="Give its id, or the first characters of it; a variable of the shell may be unset.",
        )
