"""The rows of commits that are not on record yet: for a sweep, for a plan, which does not wait for one, and for a table
that leaves management and is not swept again.

Of a table whose lineage went back in time, nothing on record says where its log has to be read from: it is read from
its beginning, and what is on record by then is left out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow.compute as pc

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.heads import SweptHead
from lakewarden.catalog.formats.port import LogProblem, ProbeResult, TableReader
from lakewarden.catalog.lineage.recording import NO_STREAMS, edge_of, rows_from
from lakewarden.catalog.lineage.rewritten_logs import RewrittenLog, ended_log, told_apart
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.unrecorded import Recorded, newest_on_record, unrecorded
from lakewarden.catalog.model.rows import GONE, HealthRow, LineageRow, TableRow
from lakewarden.catalog.model.unread_lineage import is_lineage_unread
from lakewarden.catalog.system.port import Rows

__all__ = ["EndedLogs", "UnrecordedRows", "ended_logs_on_record", "unrecorded_rows", "unswept_rows"]

EndedLogs = Callable[[Iterable[str]], Iterable[RewrittenLog]]
"""The logs that were put back and written on, of the tables (ids or locations) that were read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnrecordedRows:
    """The rows of versions that have none."""

    rows: tuple[LineageRow, ...] = ()
    made_at: Mapping[int, datetime] = field(default_factory=dict)
    """When these versions were committed."""


def unrecorded_rows(
    reader: TableReader,
    row: TableRow,
    recorded: Recorded,
    *,
    newest: int,
    head_id: str | None = None,
    upto: int | None = None,
    streams: StreamHarvest | None,
    held: Rows[LineageRow],
    ended: EndedLogs,
    at: datetime,
) -> UnrecordedRows:
    """What a table's log tells beyond `recorded`; `newest`, `head_id` and `upto` as for `unrecorded`. `held` is the
    lineage that `recorded` was taken from. Raises `UnreadableError`."""
    is_unread = is_lineage_unread(row.properties)  # rows below the newest may be lost
    new = unrecorded(
        reader, row, recorded={} if is_unread else recorded, newest=newest, head_id=head_id, upto=upto
    )
    reads = NO_STREAMS if streams is None else streams.reads(row, new.commits)
    rows = rows_from(
        row.table_id, new.commits, format_id=new.format_id, head_id=head_id, at=at, streams=reads
    )
    made_at = {one.version: one.committed_at for one in new.commits}
    logs = tuple(ended(one.input_id for one in rows)) if rows else ()
    rows = told_apart(rows, logs, made_at)
    if new.anew or is_unread:  # made anew, and perhaps seen by an earlier process
        known = {edge_of(one) for one in held.find(output_id=row.table_id)}
        rows = tuple(one for one in rows if edge_of(one) not in known)
    return UnrecordedRows(rows=rows, made_at=made_at)


def unswept_rows(
    reader: TableReader,
    row: TableRow,
    recorded: Recorded,
    streams: StreamHarvest,
    *,
    held: Rows[LineageRow],
    ended: EndedLogs,
    at: datetime,
    swept: SweptHead | None,
) -> tuple[LineageRow, ...] | None:
    """What the log of a table tells beyond what is on record; None where there is no log, or one of a table made anew
    at the place of one that was dropped. `swept` is the version that the last sweep saw, and the state of head then.
    Raises `UnreadableError`, also where lineage has to be read again and a sweep would not take the log for read."""
    is_unread = is_lineage_unread(row.properties)
    # Of a UUID that nothing is on record of, or of another version than the last sweep's, a number says nothing.
    known = not row.format_ids or row.format_ids[-1] in recorded or None in recorded
    newest = newest_on_record(row, recorded) if known and not is_unread else None
    version, head = (newest, None) if swept is None or is_unread else swept
    location = row.location or ""
    probe = reader.probe(location, seen=newest if newest == version else None, head=head)
    if not probe.exists:
        return None
    if not is_unread and _is_known(probe, newest, head):
        return ()
    seen = reader.observe(location) if is_unread else None
    if isinstance(seen, LogProblem):
        raise UnreadableError(seen.message)
    if seen is not None and row.state in GONE and row.format_ids and seen.format_id not in row.format_ids:
        return None
    latest = probe.latest or 0
    newest = latest if probe.newest is None else probe.newest
    return unrecorded_rows(
        reader, row, recorded, newest=newest, streams=streams, held=held, ended=ended, at=at
    ).rows


def ended_logs_on_record(
    row_of: Callable[[str], TableRow | None], health: Rows[HealthRow]
) -> tuple[RewrittenLog, ...]:
    """What tables were whose logs were put back and written on."""
    told = health.arrow(["table_id", "left_behind"])
    ids = told.filter(pc.greater(pc.list_value_length(told["left_behind"]), 0))["table_id"].to_pylist()
    pairs = ((row_of(key), health.get(key)) for key in ids)
    logs = (
        ended_log(row.table_id, row.location or "", one)
        for row, seen in pairs
        if row is not None and seen is not None
        for one in seen.left_behind
    )
    return tuple(one for one in logs if one is not None)


def _is_known(probe: ProbeResult, newest: int | None, head: str | None) -> bool:
    """Whether everything that the log has is on record. Where head may be below its newest version, the same head says
    nothing of what lies above it, and no commit may have moved it."""
    if probe.newest is None or None in (probe.head, head):
        return not probe.moved
    return (probe.newest, probe.head) == (newest, head)
