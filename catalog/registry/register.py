"""Register and adopt: manage a table that exists already."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import pyarrow as pa

from lakewarden.catalog.errors import PreconditionError, RefusedError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.files_elsewhere import with_reach
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.metastore.lookup import Place, resolve
from lakewarden.catalog.model.identity import (
    INDEX_COLUMNS,
    Copy,
    Known,
    Moved,
    check_nesting,
    identify,
    locations_with,
)
from lakewarden.catalog.model.rows import Source, TableFormat, TableRow, TableState
from lakewarden.catalog.policy.access import Actor, Deed, require
from lakewarden.catalog.registry.checked_rows import LookAgain, Unchecked, settle
from lakewarden.catalog.registry.service import Desk, Registered, free_name, known, row_of, wanted_name
from lakewarden.catalog.storage.absence import is_surely_gone
from lakewarden.catalog.system.port import Rows
from lakewarden.catalog.units import sentence

__all__ = ["register"]


def register(
    desk: Desk,
    where: str,
    *,
    actor: Actor,
    name: str | None = None,
    owner: str | None = None,
    copy: bool = False,
    moved: bool = False,
    source: Source = Source.REGISTER,
) -> Registered:
    """Manage the table at a path or metastore name, observing only until a policy asks for more.

    Repeating it changes nothing; a table whose UUID is known and whose old place is gone has moved and keeps
    its row. Where the old place cannot be seen at all (its disk may be away),
    a move is followed only if `moved` says so.
    Raises `RefusedError` for what cannot be a row: nothing there, no table, nested in or around a managed table, a
    second live location with a known UUID unless `copy`.
    """
    place = resolve(where, desk.metastore)
    reader = desk.reader_at(place.location, place.name)
    seen = reader.observe(place.location)
    asked = _Asked(
        desk=desk,
        place=place,
        format=reader.format,
        seen=seen,
        actor=actor,
        name=name,
        owner=owner,
        copy=copy,
        moved=moved,
        source=source,
        table_id=uuid.uuid4().hex,
        at=desk.clock.now(),
    )
    done = settle(
        desk, lambda rows: partial(asked.decide, _look(desk, rows, seen)), seen, because=f"register {where}"
    )
    reach("registry.row")
    row = desk.resolve(place.location)
    health = desk.record_health(row, seen, done.findings)
    reach("registry.health")
    written = any(one.table_id == row.table_id for one in done.rows)
    moves = written and row.table_id != asked.table_id
    return Registered(row=row, health=health, created=written, moved=moves)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """A registration that somebody asks for, and what was read at its place."""

    desk: Desk
    place: Place
    format: TableFormat
    seen: Observation | LogProblem
    actor: Actor
    name: str | None
    owner: str | None
    copy: bool
    moved: bool
    source: Source
    table_id: str
    at: datetime

    def decide(self, sightings: "_Sightings", rows: Rows[TableRow]) -> Iterator[TableRow | Unchecked]:
        """Who the table is, on these rows of the catalog."""
        index, location = rows.arrow(INDEX_COLUMNS), self.place.location
        if not sightings.cover(index, self.seen, rows.version):
            raise LookAgain
        match identify(index, location, _format_id(self.seen), alive=sightings.alive):
            case Known(table_id=table_id, state=state):
                yield from known(rows, table_id, state)
            case Moved(table_id=table_id) if not self.copy:
                row = row_of(rows, table_id)
                require(self.actor, Deed.REGISTER, row)
                told = self.moved or row.location in sightings.surely_gone
                yield self.desk.touched(_moved(row, location, told=told), self.actor, at=self.at)
            case Copy(name=twin, location=other) if not self.copy:
                raise RefusedError(
                    f"{location} carries the same table UUID as {twin} at {other}.",
                    hint="If it is a copy that shall live its own life, repeat with --copy.",
                )
            case _:
                check_nesting(index, location)
                yield Unchecked(row=self._new(rows))

    def _new(self, rows: Rows[TableRow]) -> TableRow:
        row = self.desk.new_row(
            rows,
            name=wanted_name(self.name, self.place) or free_name(rows, self.place.location),
            location=self.place.location,
            owner=self.owner,
            source=self.source,
            actor=self.actor,
            table_id=self.table_id,
            at=self.at,
        )
        require(self.actor, Deed.REGISTER, row)
        return _as_read(row, self.format, self.seen)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sightings:
    """What the places of tables with the same UUID look like, and as of which version of `lakewarden.tables` they were
    looked at: whether a table is there, or surely nothing is."""

    version: int
    alive: tuple[str, ...] = ()
    surely_gone: tuple[str, ...] = ()

    def cover(self, index: pa.Table, seen: Observation | LogProblem, version: int) -> bool:
        """Whether they are enough to decide on; a table without twins needs none."""
        return version == self.version or not locations_with(index, _format_id(seen))


def _look(desk: Desk, rows: Rows[TableRow], seen: Observation | LogProblem) -> _Sightings:
    reader = {one.format: one for one in desk.readers}[seen.format] if isinstance(seen, Observation) else None
    twins = [twin["location"] for twin in locations_with(rows.arrow(INDEX_COLUMNS), _format_id(seen))]
    alive = tuple(twin for twin in twins if reader is not None and reader.is_table(twin))
    gone = (twin for twin in twins if twin not in alive and is_surely_gone(twin, desk.storage(twin)))
    return _Sightings(version=rows.version, alive=alive, surely_gone=tuple(gone))


def _format_id(seen: Observation | LogProblem) -> str | None:
    return seen.format_id if isinstance(seen, Observation) else None


def _moved(row: TableRow, location: str, *, told: bool) -> TableRow:
    """The row at its new place, where it was `told`, or seen, that nothing is left at the old one."""
    if row.state is TableState.PURGING:
        raise PreconditionError(
            sentence(f"{location} is {row.name}, which was dropped; {row.state_reason}"),
            hint=f"`lakewarden tables undrop {row.table_id}` first, then register it here.",
        )
    if not told:
        raise RefusedError(
            f"{location} carries the same table UUID as {row.name} at {row.location}, which cannot be seen: its disk may be away.",
            hint="If the table has moved here for good, repeat with --moved; if it is a copy, with --copy.",
        )
    aliases = tuple(dict.fromkeys((*row.aliases, row.location or "")))
    return replace(row, location=location, aliases=aliases)


def _as_read(row: TableRow, format_: TableFormat, seen: Observation | LogProblem) -> TableRow:
    """The row with what the table's log says of it: format, UUID, and where else its files lie."""
    if isinstance(seen, LogProblem):
        return replace(row, format=format_)
    properties = with_reach(row.properties, row.location or "", seen.elsewhere)
    return replace(row, format=format_, format_ids=(seen.format_id,), properties=properties)
