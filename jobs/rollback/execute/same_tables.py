"""Is a table that a rollback was planned on there still, or has another one taken its place?

Plans and consents name versions by their numbers: in a table made anew, or in a log that was put back and written on,
the same numbers are other commits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.port import Head, Observation, TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.lineage.versions import history_of
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import GONE, TableRow
from lakewarden.catalog.system.port import TABLES, SystemStore
from lakewarden.jobs.rollback.journal.step_rows import FOLLOWING, step_of
from lakewarden.jobs.rollback.journal.stored_plan import StoredPlan

__all__ = ["Looked", "look_at_tables"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """What became of tables, by `table_id`."""

    format_ids: Mapping[str, str]
    """The UUIDs that they have now, where they can be read."""
    others: frozenset[str]
    """Those of which nothing tells that they are the same still."""


def look_at_tables(
    store: SystemStore, readers: Sequence[TableReader], rollback: Rollback, stored: StoredPlan
) -> Looked:
    """Look at the tables that a rollback begins at, and at those that somebody agreed to something of. One that cannot
    be read, or is gone, is no other: nothing can be done to it."""
    planned, rows = dict(stored.format_ids), store.rows(TABLES)
    begins_at = {table.table_id for table in stored.plan.tables if table.trigger is None}
    agreed = {one.table_id for one in stored.plan.request.consents.named}
    heads = {table_id: head for table_id, head in _heads(rollback) if table_id in begins_at}
    format_ids: dict[str, str] = {}
    others: set[str] = set()
    for table_id in sorted(begins_at | agreed):
        row = rows.get(table_id)
        if row is None or row.state in GONE or row.location is None:
            continue
        reader = reader_of(readers, row.format)
        try:
            seen = reader.observe(row.location)
            if not isinstance(seen, Observation):
                continue
            format_ids[table_id] = seen.format_id
            if not _is_same(reader, row, seen, planned.get(table_id), heads.get(table_id)):
                others.add(table_id)
        except UnreadableError:
            continue
    return Looked(format_ids=format_ids, others=frozenset(others))


def _heads(rollback: Rollback) -> Iterator[tuple[str, Head]]:
    """The heads that the steps were verified on; of several on one table the first."""
    for row in reversed(rollback.steps):
        if row.kind not in FOLLOWING:
            yield row.table_id, step_of(row).at


def _is_same(
    reader: TableReader, row: TableRow, seen: Observation, planned: str | None, head: Head | None
) -> bool:
    if head is not None and head.token is not None:
        told = reader.has_head(seen.location, version=head.version, head=head.token)
        if told is not None:
            return told
    if planned is None or planned == seen.format_id:
        return True
    history = history_of(reader.commits(seen.location, after=-1), head_id=seen.format_id)
    return any(planned in (one.format_id, one.replaced) for one in history)
