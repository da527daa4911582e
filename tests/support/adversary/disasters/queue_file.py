"""The queue as it lies on disk: SQLite, read with nothing but Python's own."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["at_work_since", "unfinished"]

_WORKING = "SELECT max(queued_at) FROM lakewarden_run WHERE location = ? AND state IN ('claimed', 'running')"
_LEFT = "SELECT name, action, state FROM lakewarden_run WHERE state != 'finished' AND NOT cancel_requested"


def at_work_since(home: Path, folder: Path) -> datetime | None:
    """When the run was queued that works on a folder now; None if none does."""
    with closing(sqlite3.connect(home / "state.db")) as queue:
        found = queue.execute(_WORKING, (f"file://{folder}",)).fetchone()[0]
    return None if found is None else datetime.fromtimestamp(found / 1000, UTC)


def unfinished(home: Path) -> list[tuple[str, str, str]]:
    """The runs that are not finished, nor asked to stop: name of the table, action, state."""
    with closing(sqlite3.connect(home / "state.db")) as queue:
        return list(queue.execute(_LEFT))
