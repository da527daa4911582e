"""Which catalogs a worker asks for the heads of tables."""

from lakewarden.catalog.formats.spec import CatalogHead, HeadOf
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.metastore.table_heads import TableHeads
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.named_catalogs.catalogs import DeclaredCatalogs
from lakewarden.catalog.system.port import TABLES
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.jobs.runs.worker_config import WorkerConfig

__all__ = ["entries_of", "heads_of", "metastore_of"]


def heads_of(config: WorkerConfig) -> HeadOf:
    """The Hive metastore and the declared catalogs, for tables whose rows say that an entry there keeps their head. A
    worker that was told of no system tables knows of none."""
    entries = entries_of(config)
    return _folders_tell if entries is None else entries.heads


def entries_of(config: WorkerConfig) -> TakenEntries | None:
    """The same, with the way to take an entry away; None for a worker that knows of no entry."""
    location = config.system_location
    if location is None:
        return None
    store = DeltaSystemStore(location, config.storage.at(location), actor=config.name)
    metastore = metastore_of(config)
    declared = DeclaredCatalogs(config.catalogs)
    heads = TableHeads(lambda: metastore, lambda: store.rows(TABLES), moment=0.0, declared=declared.catalog)
    return TakenEntries(heads=heads, metastore=lambda: metastore, catalogs=declared)


def metastore_of(config: WorkerConfig) -> Metastore | None:
    """The Hive metastore that a worker is told of."""
    uri = config.spark.metastore_uri
    return None if uri is None else HiveMetastore(uri)


def _folders_tell(location: str) -> CatalogHead | None:
    return None
