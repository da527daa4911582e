"""Does the metastore let Iceberg tables be committed to, and their columns be changed?"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from lakewarden.catalog.metastore.port import Entry, Metastore
from lakewarden.catalog.metastore.table_heads import address_in
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.model.rows import TableState
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.doctor.diagnosis import Diagnosis, answered, ok, warn

__all__ = ["iceberg_commits"]

_CHECK: Final = "iceberg commits"
_LOCKS: Final = "engine.hive.lock-enabled"


def iceberg_commits(services: Services) -> Iterator[Diagnosis]:
    """Asked of an Iceberg table that the metastore has and that is managed; nothing where there is none."""
    metastore = services.metastore
    if metastore is None or not services.store.exists():
        return
    rows = services.store.rows(TABLES).find(state=TableState.ACTIVE)
    addresses = (address_in(row.properties) for row in rows if row.format == "iceberg")
    named = [one for one in addresses if one is not None and one.catalog is None]
    if named:
        yield answered(_CHECK, partial(_asked, metastore, named))


def _asked(metastore: Metastore, named: Sequence[CatalogAddress]) -> Diagnosis:
    locked = next((one for one in named if _takes_locks(metastore.get(one.namespace, one.table))), None)
    refusal = None if locked is None else metastore.refuses_lock(locked.namespace, locked.table)
    if locked is not None and refusal is not None:
        return warn(
            _CHECK,
            f"The metastore gives no lock on {locked.entry}: {refusal}. Commits to Iceberg tables that take locks "
            "wait for one, and fail.",
            "Let the metastore's own tool set up its transaction tables (schematool), and writers that died time out; "
            "or have all writers do without (engine.hive.lock-enabled=false).",
        )
    if metastore.strict_columns():
        return warn(
            _CHECK,
            "The metastore refuses changes of columns to other types, and with them DROP COLUMN and moves of columns "
            "of Iceberg tables.",
            "Set hive.metastore.disallow.incompatible.col.type.changes=false on the server.",
        )
    return ok(_CHECK, "The metastore gives locks, and lets columns be changed.")


def _takes_locks(entry: Entry | None) -> bool:
    """Whether commits to a table take the metastore's locks: they do unless it says otherwise."""
    return entry is not None and entry.parameters.get(_LOCKS, "true").lower() != "false"
