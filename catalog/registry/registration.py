"""One registration as it is decided: who the table at a place is, on one version of `lakewarden.tables`. Pure.

A round decides one registration or many, one after the other: each is decided on what those before it came to.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from lakewarden.catalog.errors import ConflictError, LakewardenError, RefusedError
from lakewarden.catalog.formats.files_elsewhere import with_links, with_reach
from lakewarden.catalog.formats.linked_folders import linked_folders
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.metastore.known_tables import with_entry
from lakewarden.catalog.metastore.lookup import NamedLocation, parse_name
from lakewarden.catalog.metastore.table_heads import address_in, as_properties
from lakewarden.catalog.model.identity import (
    AlreadyManaged,
    CatalogAddress,
    Copy,
    Moved,
    New,
    OneOfSeveral,
    RegisteredPlaces,
    Verdict,
    check_nesting,
    identify,
)
from lakewarden.catalog.model.rows import RowKind, Source, TableFormat, TableRow, TableState
from lakewarden.catalog.policy.access import Actor, Permission, require
from lakewarden.catalog.policy.effective import Value, format_value
from lakewarden.catalog.policy.keys import policy_key
from lakewarden.catalog.policy.scopes import govern, scopes_by_name
from lakewarden.catalog.registry.checked_rows import StaleDecision
from lakewarden.catalog.registry.entry_changes import require_same, second_name, under_entry
from lakewarden.catalog.registry.governance import with_policy
from lakewarden.catalog.registry.moves import (
    from_nowhere,
    held_copy,
    moved_to,
    not_seen,
    one_of,
    or_one_of,
    refuse_lost_name,
    taken_back,
)
from lakewarden.catalog.registry.service import (
    Registry,
    free_name,
    known,
    next_number,
    places_of,
    row_of,
    wanted_name,
)
from lakewarden.catalog.storage.place import Presence
from lakewarden.catalog.system.port import HEALTH, At, Rows

__all__ = [
    "Decided",
    "Registration",
    "RegistrationAttempt",
    "Sightings",
    "WantedTable",
    "names_of",
    "refuse_other_values",
    "sight",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedTable:
    """What somebody asks for: the table at a path, or of a metastore name. Without an owner the actor is it."""

    where: str
    name: str | None = None
    """None: the place's own."""
    owner: str | None = None
    policy: Mapping[str, Value] = field(default_factory=dict)
    copy: bool = False
    """It is a copy, for certain."""
    moved: bool = False
    """It has moved, for certain."""
    is_known: bool = False
    """It has to be one that is on record; else it may be new, and what is said of moves does not matter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sightings:
    """What the places of tables with the same UUIDs look like: whether a table is there, or surely nothing is."""

    at: At
    """The version of `lakewarden.tables` that was looked at."""
    places: RegisteredPlaces
    """The places of that version."""
    rows: Mapping[str, TableRow]
    """By `table_id` those that are where one is asked for."""
    outer: Mapping[str, str] = field(default_factory=dict)
    """The tables that these lie in, whoever manages them."""
    linked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The folders that theirs lead to."""
    heads: Mapping[str, str] = field(default_factory=dict)
    """By `table_id` the head on record of each of several tables with one UUID."""
    alive: frozenset[str] = frozenset()
    surely_gone: frozenset[str] = frozenset()


class RegistrationAttempt:
    """Registrations decided one after the other on one version of `lakewarden.tables`. Names that are `asked_for` are
    given to nobody who asks for none."""

    def __init__(
        self, rows: Rows[TableRow], sightings: Sightings, *, asked_for: Collection[str] = ()
    ) -> None:
        self.asked_for = asked_for
        same = rows.at == sightings.at
        self._rows, self._sightings, self._same = rows, sightings, same
        self._decided: dict[str, TableRow] = {}
        self._next = next_number(rows)
        self.places = sightings.places.copy() if same else places_of(rows, sightings.places.follow)
        self.scopes = scopes_by_name(rows.find(kind=RowKind.SCOPE))
        self.alive: set[str] = set(sightings.alive)

    def require_sight_of(self, format_id: str | None) -> None:
        """Raise `StaleDecision` where tables with this UUID were not looked at as of this version."""
        if self._same:
            return
        if any(one.table_id not in self._decided for one in self.places.twins(format_id)):
            raise StaleDecision

    def is_surely_gone(self, location: str | None) -> bool:
        """Whether nothing is left at a place."""
        return location in self._sightings.surely_gone

    def at_head(self, seen: Observation) -> tuple[str, ...]:
        """Of the tables with the UUID that was seen, those that were last seen at the very same commit."""
        heads = self._sightings.heads
        return tuple(
            one.table_id
            for one in self.places.twins(seen.format_id)
            if seen.head == heads.get(one.table_id, None)
        )

    def held_lost(self, format_id: str | None) -> TableRow | None:
        """A table under legal hold with this UUID that is not to be seen where it was."""
        lost = not_seen(self.places.twins(format_id), self.alive, self._sightings.surely_gone)
        rows = (self.row_of(one.table_id) for one in lost)
        return next((row for row in rows if govern(row, self.scopes).hold is not None), None)

    def outer(self, location: str) -> str | None:
        """The table that a location lies in."""
        return self._sightings.outer.get(location)

    def linked(self, location: str) -> tuple[str, ...]:
        """The folders that the one at a location leads to."""
        return self._sightings.linked.get(location, ())

    @property
    def next_number(self) -> int:
        """The number of the next row that is taken."""
        return self._next

    def row_of(self, table_id: str) -> TableRow:
        """The row with this id, as it is or as it was decided before. Raises `NotFoundError`."""
        row = self._decided.get(table_id)
        if row is None and self._same:
            row = self._sightings.rows.get(table_id)
        return row if row is not None else row_of(self._rows, table_id)

    def state_is_known(self, table_id: str, state: TableState) -> None:
        """Raises `PreconditionError` for a table that was dropped."""
        if table_id not in self._decided:
            known(self._rows, table_id, state)

    def take(self, row: TableRow) -> None:
        """Count a decided row in later decisions."""
        self._decided[row.table_id] = row
        self._next = max(self._next, row.row + 1)
        self.places.add(row)
        if row.location is not None:
            self.alive.add(row.location)


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """Whose row it is: one that stands as it is, one that moves here, or a new one, which is to be judged yet."""

    row: TableRow
    verdict: AlreadyManaged | Moved | New


@dataclass(frozen=True, kw_only=True, slots=True)
class Registration:
    """A registration that somebody asks for, and what was read at its place."""

    registry: Registry
    wanted: WantedTable
    place: NamedLocation
    format: TableFormat | None
    """None where the place is managed already and nobody had to read it."""
    seen: Observation | LogProblem | None
    """Likewise."""
    actor: Actor
    source: Source
    table_id: str
    at: datetime
    is_named_twice: bool = True
    """Where the place is managed by another entry of a catalog, or by its folder: whether that still names it."""

    @property
    def format_id(self) -> str | None:
        """The UUID that was read."""
        return self.seen.format_id if isinstance(self.seen, Observation) else None

    def decide(self, round_: RegistrationAttempt) -> Decided:
        """Who the table is. Raises `RefusedError` for what cannot be a row, `StaleDecision`."""
        location = self.place.location
        round_.require_sight_of(self.format_id)
        verdict = self._identified(round_)
        match verdict:
            case AlreadyManaged(table_id=table_id, state=state):
                round_.state_is_known(table_id, state)
                row = round_.row_of(table_id)
                if self.place.address in (None, address_in(row.properties)):
                    return Decided(row=row, verdict=verdict)
                return Decided(
                    row=self._renamed(row, self.place.address, round_),
                    verdict=Moved(table_id=table_id, from_location=location),
                )
            case Moved(table_id=table_id) if not self.wanted.copy:
                check_nesting(round_.places, location, outer=round_.outer(location), but=table_id)
                return Decided(row=self._moved(round_, verdict), verdict=verdict)
            case Moved() | OneOfSeveral() | Copy() if self.wanted.copy and (
                held := round_.held_lost(self.format_id)
            ):
                raise held_copy(held, location)
            case OneOfSeveral(lost=lost) if not self.wanted.copy:
                raise one_of(lost, location)
            case New() if self.wanted.is_known:
                raise from_nowhere(self.seen, location)
            case Copy(name=twin, location=other, lost=lost) if not self.wanted.copy:
                raise RefusedError(
                    f"{location} carries the same table UUID as {twin} at {other}.",
                    hint=f"If it is a copy that shall live its own life, repeat with --copy{or_one_of(lost)}.",
                )
            case _:
                check_nesting(round_.places, location, outer=round_.outer(location))
                return Decided(row=self._new(round_), verdict=New())

    def _identified(self, round_: RegistrationAttempt) -> Verdict:
        """Who it is. What is said to be a copy is none of those that are no longer where they were, unless there is
        but one of them."""
        name, told = self.wanted.name, not self.wanted.copy
        return identify(
            round_.places,
            self.place.location,
            self.format_id,
            alive=round_.alive,
            now=self.at,
            name=(self.place.name if name is None else parse_name(name)) if told else None,
            at_head=round_.at_head(self.seen) if told and isinstance(self.seen, Observation) else (),
        )

    def _new(self, round_: RegistrationAttempt) -> TableRow:
        wanted, location = self.wanted, self.place.location
        if self.seen is None or self.format is None:
            raise ConflictError(f"{location} has just left management.")
        row = self.registry.new_row(
            round_.places,
            number=round_.next_number,
            name=wanted_name(wanted.name, self.place)
            or free_name(round_.places, location, asked_for=round_.asked_for),
            location=location,
            owner=wanted.owner,
            source=self.source,
            actor=self.actor,
            table_id=self.table_id,
            at=self.at,
        )
        require(self.actor, Permission.REGISTER, row)
        read = _as_read(row, self.format, self.seen, round_.linked(location))
        if self.place.entry is not None and self.place.address is None:
            read = with_entry(read, self.place.name)
        if self.place.address is not None:
            read = replace(read, properties={**read.properties, **as_properties(self.place.address)})
        return with_policy(read, wanted.policy, round_.scopes, actor=self.actor) if wanted.policy else read

    def _renamed(self, row: TableRow, address: CatalogAddress, round_: RegistrationAttempt) -> TableRow:
        """The row of the table at this place under the entry that it has by now."""
        assert self.seen is not None, "what has another entry than its row was read"
        if self.is_named_twice:
            raise second_name(row, address)
        twins = () if row.format_ids else round_.places.twins(self.format_id)
        require_same(row, address, self.seen, twins)
        require(self.actor, Permission.REGISTER, row)
        return self.registry.touched(under_entry(row, address, self.seen), self.actor, at=self.at)

    def _moved(self, round_: RegistrationAttempt, verdict: Moved) -> TableRow:
        row = round_.row_of(verdict.table_id)
        require(self.actor, Permission.REGISTER, row)
        is_here = any(one.table_id == row.table_id for one in round_.places.at(self.place.location))
        told = self.wanted.moved or is_here or round_.is_surely_gone(row.location)
        moved = moved_to(row, self.place.location, told=told)
        if verdict.is_back:
            refuse_lost_name(row, self.place.location, round_.places.named(row.name))
            moved = taken_back(moved)
        return self.registry.touched(moved, self.actor, at=self.at)


def names_of(wanted: Iterable[WantedTable]) -> frozenset[str]:
    """The names that are asked for: given ones, and those by which the metastore knows the table."""
    said = (one.name if one.name is not None else one.where for one in wanted)
    return frozenset(name for name in map(parse_name, said) if name is not None)


def refuse_other_values(row: TableRow, wanted: WantedTable) -> None:
    """Raise `RefusedError` where a managed table has another name, owner or policy than is wanted."""
    said = []
    if wanted.name is not None and parse_name(wanted.name) != row.name:
        said.append(f"its name is {row.name}")
    if wanted.owner is not None and wanted.owner != row.owner:
        said.append(f"its owner is {row.owner or 'nobody'}")
    for key, value in wanted.policy.items():
        now = getattr(row.policy, policy_key(key).field)
        if now != value:
            said.append(f"its {key} is {format_value(key, now) or 'not set'}")
    if said:
        raise RefusedError(
            f"{row.location} is managed already, and {', '.join(said)}.",
            hint="`tables rename`, `tables owner` and `tables policy set` change what is managed.",
        )


def sight(
    registry: Registry,
    rows: Rows[TableRow],
    asked: Sequence[Registration],
    *,
    failed: Callable[[Registration, LakewardenError], None] | None = None,
) -> Sightings:
    """Look at the places of tables whose UUIDs those that are asked for carry as well.

    `failed` is told for which of them that was not possible; without that, the error is raised. For what is said to be
    a copy it does not matter: it becomes a table of its own, unless another one may have moved away from its hold.
    """
    moment, readers = registry.moment(), {one.format: one for one in registry.readers}
    places = places_of(rows, moment.spelling)
    alive, gone, outer, above = set[str](), set[str](), dict[str, str](), registry.outer()
    for one in asked:
        reader = readers[one.seen.format] if isinstance(one.seen, Observation) else None
        try:
            around = above(one.place.location)
            if around is not None:
                outer[one.place.location] = around
            for twin in (held.location or "" for held in places.twins(one.format_id)):
                if twin in alive or twin in gone:
                    continue
                found = moment.place(twin).presence(
                    registry.storage(twin), registry.is_table if reader is None else reader.is_table
                )
                if found is Presence.THERE:
                    alive.add(twin)
                elif found is Presence.GONE:
                    gone.add(twin)
        except LakewardenError as error:
            if one.wanted.copy:
                continue
            if failed is None:
                raise
            failed(one, error)
    here = {held.table_id for one in asked for held in places.at(one.place.location)}
    return Sightings(
        at=rows.at,
        places=places,
        rows={row.table_id: row for row in rows.stored((one,) for one in here).values()},
        outer=outer,
        linked={one.place.location: linked_folders(one.place.location) for one in asked},
        heads=_heads(registry, places, asked),
        alive=frozenset(alive),
        surely_gone=frozenset(gone),
    )


def _heads(registry: Registry, places: RegisteredPlaces, asked: Iterable[Registration]) -> Mapping[str, str]:
    """The heads on record of tables with one UUID, wherever that alone does not say which of them has moved."""
    several = (twins for one in asked if len(twins := places.twins(one.format_id)) > 1)
    wanted = {held.table_id for twins in several for held in twins}
    known = registry.store.rows(HEALTH).stored((one,) for one in wanted) if wanted else {}
    return {row.table_id: row.head for row in known.values() if row.head is not None}


def _as_read(
    row: TableRow, format_: TableFormat, seen: Observation | LogProblem, linked: Iterable[str]
) -> TableRow:
    """The row with what the table's log says of it: format, UUID, and where else its files lie."""
    if isinstance(seen, LogProblem):
        return replace(row, format=format_)
    properties = with_reach(row.properties, row.location or "", seen.elsewhere)
    properties = with_links(properties, linked)
    return replace(row, format=format_, format_ids=(seen.format_id,), properties=properties)
