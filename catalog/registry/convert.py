"""Convert: a Parquet table becomes a managed Delta table. The row comes first, so that no crash loses the intent."""

from collections.abc import Iterable
from dataclasses import replace

from lakewarden.catalog.access import Actor, Deed, require
from lakewarden.catalog.conversion import Conversion
from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.base import Observation
from lakewarden.catalog.identity import INDEX_COLUMNS, Known, check_nesting, identify
from lakewarden.catalog.model import PolicySettings, Source, TableRow, TableState
from lakewarden.catalog.places import refuse_if_absent, resolve
from lakewarden.catalog.registry.desk import Desk, Registered, free_name, known, row_of, wanted_name
from lakewarden.catalog.system.base import TABLES, Rows

__all__ = ["begin_conversion", "conversion_failed", "converted"]


def begin_conversion(
    desk: Desk,
    where: str,
    *,
    actor: Actor,
    name: str | None = None,
    owner: str | None = None,
    policy: PolicySettings | None = None,
    partitioned_by: tuple[tuple[str, str], ...] = (),
    statistics: bool = True,
) -> Registered:
    """Write the row of a table that is about to be converted (state `converting`); a run does the rest.

    A managed table is returned as it is; a table that is no longer Parquet and not managed is refused with the hint
    to register it. Repeating an interrupted conversion takes the row that is there.
    """
    place = resolve(where, desk.metastore)
    refuse_if_absent(place.location, desk.storage(place.location))
    conversion = Conversion(
        location=place.location, name=place.name, partitioned_by=partitioned_by, statistics=statistics
    )

    def change(rows: Rows[TableRow]) -> Iterable[TableRow]:
        index = rows.arrow(INDEX_COLUMNS)
        found = identify(index, place.location, None, alive=())
        if isinstance(found, Known):
            return known(rows, found.table_id, found.state)
        if desk.is_table(place.location):
            raise RefusedError(
                f"{place.name or place.location} is a table already; there is nothing to convert.",
                hint="Bring it under management with `lakewarden tables register`.",
            )
        check_nesting(index, place.location)
        row = desk.new_row(
            rows,
            name=wanted_name(name, place) or free_name(rows, place.location),
            location=place.location,
            owner=owner,
            source=Source.CONVERT,
            actor=actor,
        )
        require(actor, Deed.CONVERT, row)
        return [
            replace(
                row,
                state=TableState.CONVERTING,
                state_reason="waits for its conversion to Delta",
                policy=policy or PolicySettings(),
                properties=conversion.as_properties(),
            )
        ]

    done = desk.store.edit(TABLES, change, because=f"convert {where}")
    reach("registry.converting")
    return Registered(row=desk.resolve(place.location), health=None, created=bool(done.rows))


def converted(desk: Desk, table_id: str) -> Registered:
    """The table's log exists now: make the row active (or quarantined). Repeating it changes nothing."""
    location = desk.get(table_id).location or ""
    reader = desk.reader_at(location)
    seen = reader.observe(location)

    def change(rows: Rows[TableRow]) -> Iterable[TableRow]:
        current = row_of(rows, table_id)
        if current.state is not TableState.CONVERTING:
            return ()
        settled = replace(
            current,
            state=TableState.ACTIVE,
            state_reason=None,
            format=reader.format,
            format_ids=(seen.format_id,) if isinstance(seen, Observation) else (),
            properties=Conversion.without(current.properties),
            updated_at=desk.clock.now(),
        )
        return [desk.judge(rows, settled, seen)]

    done = desk.store.edit(TABLES, change, because="converted")
    reach("registry.converted")
    row = desk.get(table_id)
    return Registered(row=row, health=desk.record_health(row, seen), created=bool(done.rows))


def conversion_failed(desk: Desk, table_id: str, reason: str) -> None:
    """A conversion that will not succeed leaves no row behind, unless it got as far as a table log."""
    row = desk.store.rows(TABLES).get(table_id)
    if row is None or row.state is not TableState.CONVERTING:
        return
    if desk.is_table(row.location or ""):
        converted(desk, table_id)
        return

    def still_there(rows: Rows[TableRow]) -> Iterable[TableRow]:
        current = rows.get(table_id)
        return [current] if current is not None and current.state is TableState.CONVERTING else []

    desk.store.edit(TABLES, lambda _: (), delete=still_there, because=f"conversion failed: {reason}")
