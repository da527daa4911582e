"""What a user pointed at: a path, a URI, or a metastore name; resolved to one canonical location."""

import re
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.errors import RefusedError, UsageError
from lakewarden.catalog.metastore.port import (
    METADATA_FILE,
    OUR_ENTRIES,
    Entry,
    Metastore,
    head_file,
    keeps_head,
)
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.storage.file_store import (
    StorageOptions,
    canonical,
    from_hadoop,
    is_spelled_once,
    open_store,
)
from lakewarden.catalog.units import storable

__all__ = [
    "SYSTEM",
    "NamedLocation",
    "name_from_location",
    "parse_name",
    "parse_scope",
    "place_to_manage",
    "refuse_ambiguous",
    "refuse_closed",
    "refuse_if_absent",
    "refuse_ours",
    "resolve",
]

SYSTEM: Final = "lakewarden"
"""The namespace of the system tables."""
_NAME = re.compile(r"^(?:(\w+)\.)?(\w+)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedLocation:
    """A canonical location, and the metastore entry it was found by (None for a path)."""

    location: str
    name: str | None = None
    entry: Entry | None = None
    address: CatalogAddress | None = None
    """The entry that keeps the table's head, where its folder does not."""


def parse_name(text: str) -> str | None:
    """`db.t`, or `t` in database default, as `db.t`; None if the text is no table name."""
    match = _NAME.match(text.strip().replace("`", ""))
    return f"{match[1] or 'default'}.{match[2]}".lower() if match else None


def parse_scope(text: str) -> str | None:
    """`*`, or `db.*` as the tables of `db` are called; None if the text is neither."""
    if text.strip() == "*":
        return "*"
    namespace, dot, rest = text.strip().rpartition(".")
    name = parse_name(f"{namespace}.t") if dot and rest == "*" else None
    return None if name is None else f"{name.removesuffix('.t')}.*"


def refuse_closed(name: str) -> None:
    """Raise `RefusedError` for a name, or a scope, among those of the system tables: nobody else's table gets one."""
    if name.lower().partition(".")[0] == SYSTEM:
        raise RefusedError(
            f"The namespace {SYSTEM} is closed: {name} would stand among the system tables.",
            hint="Choose another name, such as with --name db.table.",
        )


def name_from_location(location: str) -> str:
    """A name for a table known only by its place: `default.<last folder>`, made a legal identifier."""
    last = location.rstrip("/").rsplit("/", 1)[-1]
    return "default." + (re.sub(r"\W+", "_", last).strip("_").lower() or "table")


def resolve(where: str, metastore: Metastore | None) -> NamedLocation:
    """Find the place. Raises `RefusedError` if there is no such metastore table, `UsageError` for an odd name, or
    what is no text."""
    if storable(where) != where:
        raise UsageError(
            f"'{storable(where)}' is not UTF-8.", hint="Rename the folder, then repeat the command."
        )
    if "/" in where or ":" in where or where.startswith((".", "~")):
        return NamedLocation(location=canonical(where))
    name = parse_name(where)
    if name is None:
        raise UsageError(
            f"'{where}' is neither a table name nor a path.", hint="Write db.table, a path or a URI."
        )
    if metastore is None:
        raise RefusedError(
            f"{name} cannot be looked up: no metastore is configured.",
            hint="Set metastore.uri, or give the table's path (./name for a folder here).",
        )
    entry = metastore.get(*name.split(".", 1))
    if entry is None:
        raise RefusedError(
            f"The metastore has no table {name}.", hint="Check the name, or give the table's path."
        )
    if entry.location is None:
        raise RefusedError(
            f"{name} has no location (it is a {entry.table_type.lower()}).", hint="Give a table."
        )
    if (
        METADATA_FILE in entry.parameters
        and head_file(entry.parameters) is None
        and "VIEW" in entry.table_type.upper()
    ):
        raise RefusedError(f"{name} is a view.", hint="Give a table.")
    address = CatalogAddress(entry=name) if keeps_head(entry) else None
    return NamedLocation(location=from_hadoop(entry.location), name=name, entry=entry, address=address)


def place_to_manage(where: str, metastore: Metastore | None) -> NamedLocation:
    """The place of a table to be managed. Raises what `resolve` raises, and `RefusedError` if storages and engines
    would read the location differently."""
    place = resolve(where, metastore)
    refuse_ours(place.name or "")
    refuse_ambiguous(place.location)
    return place


def refuse_ours(entry: str) -> None:
    """Raise `RefusedError` for an entry that has a name of ours for a while: no table is to be managed by that."""
    if entry.rpartition(".")[2].lower().startswith(OUR_ENTRIES):
        raise RefusedError(
            f"{entry} is an entry of lakewarden's own, while it converts a table or deletes one.",
            hint="If that was stopped, `lakewarden tables undrop` gives the table its name back.",
        )


def refuse_ambiguous(location: str) -> None:
    """Raise `RefusedError` for a location that storages and engines would read differently."""
    if not is_spelled_once(location):
        raise RefusedError(
            f"{location} cannot be managed: storages and engines read #, ? and % in it in different ways.",
            hint="Rename the folder (on local disks such names are no trouble).",
        )


def refuse_if_absent(location: str, options: StorageOptions) -> None:
    """Raise `RefusedError` if there is nothing at a location."""
    if not open_store(location, options).exists(""):
        raise RefusedError(f"There is nothing at {location}.", hint="Check the path and the permissions.")
