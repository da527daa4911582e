"""The rows of commits that no sweep has written down yet: for a plan, which does not wait for a sweep, and for a table
that leaves management and is not swept again."""

from datetime import datetime

from lakewarden.catalog.formats.heads import SweptHead
from lakewarden.catalog.formats.port import ProbeResult, TableReader
from lakewarden.catalog.lineage.recording import rows_from
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.unrecorded import Recorded, newest_on_record, unrecorded
from lakewarden.catalog.model.rows import LineageRow, TableRow

__all__ = ["unswept_rows"]


def unswept_rows(
    reader: TableReader,
    row: TableRow,
    recorded: Recorded,
    harvest: StreamHarvest,
    *,
    at: datetime,
    swept: SweptHead | None,
) -> tuple[LineageRow, ...]:
    """What the log of a table tells beyond what is on record; nothing where there is no log. `swept` is the version
    that the last sweep saw, and the state of head then. Raises `UnreadableError`."""
    # Of a UUID that nothing is on record of, or of another version than the last sweep's, a number says nothing.
    known = not row.format_ids or row.format_ids[-1] in recorded or None in recorded
    newest = newest_on_record(row, recorded) if known else None
    version, head = (newest, None) if swept is None else swept
    probe = reader.probe(row.location or "", seen=newest if newest == version else None, head=head)
    if not probe.exists or _is_known(probe, newest, head):
        return ()
    latest = probe.latest or 0
    new = unrecorded(reader, row, recorded=recorded, newest=latest if probe.newest is None else probe.newest)
    streams = harvest.reads(row, new.commits)
    return rows_from(row.table_id, new.commits, format_id=new.format_id, at=at, streams=streams)


def _is_known(probe: ProbeResult, newest: int | None, head: str | None) -> bool:
    """Whether everything that the log has is on record. Where head may be below its newest version, the same head says
    nothing of what lies above it, and no commit may have moved it."""
    if probe.newest is None or None in (probe.head, head):
        return not probe.moved
    return (probe.newest, probe.head) == (newest, head)
