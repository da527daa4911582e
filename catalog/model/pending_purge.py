"""A deletion that was agreed to, and how far it is, as the table's row keeps it. Pure."""

from dataclasses import dataclass
from datetime import datetime

from lakewarden.catalog.model.rows import TableRow

__all__ = [
    "MARKER",
    "PURGE_AFTER",
    "PURGE_DELETED",
    "PURGE_HEAD",
    "PURGE_HEAD_FILE",
    "PURGE_OTHERS",
    "PURGE_UNKNOWN",
    "PURGE_VERSION",
    "PURGING_KEYS",
    "Purging",
    "how_to_stop",
]

MARKER = "_lakewarden_purging"
"""A file in the table's folder: its deletion has begun, and the log may be gone in parts."""
PURGE_AFTER = "purge.after"
"""Row property: when the grace period ends (ISO 8601, UTC)."""
PURGE_VERSION = "purge.version"
"""Row property: the table version whose dry run was agreed to."""
PURGE_HEAD = "purge.head"
"""Row property: that version's UUID and time (catalog/formats/heads.py),
which a table made anew at the place does not have."""
PURGE_HEAD_FILE = "purge.head_file"
"""Row property: the metadata file that the catalog's entry named then, as it is spelled there; only where an entry
keeps the table's head."""
PURGE_UNKNOWN = "purge.unknown"
"""Row property: the token of the files that the log does not name and whose deletion was agreed to as well."""
PURGE_OTHERS = "purge.others"
"""Row property: the other installations of lakewarden that manage or hold the table, in spite of which it goes."""
PURGE_DELETED = "purge.deleted"
"""Row property: since when no file of the table is left (ISO 8601, UTC).
What lies at the place after that is not the table's."""
PURGING_KEYS = (
    PURGE_AFTER,
    PURGE_VERSION,
    PURGE_HEAD,
    PURGE_HEAD_FILE,
    PURGE_UNKNOWN,
    PURGE_OTHERS,
    PURGE_DELETED,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Purging:
    """When the files may be deleted (UTC), and in spite of what."""

    after: datetime
    version: int
    """The version of the only head at which the files may be deleted."""
    head: str | None = None
    """What tells that head from others; None in rows of an older lakewarden."""
    head_file: str | None = None
    """The metadata file that its catalog's entry named then."""
    unknown: str | None = None
    """The token of the unknown files that may go along."""
    others: str | None = None
    """The other installations in spite of which they go."""

    @classmethod
    def of(cls, row: TableRow) -> "Purging":
        """Read what `begin_purge` wrote into a row in state `purging`."""
        return cls(
            after=datetime.fromisoformat(row.properties[PURGE_AFTER]),
            version=int(row.properties[PURGE_VERSION]),
            head=row.properties.get(PURGE_HEAD),
            head_file=row.properties.get(PURGE_HEAD_FILE),
            unknown=row.properties.get(PURGE_UNKNOWN),
            others=row.properties.get(PURGE_OTHERS),
        )


def how_to_stop(table_id: str) -> str:
    """The hint of everything that keeps a deletion from its end. By id: a table that came later may have the name."""
    return f"`lakewarden tables drop {table_id}` stops the deletion and leaves what is there."
