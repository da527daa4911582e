"""The product's Iceberg engine on the stage: the real one, on one Spark session that all worlds of the process share.

Whatever the product reads of a table, Python's reader or Java's library, is stamped with the world's time right before.
"""

from functools import partial
from pathlib import Path
from typing import Any

from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.jobs.engines.iceberg import java_tables
from lakewarden.jobs.engines.iceberg.engine import IcebergEngine
from lakewarden.jobs.runs.catalog_conf import catalog_conf
from lakewarden.jobs.runs.catalog_heads import heads_of, metastore_of
from lakewarden.jobs.runs.installation import installation_of
from lakewarden.jobs.runs.worker_config import WorkerConfig
from support.adversary.iceberg.ice_catalog import CATALOG, NAMESPACE, Pointers
from support.adversary.stage import Stage, also_prepare

__all__ = ["ice_stage"]

_file, _loaded = IcebergReader._file, java_tables._loaded


def ice_stage(folder: Path, spark: Any, database: str) -> Stage:
    """A stage on which tables of both formats play. `adversary` becomes a catalog of the session in Hadoop's layout,
    and there is one in a `database` (PostgreSQL's, as SQLAlchemy writes it)."""
    pointers = Pointers(database, folder / "lake")
    declared = CatalogDeclaration(
        name=CATALOG, kind=CatalogKind.SQL, uri=database, warehouse=f"file://{pointers.warehouse}"
    )
    for key, value in catalog_conf([declared]):
        spark.conf.set(key, value)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE}")
    spark.conf.set("spark.sql.catalog.adversary", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.adversary.type", "hadoop")
    spark.conf.set("spark.sql.catalog.adversary.warehouse", f"file:{folder}")
    spark.conf.set("spark.sql.catalog.adversary.cache-enabled", "false")
    also_prepare((IcebergReader, "_file", _looking), (java_tables, "_loaded", _loading))
    return Stage(folder, spark=spark, engine=partial(_engine, spark), pointers=pointers)


def _engine(spark: Any, config: WorkerConfig) -> IcebergEngine:
    """As a worker makes it, but for the session."""

    def here() -> Any:
        # A worker begins its session in the thread that works, and Iceberg's library asks for that thread's session.
        spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
        return spark

    return IcebergEngine(
        here,
        storage=config.storage.at,
        heads=heads_of(config),
        metastore=partial(metastore_of, config),
        installation=installation_of(config),
        undo_for=config.undo_for,
    )


def _looking(self: IcebergReader, location: str, store: Any) -> Any:
    Stage.look(location)
    return _file(self, location, store)


def _loading(spark: Any, told: Any, location: str) -> Any:
    Stage.look(location)
    return _loaded(spark, told, location)
