"""Whose entry is this? By what an entry of the metastore says of itself. Pure."""

from lakewarden.catalog.metastore.parameters import INSTALLATION, TABLE_ID
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.system.own_rows import SYSTEM_TABLE_IDS

__all__ = ["foreign_owner", "is_of_another", "is_system_entry", "says_ours"]


def foreign_owner(entry: Entry, installation: str | None) -> str | None:
    """The other installation whose entry this is, as it says; None where it does not, or where ours is not known."""
    owner = entry.parameters.get(INSTALLATION)
    return owner if owner and installation is not None and owner != installation else None


def is_system_entry(entry: Entry) -> bool:
    """Whether the entry claims to be a system table's, of any installation."""
    return entry.parameters.get(TABLE_ID) in SYSTEM_TABLE_IDS


def is_of_another(entry: Entry, installation: str | None) -> bool:
    """Whether the entry is another installation's system table's. One of an older lakewarden names no installation."""
    return is_system_entry(entry) and entry.parameters.get(INSTALLATION) != installation


def says_ours(entry: Entry, table_id: str, installation: str | None) -> bool:
    """Whether an entry with another location claims to be our table's. The system tables have the same ids in every
    installation: theirs have to name ours."""
    return entry.parameters.get(TABLE_ID) == table_id and not is_of_another(entry, installation)
