"""Convert: a Parquet table becomes a managed one with a log. The row comes first, so that no crash loses the intent."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from lakewarden.catalog.errors import PreconditionError, RefusedError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.files_elsewhere import with_reach
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.formats.registry import spec_of
from lakewarden.catalog.metastore.lookup import (
    NamedLocation,
    parse_name,
    place_to_manage,
    refuse_if_absent,
)
from lakewarden.catalog.metastore.table_heads import address_in, as_properties
from lakewarden.catalog.model.identity import AlreadyManaged, CatalogAddress, check_nesting, identify
from lakewarden.catalog.model.pending_conversion import Conversion, SourceFiles
from lakewarden.catalog.model.rows import DELTA, PolicySettings, Source, TableFormat, TableRow, TableState
from lakewarden.catalog.policy.access import Actor, Permission, require
from lakewarden.catalog.registry.checked_rows import Unchecked, write_checked
from lakewarden.catalog.registry.service import (
    Registered,
    Registry,
    free_name,
    known,
    next_number,
    places_of,
    row_of,
    wanted_name,
)
from lakewarden.catalog.system.port import TABLES, Rows

__all__ = ["WantedConversion", "begin_conversion", "conversion_failed", "converted", "foreseen_conversion"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedConversion:
    """What somebody asks a conversion to do."""

    name: str | None = None
    """None: the place's own."""
    owner: str | None = None
    """None: the actor."""
    policy: PolicySettings = field(default_factory=PolicySettings)
    partitioned_by: tuple[tuple[str, str], ...] = ()
    statistics: bool = True
    source: SourceFiles | None = None
    """What lies there now; other files are not converted (None: nobody looked)."""
    format: TableFormat = DELTA


def begin_conversion(registry: Registry, where: str, wanted: WantedConversion, *, actor: Actor) -> Registered:
    """Write the row of a table that is about to be converted (state `converting`); a run does the rest.

    A managed table is returned as it is; a table that is no longer Parquet and not managed is refused with the hint
    to register it. Repeating an interrupted conversion takes the row that is there, for the files that are there now;
    one that is asked for otherwise is refused.
    """
    asked = _asked(registry, where, wanted, actor)

    def change(rows: Rows[TableRow]) -> Iterable[TableRow]:
        row = _managed(rows, asked)
        if row is None:
            return [_converting(registry, rows, asked)]
        return [_asked_again(row, asked)] if row.state is TableState.CONVERTING else []

    done = registry.store.edit(TABLES, change, because=f"convert {where}")
    reach("registry.converting")
    created = any(one.table_id == asked.table_id for one in done.rows)
    return Registered(row=registry.resolve(asked.place.location), health=None, created=created)


def foreseen_conversion(
    registry: Registry, where: str, wanted: WantedConversion, *, actor: Actor
) -> TableRow:
    """The row that `begin_conversion` would write, or the one that is there. Raises what it would raise;
    writes nothing."""
    asked = _asked(registry, where, wanted, actor)
    rows = registry.store.rows(TABLES)
    row = _managed(rows, asked)
    if row is None:
        return _converting(registry, rows, asked)
    if row.state is TableState.CONVERTING:
        _asked_again(row, asked)
    return row


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """A conversion that somebody asks for, and what its place looks like: everything but the catalog."""

    place: NamedLocation
    is_table: bool
    outer: str | None
    wanted: WantedConversion
    actor: Actor
    table_id: str
    token: str
    """`Conversion.asked`."""
    at: datetime


def _asked(registry: Registry, where: str, wanted: WantedConversion, actor: Actor) -> _Asked:
    place = place_to_manage(where, registry.metastore)
    refuse_if_absent(place.location, registry.storage(place.location))
    return _Asked(
        place=place,
        is_table=registry.is_table(place.location),
        outer=registry.outer()(place.location),
        wanted=wanted,
        actor=actor,
        table_id=uuid.uuid4().hex,
        token=uuid.uuid4().hex,
        at=registry.clock.now(),
    )


def _managed(rows: Rows[TableRow], asked: _Asked) -> TableRow | None:
    """The row of a table that is managed already. Raises `PreconditionError` for one that was dropped from management,
    or whose log is gone."""
    place = asked.place
    found = identify(places_of(rows), place.location, None, alive=())
    if not isinstance(found, AlreadyManaged):
        return None
    known(rows, found.table_id, found.state)
    row = row_of(rows, found.table_id)
    if not asked.is_table and row.state is not TableState.CONVERTING:
        raise PreconditionError(
            f"{row.name} is managed at {place.location}, and its log is gone: it is no table any more.",
            hint="Bring its log back from a backup, or let it go: `lakewarden tables drop`.",
        )
    return row


def _asked_again(row: TableRow, asked: _Asked) -> TableRow:
    """A row that waits, once its conversion was asked for again. Raises `PreconditionError` where it waits for another
    one, `NotAllowedError` for somebody who may not ask."""
    require(asked.actor, Permission.CONVERT, row)
    wanted, waits = asked.wanted, Conversion.of(row)
    others = (
        ("format", wanted.format, row.format or DELTA),
        ("name", wanted.name and parse_name(wanted.name), row.name),
        ("owner", wanted.owner, row.owner),
        ("policy", wanted.policy if wanted.policy != PolicySettings() else None, row.policy),
        ("partition columns", wanted.partitioned_by or None, waits.partitioned_by),
        ("statistics", False if not wanted.statistics else None, waits.statistics),
    )
    unlike = [name for name, now, before in others if now is not None and now != before]
    if unlike:
        raise PreconditionError(
            f"{row.name} waits for its conversion to {spec_of(row.format or DELTA).label} already, "
            f"with other values for: {', '.join(unlike)}.",
            hint="Let that come to its end, or let the table go: `lakewarden tables drop`.",
        )
    again = replace(waits, source=wanted.source or waits.source, asked=asked.token)
    return replace(row, properties={**row.properties, **again.as_properties()}, updated_at=asked.at)


def _converting(registry: Registry, rows: Rows[TableRow], asked: _Asked) -> TableRow:
    place, wanted = asked.place, asked.wanted
    if asked.is_table:
        raise RefusedError(
            f"{place.name or place.location} is a table already; there is nothing to convert.",
            hint="Bring it under management with `lakewarden tables register`.",
        )
    places = places_of(rows)
    check_nesting(places, place.location, outer=asked.outer)
    row = registry.new_row(
        places,
        number=next_number(rows),
        name=wanted_name(wanted.name, place) or free_name(places, place.location),
        location=place.location,
        owner=wanted.owner,
        source=Source.CONVERT,
        actor=asked.actor,
        table_id=asked.table_id,
        at=asked.at,
    )
    require(asked.actor, Permission.CONVERT, row)
    conversion = Conversion(
        location=place.location,
        name=place.name,
        partitioned_by=wanted.partitioned_by,
        statistics=wanted.statistics,
        source=wanted.source,
        asked=asked.token,
    )
    # A format whose heads catalogs keep has them in the entry that the table has by now.
    is_kept = place.name is not None and spec_of(wanted.format).catalogued is not None
    kept_by = as_properties(CatalogAddress(entry=place.name)) if place.name is not None and is_kept else {}
    return replace(
        row,
        state=TableState.CONVERTING,
        state_reason=f"waits for its conversion to {spec_of(wanted.format).label}",
        format=None if wanted.format == DELTA else wanted.format,
        policy=wanted.policy,
        properties={**row.properties, **kept_by, **conversion.as_properties()},
    )


def converted(registry: Registry, table_id: str) -> Registered:
    """The table's log exists now: make the row active (or quarantined). Repeating it changes nothing."""
    location = registry.get(table_id).location or ""
    if registry.heads is not None:
        registry.heads.forget()
    reader = registry.reader_at(location)
    seen = reader.observe(location)

    at = registry.clock.now()

    def decide(rows: Rows[TableRow]) -> Iterator[Unchecked]:
        current = row_of(rows, table_id)
        if current.state is not TableState.CONVERTING:
            return
        yield Unchecked(
            row=replace(
                current,
                state=TableState.ACTIVE,
                state_reason=None,
                format=reader.format,
                format_ids=(seen.format_id,) if isinstance(seen, Observation) else (),
                properties=_looked_at(current, seen),
                updated_at=at,
            ),
            seen=seen,
        )

    done = write_checked(registry, lambda _: decide, because="converted")
    reach("registry.converted")
    row = registry.get(table_id)
    health = registry.record_health(row, seen, done.findings.get(table_id))
    return Registered(row=row, health=health, created=bool(done.rows))


def _looked_at(row: TableRow, seen: Observation | LogProblem) -> dict[str, str]:
    bare = Conversion.without(row.properties)
    if isinstance(seen, LogProblem):
        return bare
    return with_reach(bare, row.location or "", seen.elsewhere)


def conversion_failed(
    registry: Registry, table_id: str, reason: str, *, is_for: Callable[[TableRow], bool]
) -> None:
    """A conversion that will not succeed leaves no row behind, unless it got as far as a table log. Where that is there
    and no catalog knows it yet, the row goes on waiting: the next run finishes it, or takes it back. A row that waits
    for another conversion (`is_for`) stays."""
    row = registry.store.rows(TABLES).get(table_id)
    if row is None or row.state is not TableState.CONVERTING or not is_for(row):
        return
    if registry.is_table(row.location or ""):
        if _is_published(registry, row):
            converted(registry, table_id)
        return

    def still_there(rows: Rows[TableRow]) -> Iterable[TableRow]:
        current = rows.get(table_id)
        is_waiting = current is not None and current.state is TableState.CONVERTING and is_for(current)
        return [current] if current is not None and is_waiting else []

    registry.store.edit(TABLES, lambda _: (), delete=still_there, because=f"conversion failed: {reason}")


def _is_published(registry: Registry, row: TableRow) -> bool:
    """Whether the table that a conversion has made is there for others, where the entry of a catalog says so."""
    if registry.heads is None or address_in(row.properties) is None:
        return True
    registry.heads.forget()
    location = row.location or ""
    return isinstance(registry.reader_at(location).observe(location), Observation)
