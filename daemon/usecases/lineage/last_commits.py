"""The lineage of a table that leaves management, as far as no sweep has written it down."""

from lakewarden.catalog.errors import UnavailableError, UnreadableError
from lakewarden.catalog.formats.heads import SweptHead, head_on_record
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.unrecorded import recorded_of
from lakewarden.catalog.lineage.unswept import unswept_rows
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.policy.access import Actor
from lakewarden.catalog.system.port import HEALTH, LINEAGE
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["record_lineage"]


def record_lineage(services: Services, row: TableRow, *, actor: Actor) -> None:
    """Write down what the commits of a table read, before it is dropped: nobody looks at its log afterwards, and what
    was made from it depends on what it was made from itself. Repeating it adds nothing.

    A table is dropped also where its log cannot be read: then there is nothing to write down.
    """
    recorded = recorded_of(services.store.rows(LINEAGE).find(output_id=row.table_id))
    health = services.store.rows(HEALTH).get(row.table_id)
    known = None if health is None else head_on_record(row, health)
    swept = (
        None
        if health is None or health.version is None or known is None
        else SweptHead(health.version, known)
    )
    harvest = StreamHarvest(store=services.store, storage=services.storage, readers=services.readers)
    reader = reader_of(services.readers, row.format)
    try:
        rows = unswept_rows(reader, row, recorded, harvest, at=services.clock.now(), swept=swept)
    except (UnreadableError, UnavailableError) as error:
        get_log("drop").warning("its last lineage is not known", table=row.name, because=str(error))
        return
    if rows:
        services.store.append(LINEAGE, rows, because=f"{actor.name} drops {row.name}")
