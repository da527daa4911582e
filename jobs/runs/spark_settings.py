"""What a Spark session is made of, as a value. Imports nothing of PySpark: the daemon writes it, a worker reads it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from lakewarden.catalog.units import MIB

__all__ = [
    "ICEBERG_CATALOG",
    "KEYS_FROM_FILES",
    "PACKAGES",
    "JarSource",
    "SparkSettings",
    "foreign_conf",
    "is_secret_conf",
    "session_conf",
]

PACKAGES: Final = (
    "io.delta:delta-spark_4.1_2.13:4.4.0,org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
)
"""The value of `spark.jars.packages` where Spark fetches its jars itself."""
ICEBERG_CATALOG: Final = "spark.sql.catalog.iceberg"
"""The setting that says what the catalog `iceberg` of a session is."""

_LOCAL_LISTING: Final = 4
"""Tasks per core that list folders. Spark's own 10,000 cost 27 s on a table of ten files, and 2 s like this."""
_SECRET: Final = re.compile(
    r"secret|password|token|(access|account|private|encryption|customer|master|sas)[._-]?key"
    r"|(?<![a-z])sas(?![a-z])|\.credential$",
    re.IGNORECASE,
)
"""Keys that Spark itself redacts (`spark.redaction.regex`), those of Azure, Google and S3's encryption, and that of a
REST catalog."""

_STORES: Final = ("spark.hadoop.fs.", "spark.hadoop.dfs.", "spark.delta.logStore.")
"""Settings that say how storages are reached, and how commits are made there."""
KEYS_FROM_FILES: Final = "lakewarden.FileCredentialsProvider"
"""The class of ours (jobs/engines/spark/s3) by which lakewarden's own sessions read keys from files, and again once
these have changed. Other sessions have keys of their own."""

_PAGES: Final = "spark.ui.enabled"
_KEPT_FOR_NOBODY: Final = {
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
}
"""How much of what has ended a driver remembers if it has no pages to show it on. Spark's own 1,000 of each, with their
plans and metrics, are 100 MB of a driver that runs statement after statement."""
_EXCHANGES: Final = {
    "spark.sql.shuffleExchange.maxThreadThreshold": "128",
    "spark.sql.resultQueryStage.maxThreadThreshold": "128",
}
"""As many threads as Spark has for its other exchanges. Of 1,024 that take turns none ever ends, and each keeps
something of each session (tags of its jobs) that there was while it ran: of every statement, as each has a clone."""

_JAVA_OPTIONS: Final = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_NO_ENTITIES: Final = "-Djavax.xml.accessExternalDTD= -Djavax.xml.accessExternalSchema="
"""What an XML text refers to is not opened: it may be anybody's, and Java would open any file and address."""


class JarSource(StrEnum):
    """Where the engine's jars come from: fetched by Maven into a cache, by Spark itself, or on its class path."""

    MAVEN = "maven"
    PACKAGES = "packages"
    NONE = "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class SparkSettings:
    """What a session is made of."""

    master: str = "local[*]"
    """`local[*]`, `local[2]`, `yarn` or `k8s://...`."""
    driver_memory_bytes: int = 1024 * MIB
    metastore_uri: str | None = None
    jar_source: JarSource = JarSource.MAVEN
    jars_cache: Path | None = None
    """None means the user's cache folder."""
    catalogs: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """What makes the declared catalogs known. Holds secrets."""
    conf: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The operator's own, which wins over everything that lakewarden chooses."""


def is_secret_conf(key: str) -> bool:
    """Whether the value of a Spark setting belongs neither on a screen nor on a command line."""
    return _SECRET.search(key) is not None


def session_conf(settings: SparkSettings, *, cores: int, jars: tuple[Path, ...] = ()) -> Mapping[str, str]:
    """Everything a session is configured with. Pure.

    On one machine Spark's defaults for clusters are scaled down to its cores; on a cluster they are left alone.
    """
    conf = {
        "spark.app.name": "lakewarden",
        "spark.master": settings.master,
        "spark.driver.memory": f"{settings.driver_memory_bytes // MIB}m",
        "spark.log.level": "ERROR",
        _PAGES: "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.variable.substitute": "false",  # else a text with ${env:...} in it reads the environment
        **_EXCHANGES,
    }
    if settings.master.startswith("local"):
        conf |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(max(cores, 2)),
            "spark.databricks.delta.snapshotPartitions": str(max(cores, 2)),
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(_LOCAL_LISTING * cores),
        }
    own = dict(settings.conf)
    if own.get(_PAGES, "false").lower() != "true":
        conf |= _KEPT_FOR_NOBODY
    for key in _JAVA_OPTIONS:
        own[key] = f"{_NO_ENTITIES} {own.get(key, '')}".rstrip()
    return conf | _lake_conf(settings, jars) | dict(settings.catalogs) | own


def foreign_conf(settings: SparkSettings, *, jars: tuple[Path, ...] = ()) -> Mapping[str, str]:
    """What a session that is somebody else's needs for our tables: no more than that, and no secrets. Pure."""
    stores = {
        key: value
        for key, value in settings.conf
        if key.startswith(_STORES) and not is_secret_conf(key) and value != KEYS_FROM_FILES
    }
    catalogs = {key: value for key, value in settings.catalogs if not is_secret_conf(key)}
    return _lake_conf(settings, jars) | catalogs | stores


def _lake_conf(settings: SparkSettings, jars: tuple[Path, ...]) -> dict[str, str]:
    """Delta, the jars and the metastore, and what reads the metastore's Iceberg tables: `iceberg.db.t`. Without its
    cache, which would show what was head before."""
    conf = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    if settings.metastore_uri is not None:
        conf |= {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": settings.metastore_uri,
            ICEBERG_CATALOG: "org.apache.iceberg.spark.SparkCatalog",
            f"{ICEBERG_CATALOG}.type": "hive",
            f"{ICEBERG_CATALOG}.uri": settings.metastore_uri,
            f"{ICEBERG_CATALOG}.cache-enabled": "false",
        }
    if jars:
        conf["spark.jars"] = ",".join(map(str, jars))
    elif settings.jar_source is JarSource.PACKAGES:
        conf["spark.jars.packages"] = PACKAGES
    return conf
