"""The rows of commits that no sweep has written down yet: for a plan, which does not wait for a sweep, and for a table
that leaves management, which no sweep looks at again."""

from collections.abc import Iterable
from datetime import datetime

from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.lineage.recording import rows_from
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.unrecorded import Recorded, recorded_upto, unrecorded
from lakewarden.catalog.model.rows import Confidence, LineageRow, TableRow

__all__ = ["newest_on_record", "recorded_of", "unswept_rows"]


def unswept_rows(
    reader: TableReader, row: TableRow, recorded: Recorded, harvest: StreamHarvest, *, at: datetime
) -> tuple[LineageRow, ...]:
    """What the log of a table tells beyond what is on record; nothing where there is no log. Raises
    `UnreadableError`."""
    # Of a UUID that nothing is on record of, the number of a version says nothing.
    known = not row.format_ids or row.format_ids[-1] in recorded or None in recorded
    probe = reader.probe(row.location or "", seen=newest_on_record(row, recorded) if known else None)
    if not probe.exists or not probe.moved:
        return ()
    new = unrecorded(reader, row, recorded=recorded, head=probe.latest or 0)
    streams = harvest.reads(row, new.commits)
    return rows_from(row.table_id, new.commits, format_id=new.format_id, at=at, streams=streams)


def recorded_of(rows: Iterable[LineageRow]) -> Recorded:
    """What is on record of one table, from its rows. What a session saw its plan read is on record at once, its commit
    perhaps not yet: that does not count."""
    found: dict[str | None, int] = {}
    for row in rows:
        if row.confidence is not Confidence.PLAN:
            known = found.get(row.output_format_id, row.output_version)
            found[row.output_format_id] = max(known, row.output_version)
    return found


def newest_on_record(row: TableRow, recorded: Recorded) -> int | None:
    """The newest version on record of the table as it was last seen."""
    return recorded_upto(recorded, row.format_ids[-1] if row.format_ids else None)
