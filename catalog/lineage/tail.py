"""Tailing a table's log for lineage: which versions have no rows in `lakewarden.lineage` yet, and the rows they get. Pure.

Commits carry their lineage only as long as the log is kept. A sweep that sees a table move writes rows for every version
after the last one on record, so that cleanup can take the commits.
"""

from collections.abc import Iterable
from datetime import datetime

from lakewarden.catalog.formats.base import Commit
from lakewarden.catalog.lineage.rows import rows_of
from lakewarden.catalog.lineage.versions import history_of
from lakewarden.catalog.model import LineageRow

__all__ = ["resume_after", "rows_from"]


def resume_after(on_record: int | None, head: int) -> int:
    """The version after which a log has to be read. A head below what is on record is another table's: read it all."""
    return -1 if on_record is None or on_record > head else on_record


def rows_from(
    table_id: str, commits: Iterable[Commit], *, format_id: str | None, at: datetime
) -> tuple[LineageRow, ...]:
    """The rows of these commits, in order. `format_id`: the table's UUID before the first of them, if it is known."""
    return tuple(
        row
        for version in history_of(commits, format_id=format_id)
        for row in rows_of(table_id, version, at=at)
    )
