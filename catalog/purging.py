"""A deletion that was agreed to, kept in its row until the grace period is over."""

from dataclasses import dataclass
from datetime import datetime

from lakewarden.catalog.model import TableRow

__all__ = ["PURGE_AFTER", "PURGE_VERSION", "Purging"]

PURGE_AFTER = "purge.after"
"""Row property: when the grace period ends (ISO 8601, UTC)."""
PURGE_VERSION = "purge.version"
"""Row property: the table version whose dry run was agreed to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Purging:
    """When the files may be deleted (UTC), and the only version at which they may be."""

    after: datetime
    version: int

    @classmethod
    def of(cls, row: TableRow) -> "Purging":
        """Read what `begin_purge` wrote into a row in state `purging`."""
        return cls(
            after=datetime.fromisoformat(row.properties[PURGE_AFTER]),
            version=int(row.properties[PURGE_VERSION]),
        )
