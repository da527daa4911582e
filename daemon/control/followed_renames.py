"""A table that its users renamed in the metastore: its row goes on under the new name, so that commands by name act on
what they mean. Another table may have the old name by now."""

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.metastore.known_tables import is_renamed
from lakewarden.catalog.metastore.lookup import parse_name
from lakewarden.catalog.model.identity import Follow
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.registry.removal import rename
from lakewarden.catalog.registry.service import Registry
from lakewarden.daemon.control.run_recorder import DAEMON
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["follow_rename"]


def follow_rename(registry: Registry, row: TableRow, found_as: str, *, follow: Follow) -> bool:
    """Give a managed table the name by which the metastore has it, where the metastore does not have it under its own
    any more; whether that was done. A name that lakewarden gave it stays: the metastore never had it under that.

    `follow` gives all locations of one place one spelling. Raises `UnavailableError` while the metastore does not
    answer.
    """
    name = parse_name(found_as)
    if registry.metastore is None or name is None or name == row.name:
        return False
    current = registry.get(row.table_id)
    if not is_renamed(registry.metastore, current, name, follow=follow):
        return False
    try:
        rename(registry, current.table_id, name, actor=DAEMON, entered=current.name)
    except UnavailableError:
        raise
    except LakewardenError as error:
        get_log("cycle").warning("not renamed", table=current.name, to=name, because=str(error))
        return False
    get_log("cycle").warning("renamed", table=current.name, to=name, because="the metastore has it so")
    return True
