"""What stood in a table's properties before lakewarden set them:
kept in the table's row, given back when it leaves. Pure.

`before.NAME` holds the value that stood there (JSON; null: it was not set), `ours.NAME` the values that we have set
since. Somebody else changed a property with any other value after us, and that value stands. If the row remembers
everything, a property unknown to the row stands, too.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.model.rows import GONE, RowKind, TableRow, TableState
from lakewarden.catalog.model.unread_lineage import is_given_up, is_lineage_unread

__all__ = [
    "GiveBack",
    "OriginalProperty",
    "Owed",
    "awaits_lineage",
    "forgotten",
    "give_back",
    "is_leaving",
    "is_looked_after",
    "kept_of",
    "leaving",
    "leaving_since",
    "owed_to",
    "remembering",
    "remembers_everything",
    "with_ours",
]

_BEFORE: Final = "before."
_OURS: Final = "ours."
_PENDING: Final = "leave.pending"
"""Row property of a dropped table whose properties have not been given back yet: since when (ISO 8601, UTC)."""
_EVERYTHING: Final = "before"
"""Row property of a table of which we have set nothing that the row does not remember: its value says since when."""
_MOST: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class OriginalProperty:
    """One property: what stood there before us (None: nothing), and what we have set, newest last."""

    name: str
    before: str | None
    ours: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Owed:
    """What a table that leaves is to get back."""

    kept: tuple[OriginalProperty, ...]
    format_id: str | None
    """Its UUID as we last knew it; None: never known."""

    def is_for(self, format_id: str) -> bool:
        """Whether the original properties belong to the table with this UUID: one made anew at its place is somebody
        else's."""
        return self.format_id is None or self.format_id == format_id


@dataclass(frozen=True, kw_only=True, slots=True)
class GiveBack:
    """What giving back means for a table as it is: properties to set, to unset,
    and those that somebody changed since."""

    sets: tuple[tuple[str, str], ...] = ()
    unsets: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sets or self.unsets)

    @property
    def sentence(self) -> str:
        """The effect in words."""
        parts = [f"{name} = {value}" for name, value in self.sets]
        parts += [f"{name} unset" for name in self.unsets]
        said = "given back: " + ", ".join(parts) if parts else "no property of ours was left to give back"
        return f"{said}; changed by others since, left alone: {', '.join(self.left)}" if self.left else said

    def by_hand(self, name: str) -> str:
        """The statements that do the same."""
        unset = ", ".join(f"'{one}'" for one in self.unsets)
        pairs = ", ".join(f"'{key}' = '{value}'" for key, value in self.sets)
        said = [f"ALTER TABLE {name} UNSET TBLPROPERTIES ({unset});"] if unset else []
        return " ".join([*said, f"ALTER TABLE {name} SET TBLPROPERTIES ({pairs});"] if pairs else said)


def kept_of(row: TableRow) -> tuple[OriginalProperty, ...]:
    """What a row remembers, by name."""
    names = sorted(
        key.removeprefix(_BEFORE)
        for key in row.properties
        if key.startswith(_BEFORE) and f"{_OURS}{key.removeprefix(_BEFORE)}" in row.properties
    )
    return tuple(
        OriginalProperty(
            name=name,
            before=json.loads(row.properties[f"{_BEFORE}{name}"]),
            ours=tuple(json.loads(row.properties[f"{_OURS}{name}"])),
        )
        for name in names
    )


def with_ours(
    row: TableRow,
    wanted: Iterable[tuple[str, str]],
    present: Mapping[str, str],
    traced: Iterable[OriginalProperty] = (),
) -> TableRow:
    """The row of a table with properties `present` on which we are about to set `wanted`.

    What is remembered stays unless somebody has changed the property since: then that is what stood there before
    us. `traced`: what the table's log tells of earlier times, for properties that the row knows nothing of.
    """
    known = {one.name: one for one in (*traced, *kept_of(row))}
    kept = []
    for name, value in wanted:
        now, before = present.get(name), known.get(name)
        if before is None or (now != before.before and now not in before.ours):
            before = OriginalProperty(name=name, before=now, ours=() if before is None else before.ours)
        ours = tuple(dict.fromkeys((*(one for one in before.ours if one != value), value)))
        kept.append(replace(before, ours=ours[-_MOST:]))
    return _with(row, kept)


def leaving(row: TableRow, kept: Iterable[OriginalProperty], since: str) -> TableRow:
    """The row of a table that is dropped while something is to be given back."""
    marked = _with(row, kept)
    return replace(marked, properties={**marked.properties, _PENDING: since})


def remembering(row: TableRow, since: datetime) -> TableRow:
    """The row of a table on which nothing of ours stands that the row does not remember:
    one that is new to us, or has been given everything back."""
    return replace(row, properties={**row.properties, _EVERYTHING: f"everything since {since.isoformat()}"})


def remembers_everything(row: TableRow) -> bool:
    """Whether what the row does not remember is not ours. Rows of versions that remembered nothing do not say so."""
    return _EVERYTHING in row.properties


def is_leaving(row: TableRow) -> bool:
    """Whether a table was dropped and still waits for its properties to be given back."""
    return leaving_since(row) is not None


def leaving_since(row: TableRow) -> str | None:
    """Which drop a table waits for its properties after: when it was, as `leaving` was told. None: it does not."""
    return row.properties.get(_PENDING) if row.state is TableState.DROPPED else None


def is_looked_after(row: TableRow) -> bool:
    """Whether there is anything to plan for a row's table, and its promise counts for what it was made from:
    the table is managed, waits to be purged, or is owed its properties."""
    gone = row.state in GONE and row.state is not TableState.PURGING and not is_leaving(row)
    return row.kind is RowKind.TABLE and not gone


def awaits_lineage(row: TableRow) -> bool:
    """Whether others wait until somebody has read a table's log for its lineage: its promise counts for what it was
    made from, and if it was dropped, that of tables that were made from it. Nobody waits for the log of a table that
    is gone if it is not there any more, or has been given up."""
    is_lost = row.state is TableState.PURGED or (row.state in GONE and is_given_up(row.properties))
    return row.kind is RowKind.TABLE and is_lineage_unread(row.properties) and not is_lost


def owed_to(row: TableRow) -> Owed | None:
    """What is to be given back to a table that leaves; None if it does not, or has been given all."""
    if not is_leaving(row):
        return None
    return Owed(kept=kept_of(row), format_id=row.format_ids[-1] if row.format_ids else None)


def forgotten(row: TableRow, *, pending_only: bool = False) -> TableRow:
    """The row without its memory: everything was given back. `pending_only`:
    the table stays, and so does its memory."""
    prefixes = (_PENDING,) if pending_only else (_PENDING, _BEFORE, _OURS)
    kept = {key: value for key, value in row.properties.items() if not key.startswith(prefixes)}
    return replace(row, properties=kept)


def give_back(kept: Iterable[OriginalProperty], present: Mapping[str, str]) -> GiveBack:
    """The changes that give a table with the properties `present` its original properties back."""
    sets, unsets, left = [], [], []
    for one in kept:
        now = present.get(one.name)
        if now == one.before:
            continue
        if now not in one.ours:
            left.append(one.name)
        elif one.before is None:
            unsets.append(one.name)
        else:
            sets.append((one.name, one.before))
    return GiveBack(sets=tuple(sets), unsets=tuple(unsets), left=tuple(left))


def _with(row: TableRow, kept: Iterable[OriginalProperty]) -> TableRow:
    entries = {}
    for one in kept:
        entries[f"{_BEFORE}{one.name}"] = json.dumps(one.before)
        entries[f"{_OURS}{one.name}"] = json.dumps(one.ours)
    return replace(row, properties={**row.properties, **entries})
