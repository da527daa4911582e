"""Tables that their users dropped and made again at the same place: nightly jobs do that. They keep their rows."""

from collections import defaultdict
from collections.abc import Iterable

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.registry.removal import undrop
from lakewarden.catalog.registry.service import Registry
from lakewarden.daemon.control.run_recorder import DAEMON
from lakewarden.daemon.fleet.questions import Questions
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["returned", "take_back"]


def returned(registry: Registry, rows: Iterable[TableRow], questions: Questions) -> list[TableRow]:
    """Those at whose places there are tables again, as far as these answer."""
    by_place = defaultdict[str, list[TableRow]](list)
    for row in rows:
        by_place[row.location or ""].append(row)

    def there(place: str) -> list[TableRow]:
        return [row for row in by_place[place] if _is_there(registry, row, place)]

    return [row for found in questions.each(by_place, there).values() for row in found]


def _is_there(registry: Registry, row: TableRow, place: str) -> bool:
    try:
        return reader_of(registry.readers, row.format).is_table(place)
    except LakewardenError:
        return False


def take_back(registry: Registry, row: TableRow) -> bool:
    """Manage a table again that lies at its place again; whether that was done. Why it cannot be, where its name or
    place is another one's by now, is no news for each cycle."""
    try:
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
