"""The lineage of a table that leaves management, as far as no sweep has written it down."""

from collections.abc import Iterator

from lakewarden.catalog.errors import UnavailableError, UnreadableError
from lakewarden.catalog.formats.heads import SweptHead, head_on_record
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.unrecorded import recorded_of
from lakewarden.catalog.lineage.unswept import ended_logs_on_record, unswept_rows
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.model.unread_lineage import LINEAGE_UNREAD, is_lineage_unread, with_lineage_read
from lakewarden.catalog.policy.access import Actor
from lakewarden.catalog.system.port import HEALTH, LINEAGE, TABLES, Rows
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["record_lineage"]


def record_lineage(services: Services, row: TableRow, *, actor: Actor) -> None:
    """Write down what the commits of a table read, before it is dropped: nobody looks at its log afterwards, and what
    was made from it depends on what it was made from itself. Repeating it adds nothing.

    A table is dropped also where its log cannot be read: then there is nothing to write down. If something of its
    lineage may be lost, its row goes on saying so.
    """
    held, healths = services.store.rows(LINEAGE), services.store.rows(HEALTH)
    recorded, health = recorded_of(held.find(output_id=row.table_id)), healths.get(row.table_id)
    known = None if health is None else head_on_record(row, health)
    swept = (
        None
        if health is None or health.version is None or known is None
        else SweptHead(health.version, known)
    )
    harvest = StreamHarvest(store=services.store, storage=services.storage, readers=services.readers)
    reader = reader_of(services.readers, row.format)
    try:
        rows = unswept_rows(
            reader,
            row,
            recorded,
            harvest,
            held=held,
            ended=lambda _: ended_logs_on_record(services.store.rows(TABLES).get, healths),
            at=services.clock.now(),
            swept=swept,
        )
    except (UnreadableError, UnavailableError) as error:
        _warn(row, str(error))
        return
    because = f"{actor.name} drops {row.name}"
    if rows:
        services.store.append(LINEAGE, rows, because=because)
    if not is_lineage_unread(row.properties):
        return
    if rows is None:
        _warn(row, f"Its log is not at {row.location} any more.")
        return
    since = row.properties[LINEAGE_UNREAD]

    def noted(tables: Rows[TableRow]) -> Iterator[TableRow]:
        now = tables.get(row.table_id)
        if now is not None and now.properties.get(LINEAGE_UNREAD) == since:
            yield with_lineage_read(now)

    services.store.edit(TABLES, noted, because=because)


def _warn(row: TableRow, because: str) -> None:
    get_log("drop").warning("its last lineage is not known", table=row.name, because=because)
