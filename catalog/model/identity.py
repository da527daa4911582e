"""Is this table one we know? Same, moved, replaced, copied, nested or new: decided purely from rows and two facts.

Identity is the `table_id` we minted. A format's own UUID and the location are attributes that change: CREATE OR
REPLACE and RESTORE change the UUID while the log goes on, a move changes the location, a copy repeats the UUID.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.model.rows import RowKind, TableState

__all__ = [
    "INDEX_COLUMNS",
    "Copy",
    "Known",
    "Moved",
    "New",
    "Verdict",
    "ancestors",
    "check_nesting",
    "identify",
    "locations_with",
]

INDEX_COLUMNS = ("table_id", "kind", "name", "location", "state", "format_ids")
_GONE = (TableState.DROPPED.value, TableState.PURGED.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """The location is that of a managed table already (dropped ones included: `state` tells)."""

    table_id: str
    state: TableState


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """A managed table with this UUID is no longer where it was: this is it."""

    table_id: str
    from_location: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """A managed table with this UUID is still alive elsewhere."""

    table_id: str
    name: str
    location: str


@dataclass(frozen=True, kw_only=True, slots=True)
class New:
    """Nobody we know."""


Verdict = Known | Moved | Copy | New


def ancestors(location: str) -> tuple[str, ...]:
    """Every folder above a canonical location, nearest first, down to the storage's root."""
    scheme, _, path = location.partition("://")
    parts = path.split("/")
    return tuple(f"{scheme}://{'/'.join(parts[:depth])}" for depth in range(len(parts) - 1, 0, -1))


def identify(index: pa.Table, location: str, format_id: str | None, *, alive: Sequence[str]) -> Verdict:
    """Decide who a table at a canonical `location` with UUID `format_id` is.

    `index` holds `INDEX_COLUMNS` of `lakewarden.tables`; `alive` are those locations of tables with the same UUID
    that still hold a table (the caller looked).
    """
    tables = index.filter(pc.equal(index["kind"], RowKind.TABLE.value))
    tables = tables.filter(
        pc.not_equal(tables["state"], TableState.PURGED.value)
    )  # history: its place is free
    here = tables.filter(pc.equal(tables["location"], location)).to_pylist()
    here.sort(key=lambda row: row["state"] in _GONE)
    if here:
        return Known(table_id=here[0]["table_id"], state=TableState(here[0]["state"]))
    twins = locations_with(tables, format_id)
    living = [twin for twin in twins if twin["location"] in alive]
    if living:
        return Copy(table_id=living[0]["table_id"], name=living[0]["name"], location=living[0]["location"])
    if twins:
        return Moved(table_id=twins[0]["table_id"], from_location=twins[0]["location"])
    return New()


def locations_with(index: pa.Table, format_id: str | None) -> list[dict[str, str]]:
    """Live rows (`table_id`, `name`, `location`) whose newest UUID is `format_id`."""
    if format_id is None:
        return []
    newest = [ids[-1] if ids else None for ids in index.column("format_ids").to_pylist()]
    mine = index.filter(pa.array([one == format_id for one in newest], pa.bool_()))
    live = mine.filter(pc.invert(pc.is_in(mine["state"], value_set=pa.array(_GONE, pa.string()))))
    twins: list[dict[str, str]] = live.select(["table_id", "name", "location"]).to_pylist()
    return twins


def check_nesting(index: pa.Table, location: str) -> None:
    """Refuse a location inside another managed table's, or around one. One location, one table."""
    live = index.filter((pc.field("kind") == RowKind.TABLE.value) & ~pc.field("state").isin(_GONE))
    above = live.filter(pc.is_in(live.column("location"), pa.array(ancestors(location), pa.string())))
    for row in above.to_pylist():
        raise RefusedError(
            f"{location} lies inside the managed table {row['name']} ({row['location']}).",
            hint="Move one of them: a vacuum of the outer table would delete the inner one's files.",
        )
    below = live.filter(pc.starts_with(live.column("location"), location.rstrip("/") + "/"))
    for row in below.to_pylist():
        raise RefusedError(
            f"The managed table {row['name']} ({row['location']}) lies inside {location}.",
            hint="Move one of them: a vacuum of the outer table would delete the inner one's files.",
        )
