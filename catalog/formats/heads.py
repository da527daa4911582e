"""Which head a decision was made on: more than its number, which a table made anew at the same place has as
well. Pure."""

from datetime import datetime

from lakewarden.catalog.clock import to_millis
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.model.rows import HealthRow, TableRow

__all__ = ["format_id_of", "head_on_record", "head_seen", "head_token", "is_head"]


def head_seen(seen: Observation) -> str:
    """The head that was read."""
    return seen.head


def head_on_record(row: TableRow, health: HealthRow) -> str | None:
    """The head that the last sweep saw; None where it could not be read. Rows that are older than the column are of
    Delta tables."""
    if health.head is not None:
        return health.head
    if not row.format_ids or health.version is None or health.committed_at is None:
        return None
    return head_token(row.format_ids[-1], health.version, health.committed_at)


def is_head(token: str, format_id: str, version: int, committed_at: datetime) -> bool:
    """Whether the token was made of this very commit."""
    return token == head_token(format_id, version, committed_at)


def format_id_of(token: str) -> str:
    """The UUID that a token speaks of."""
    return token.rpartition("@")[0].rpartition("@")[0]


def head_token(format_id: str, version: int, committed_at: datetime) -> str:
    """UUID, version and the time of its commit, as one token: the head of a table whose versions only go up."""
    return f"{format_id}@{version}@{to_millis(committed_at)}"
