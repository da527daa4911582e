"""Tables that their users dropped and made again at the same place: nightly jobs do that. They keep their rows."""

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.registry.removal import undrop
from lakewarden.catalog.registry.service import Registry
from lakewarden.daemon.control.run_recorder import DAEMON
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["take_back"]


def take_back(registry: Registry, row: TableRow) -> bool:
    """Manage a table again if there is one at its place; whether there is. Why it cannot be, where its name or place is
    another one's by now, is no news for each cycle."""
    try:
        if not reader_of(registry.readers, row.format).is_table(row.location or ""):
            return False
        undrop(registry, row.table_id, actor=DAEMON)
    except UnavailableError:
        return False
    except LakewardenError as error:
        get_log("cycle").debug("not taken back", table=row.name, because=str(error))
        return False
    get_log("cycle").warning(
        "came back", table=row.name, because="its users dropped it, and made a table at its place again"
    )
    return True
