"""A table that its users dropped: its row is history, and watched for a while, in case they make it again. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from lakewarden.catalog.model.rows import TableRow, TableState

__all__ = ["LEFT_AT", "is_left", "is_recent", "is_watched", "left", "without_leaving"]

LEFT_AT: Final = "left.at"
"""Row property: when a sweep found that its users had dropped the table (ISO 8601, UTC)."""
_WATCHED_FOR: Final = timedelta(days=30)


def left(row: TableRow, because: str, at: datetime) -> TableRow:
    """The row of a table that is gone."""
    properties = {**row.properties, LEFT_AT: at.isoformat()}
    return replace(row, state=TableState.DROPPED, state_reason=because, properties=properties)


def is_left(state: TableState, left_at: str | None) -> bool:
    """Whether a row in this state, with this `LEFT_AT`, is of a table that its users dropped, as it seemed."""
    return state is TableState.DROPPED and left_at is not None


def is_watched(row: TableRow, now: datetime) -> bool:
    """Whether a table that appears at the place is taken for the same one."""
    left_at = row.properties.get(LEFT_AT)
    return is_left(row.state, left_at) and is_recent(left_at, now)


def is_recent(left_at: str | None, now: datetime) -> bool:
    """Whether that which is said to have left then (`LEFT_AT`) may still come back as the same."""
    return left_at is not None and now - datetime.fromisoformat(left_at) < _WATCHED_FOR


def without_leaving(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a row that is back."""
    return {key: value for key, value in properties.items() if key != LEFT_AT}
