"""What every use case of the registry shares: its ports, finding rows, judging what was read."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import LakewardenError, NotFoundError, PreconditionError, RefusedError
from lakewarden.catalog.formats.outer_tables import Outer
from lakewarden.catalog.formats.port import LogProblem, Observation, TableReader
from lakewarden.catalog.formats.registry import is_any_table, spec_of
from lakewarden.catalog.metastore.lookup import (
    NamedLocation,
    name_from_location,
    parse_name,
    refuse_closed,
    refuse_if_absent,
)
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.metastore.table_heads import TableHeads, address_in
from lakewarden.catalog.model.identity import INDEX_COLUMNS, Follow, Held, RegisteredPlaces
from lakewarden.catalog.model.rows import GONE, Finding, HealthRow, RowKind, Source, TableRow, TableState
from lakewarden.catalog.named_catalogs.port import NamedCatalogs
from lakewarden.catalog.observation.health import health_of, with_verdict
from lakewarden.catalog.policy.access import Actor, Permission, require
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.policy.original_properties import remembering
from lakewarden.catalog.policy.scopes import Governed, govern, scopes_by_name
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.system.port import HEALTH, TABLES, Key, Rows, SystemStore

__all__ = [
    "Inspect",
    "ReadTable",
    "Registered",
    "Registry",
    "free_name",
    "governed_in",
    "known",
    "next_number",
    "places_of",
    "refuse_taken",
    "row_of",
    "wanted_name",
]

Inspect = Callable[[TableRow, EffectivePolicy, Observation | LogProblem], tuple[Finding, ...]]
"""On-change validation: findings for a table that was just read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Registered:
    """What a registration came to."""

    row: TableRow
    health: HealthRow | None
    """What the row was registered with; None while converting."""
    created: bool
    """The row was written now."""
    moved: bool = False
    """The table was known before, at another place."""
    unrecorded: LakewardenError | None = None
    """Why there is no health on record yet, though the table is managed: the next sweep looks at it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadTable:
    """A managed table with what was read of it and what validation found."""

    row: TableRow
    seen: Observation | LogProblem
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Registry:
    """The registry's ports."""

    store: SystemStore
    readers: tuple[TableReader, ...]
    """Tried in order."""
    metastore: Metastore | None
    """None where none is configured."""
    clock: Clock
    inspect: Inspect
    storage: Callable[[str], StorageOptions]
    heads: TableHeads | None = None
    """What the readers ask of catalogs."""
    catalogs: NamedCatalogs | None = None
    """None where none is declared."""
    moment: Callable[[], Moment] = Moment
    """Compares places, as they are now."""

    def resolve(self, where: str, *, gone: bool = False) -> TableRow:
        """The row that a name, path or table_id means; `gone` includes dropped ones. Raises `NotFoundError`
        for what nobody knows, `PreconditionError` for what was dropped."""
        matches = self._matches(self.store.rows(TABLES), where)
        live = [row for row in matches if gone or row.state not in GONE]
        if live:
            return max(live, key=lambda row: (row.state not in GONE, row.row))
        if matches:
            raise _gone(max(matches, key=lambda row: row.row))
        raise NotFoundError(
            f"{where} is not a managed table.",
            hint="`lakewarden tables list` shows those that are.",
            unknown=where,
        )

    def get(self, table_id: str) -> TableRow:
        """The row with this `table_id`. Raises `NotFoundError`."""
        return row_of(self.store.rows(TABLES), table_id)

    def reader_at(
        self, location: str, name: str | None = None, *, by_entry: bool | None = None
    ) -> TableReader:
        """The reader of the table at a location. Raises `RefusedError` where there is none.

        What goes by an entry that keeps its head (`by_entry`; None: as its row says) is a table of such a format,
        whatever else lies in the folder, such as the log of another format.
        """
        if by_entry is None:
            by_entry = self.heads is not None and self.heads.address(location) is not None
        for reader in self.readers:
            if (not by_entry or spec_of(reader.format).located is not None) and reader.is_table(location):
                return reader
        refuse_if_absent(location, self.storage(location))
        raise RefusedError(
            f"{name or location} is not a table of a format that lakewarden knows.",
            hint="A Parquet table becomes one with `lakewarden tables convert`.",
        )

    def is_table(self, location: str) -> bool:
        """Whether any format knows a table at this location."""
        return is_any_table(self.readers, location)

    def outer(self) -> Outer:
        """Tells of the table that a location lies in, as it is now."""
        return Outer(self.storage)

    def record_health(
        self,
        row: TableRow,
        seen: Observation | LogProblem,
        findings: tuple[Finding, ...] | None = None,
    ) -> HealthRow:
        """Store what was read as the table's health, with what validation has just found of it, or finds now."""
        if findings is None:
            findings = self.inspect(row, governed_in(self.store.rows(TABLES), row).policy, seen)
        read = ReadTable(row=row, seen=seen, findings=findings)
        [health] = self.record_healths([read], before=self.store.rows(HEALTH), because=f"observed {row.name}")
        return health

    def quarantine(
        self, row: TableRow, seen: LogProblem | Observation, findings: tuple[Finding, ...]
    ) -> bool:
        """Stop all work on an active table in which a check has just found an error; False if there is none. The next
        sweep that finds it sound releases it."""
        if row.state is not TableState.ACTIVE or with_verdict(row, findings).state is row.state:
            return False

        def stopped(rows: Rows[TableRow]) -> Iterable[TableRow]:
            current = with_verdict(row_of(rows, row.table_id), findings)
            return [replace(current, updated_at=self.clock.now(), updated_by="lakewarden")]

        self.store.edit(TABLES, stopped, because=f"validated {row.name}")
        self.record_health(row, seen, findings)
        return True

    def record_healths(
        self, read: Sequence[ReadTable], *, before: Rows[HealthRow], because: str
    ) -> list[HealthRow]:
        """Store what was read of several tables as their health, in one commit; the health that they have then.

        `before` is health as it was when they were read: what others have written since is newer, and stays.
        """
        scopes = scopes_by_name(self.store.rows(TABLES).find(kind=RowKind.SCOPE))
        keys, now = [(one.row.table_id,) for one in read], self.clock.now()
        known, newer = before.stored(keys), dict[Key, HealthRow]()
        healths = {
            key: health_of(
                one.row,
                govern(one.row, scopes).policy,
                one.seen,
                one.findings,
                now=now,
                before=known.get(key),
            )
            for key, one in zip(keys, read, strict=True)
        }

        def change(rows: Rows[HealthRow]) -> Iterable[HealthRow]:
            held = rows.stored(keys)
            changed = {key for key in keys if held.get(key) != known.get(key)}
            newer.clear()
            newer.update({key: held[key] for key in changed & held.keys()})
            return [health for key, health in healths.items() if key not in changed]

        if healths:
            self.store.edit(HEALTH, change, because=because)
        return [newer.get(key, health) for key, health in healths.items()]

    def new_row(
        self,
        places: RegisteredPlaces,
        *,
        number: int,
        name: str,
        location: str,
        owner: str | None,
        source: Source,
        actor: Actor,
        table_id: str,
        at: datetime,
    ) -> TableRow:
        """A fresh row with this number. Raises `RefusedError` if the name is taken, or a system table's."""
        refuse_closed(name)
        refuse_taken(places.named(name))
        made = TableRow(
            row=number,
            table_id=table_id,
            name=name,
            location=location,
            owner=owner or actor.name,
            source=source,
            registered_at=at,
            registered_by=actor.name,
            updated_at=at,
            updated_by=actor.name,
        )
        return remembering(made, at)

    def change_row(
        self,
        row: TableRow,
        actor: Actor,
        permission: Permission,
        change: Callable[[TableRow], TableRow],
        *,
        because: str,
    ) -> TableRow:
        """Change one row by compare-and-set if `actor` may; `change` is pure and may raise."""

        def apply(rows: Rows[TableRow]) -> Iterable[TableRow]:
            current = row_of(rows, row.table_id)
            require(actor, permission, current)
            changed = change(current)
            return [self.touched(changed, actor)] if changed != current else []

        self.store.edit(TABLES, apply, because=because)
        return self.get(row.table_id)

    def touched(self, row: TableRow, actor: Actor, *, at: datetime | None = None) -> TableRow:
        """The row, marked as changed by `actor`, now or at that time."""
        return replace(row, updated_at=at or self.clock.now(), updated_by=actor.name)

    def _matches(self, rows: Rows[TableRow], where: str) -> list[TableRow]:
        by_id = rows.get(where)
        if by_id is not None:
            return [by_id]
        name = parse_name(where)
        if name is not None:
            return [row for row in rows.find(name=name) if row.kind is RowKind.TABLE]
        address = None if self.catalogs is None else self.catalogs.address(where)
        if address is not None:
            return [row for row in rows.find(format="iceberg") if address_in(row.properties) == address]
        location = canonical(where)
        found = [row for row in rows.find(location=location) if row.kind is RowKind.TABLE]
        return found or [
            row_of(rows, held.table_id) for held in places_of(rows, self.moment().spelling).at(location)
        ]


def row_of(rows: Rows[TableRow], table_id: str) -> TableRow:
    """The row with this id. Raises `NotFoundError`."""
    row = rows.get(table_id)
    if row is None:
        raise NotFoundError(
            f"There is no managed table with the id {table_id}.", hint="It may have been removed."
        )
    return row


def governed_in(rows: Rows[TableRow], row: TableRow) -> Governed:
    """A table under the scopes that one version of `lakewarden.tables` has."""
    return govern(row, scopes_by_name(rows.find(kind=RowKind.SCOPE)))


def next_number(rows: Rows[TableRow]) -> int:
    """The next value of column `row`, assigned in order."""
    highest = rows.highest("row")
    return 0 if highest is None else highest + 1


def known(rows: Rows[TableRow], table_id: str, state: TableState) -> tuple[TableRow, ...]:
    """No change for a table that is managed already. Raises `PreconditionError` if it was dropped."""
    if state in GONE:
        raise _gone(row_of(rows, table_id))
    return ()


def _gone(row: TableRow) -> PreconditionError:
    """The answer of every command that needs a managed table and finds a dropped one: it is on record, and may come
    back, so that the command could succeed then."""
    if row.state is TableState.PURGED:
        return PreconditionError(
            f"{row.name} was dropped from management, and its files were deleted.",
            hint="What lies at its place now comes under management with `lakewarden tables register`.",
        )
    return PreconditionError(
        f"{row.name} was dropped from management.",
        hint=f"`lakewarden tables undrop {row.name}` takes it back.",
    )


def refuse_taken(holders: Iterable[TableRow | Held], *, except_for: str | None = None) -> None:
    """Raise `RefusedError` if another live table is among those that have, or had, a name."""
    for one in holders:
        if one.state not in GONE and one.table_id != except_for:
            raise RefusedError(
                f"The name {one.name} is taken by the table at {one.location}.",
                hint="Choose another with --name.",
            )


def wanted_name(name: str | None, place: NamedLocation) -> str | None:
    """The name asked for, else the metastore's, else None. Raises `RefusedError` if it is no table name."""
    if name is None:
        return place.name
    parsed = parse_name(name)
    if parsed is None:
        raise RefusedError(f"'{name}' is not a table name.", hint="Write db.table.")
    return parsed


def free_name(places: RegisteredPlaces, location: str, *, asked_for: Collection[str] = ()) -> str:
    """A name made of the location that no row has yet, and nobody has `asked_for`: with a number where the bare one is
    taken."""

    def is_taken(name: str) -> bool:
        return name in asked_for or bool(places.named(name))

    base = name_from_location(location)
    if not is_taken(base):
        return base
    taken, free = 1, 2
    while is_taken(f"{base}_{free}"):
        taken, free = free, 2 * free
    while free - taken > 1:
        between = (taken + free) // 2
        taken, free = (between, free) if is_taken(f"{base}_{between}") else (taken, between)
    return f"{base}_{free}"


def places_of(rows: Rows[TableRow], follow: Follow | None = None) -> RegisteredPlaces:
    """The holders of places and names on one version of `lakewarden.tables`; `follow` gives all locations of one place
    one spelling."""
    return RegisteredPlaces(rows.arrow(INDEX_COLUMNS), follow=follow or Moment().spelling)
