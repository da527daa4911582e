"""Why an entry of the metastore is not ours to change, though it has a managed table's name. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.registry import spec_of
from lakewarden.catalog.metastore.ownership import is_of_another, says_ours
from lakewarden.catalog.metastore.parameters import INSTALLATION
from lakewarden.catalog.metastore.port import Entry, keeps_head
from lakewarden.catalog.storage.file_store import from_hadoop

__all__ = ["Obstacle", "foreign", "obstacle_in", "of_a_catalog", "pointed_away", "points_at_another"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Obstacle:
    """Why an entry is not ours to change: a sentence and what somebody can do about it."""

    message: str
    hint: str


def foreign(seen: Observation) -> Obstacle:
    """No entry of such a table is ours to write."""
    return Obstacle(
        message=f"Metastore entries of {seen.format} tables are not written by lakewarden.",
        hint="The engine that made the table keeps its entry.",
    )


def of_a_catalog(entry: Entry, seen: Observation, location: str) -> Obstacle | None:
    """One folder that two formats describe: the entry is that of the one whose head it keeps, for its writers."""
    if not keeps_head(entry):
        return None
    name, label = f"{entry.database}.{entry.table}", spec_of(seen.format).label
    return Obstacle(
        message=f"{name} in the metastore keeps the head of a table of another format in the same folder; what is "
        f"managed at {location} is the {label} table there.",
        hint=f"To manage what the entry names, `lakewarden tables drop {name}`, then `lakewarden tables register "
        f"{name}`; else give the managed one another name with `lakewarden tables rename`.",
    )


def points_at_another(
    entry: Entry, *, table_id: str, location: str, installation: str | None, is_table: Callable[[str], bool]
) -> bool:
    """Whether the entry of a managed table gives another place than the table's, and there is a table there, or it
    cannot be asked: where nothing is, the table has moved, and its entry is behind."""
    if not entry.location or obstacle_in(entry, table_id, location, installation) is not None:
        return False
    at = from_hadoop(entry.location)
    try:
        return at != location and is_table(at)
    except (LakewardenError, OSError):
        return True


def pointed_away(entry: Entry, location: str) -> Obstacle:
    """Somebody has pointed the entry of the table at `location` at another table."""
    name = f"{entry.database}.{entry.table}"
    return Obstacle(
        message=f"{name} in the metastore was pointed at another table, at {entry.location}; "
        f"the one that is managed is at {location}.",
        hint=f"If readers of {name} shall see that one, `lakewarden tables drop {name}`, then register it anew; else "
        f"point it back at {location}.",
    )


def obstacle_in(entry: Entry, table_id: str, location: str, installation: str | None) -> Obstacle | None:
    """Why an entry of its name is not that of the table at `location`; None where it is."""
    name = f"{entry.database}.{entry.table}"
    if "VIEW" in entry.table_type.upper():
        return Obstacle(
            message=f"{name} is a view in the metastore, not a table.", hint="Rename one of the two."
        )
    if entry.location and from_hadoop(entry.location) == location:
        return None
    if says_ours(entry, table_id, installation):
        return None
    if is_of_another(entry, installation):
        owner = entry.parameters.get(INSTALLATION)
        return Obstacle(
            message=f"{name} in the metastore is of another installation of lakewarden"
            f"{f' ({owner})' if owner else ''}, at {entry.location or 'no location'}.",
            hint="Give this installation a database of its own there by the setting system.database; where the other "
            "one is gone, or was this one, `lakewarden init --take-over`.",
        )
    return Obstacle(
        message=f"{name} in the metastore is another table, at {entry.location or 'no location'}.",
        hint=f"Point it at {location}, or give the managed table another name "
        "with `lakewarden tables rename`.",
    )
