"""What the metastore knows, or has known, of a managed table: by its names, and by its place.

That there is no entry of a table's name says something only of a table that the metastore has had under a name of its
own: one that is managed by its path, or was renamed by lakewarden alone, has never had an entry of that name.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.metastore.lookup import parse_name
from lakewarden.catalog.metastore.ownership import says_ours
from lakewarden.catalog.metastore.port import Entry, Metastore, keeps_head
from lakewarden.catalog.metastore.table_heads import address_in
from lakewarden.catalog.model.identity import Follow
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.storage.file_store import as_hadoop_says, spelled

__all__ = ["ENTERED", "entry_at_place", "has_had_entry", "is_at", "is_known", "is_renamed", "with_entry"]

ENTERED: Final = "metastore.entry"
"""Row property: the name by which the metastore was last seen to have the table at its place."""


def with_entry(row: TableRow, name: str | None) -> TableRow:
    """The row of a table that the metastore has under this name at its place; None: nothing new is known."""
    if name is None or row.properties.get(ENTERED) == name:
        return row
    return replace(row, properties={**row.properties, ENTERED: name})


def has_had_entry(row: TableRow, name: str | None = None) -> bool:
    """Whether the metastore is known to have had the table: under this name, or (None) any."""
    if name is None:
        return ENTERED in row.properties or address_in(row.properties) is not None
    return row.properties.get(ENTERED) == name


def entry_at_place(metastore: Metastore, row: TableRow, *, follow: Follow) -> str | None:
    """The table's name, where the metastore has it under that at its place and the row does not say so yet. Raises
    `UnavailableError`."""
    if address_in(row.properties) is not None or has_had_entry(row, row.name):
        return None
    entry = _entry(metastore, row.name)
    return row.name if entry is not None and is_at(entry.location, row.location, follow=follow) else None


def is_known(metastore: Metastore, row: TableRow, *, installation: str | None, follow: Follow) -> bool:
    """Whether an entry is left of the table: one of its name, one of an earlier name that is still its own, or any
    that says that it lies at its place. Raises `UnavailableError`."""
    if _entry(metastore, row.name) is not None:
        return True
    earlier = set(_earlier_names(row)) - {row.name}
    for name in sorted(earlier):
        entry = _entry(metastore, name)
        if entry is not None and (
            is_at(entry.location, row.location, follow=follow) or says_ours(entry, row.table_id, installation)
        ):
            return True
    databases = {name.partition(".")[0] for name in earlier | {row.name}}
    return any(
        is_at(location, row.location, follow=follow)
        for database in sorted(databases)
        for location in metastore.locations(database).values()
    )


def is_renamed(metastore: Metastore, row: TableRow, name: str, *, follow: Follow) -> bool:
    """Whether the metastore, which has had the table under the row's name, has it at its place under this name now, and
    under the row's nothing or another table. Raises `UnavailableError`."""
    if name == row.name or address_in(row.properties) is not None or not has_had_entry(row, row.name):
        return False
    entry = _entry(metastore, name)
    if entry is None or keeps_head(entry) or not is_at(entry.location, row.location, follow=follow):
        return False
    own = _entry(metastore, row.name)
    return own is None or not is_at(own.location, row.location, follow=follow)


def is_at(told: str | None, location: str | None, *, follow: Follow) -> bool:
    """Whether a location as an entry spells it is the place of this one; `follow` gives all locations of one place one
    spelling."""
    if not told or location is None:
        return False
    try:
        return follow(spelled(as_hadoop_says(told))) == follow(location)
    except UsageError:
        return False


def _earlier_names(row: TableRow) -> Iterator[str]:
    for name in (row.properties.get(ENTERED), *row.aliases):
        parsed = None if name is None else parse_name(name)
        if parsed is not None:
            yield parsed


def _entry(metastore: Metastore, name: str) -> Entry | None:
    database, dot, table = name.partition(".")
    return metastore.get(database, table) if dot else None
