"""What the daemon tells a worker process, as one value: JSON on its standard input. Imports nothing of PySpark."""

from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import TypeAdapter, ValidationError

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.metastore.lookup import SYSTEM
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.catalog.storage.secret_files import known
from lakewarden.jobs.runs.spark_settings import SparkSettings, is_secret_conf

__all__ = ["WorkerConfig", "read_config", "secrets_of", "write_config"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerConfig:
    """How a worker process works, and for whom."""

    name: str
    """Unique among live workers."""
    database_url: str = field(repr=False)
    parent: int | None = None
    """The process whose end is the worker's, too; None: nobody's."""
    spark: SparkSettings = field(default_factory=SparkSettings)
    storage: StorageMap = field(default_factory=StorageMap)
    catalogs: tuple[CatalogDeclaration, ...] = ()
    """Those that keep heads beside the metastore."""
    lease: timedelta = timedelta(seconds=60)
    """How long a run stays ours without a report."""
    heartbeat: timedelta = timedelta(seconds=10)
    """How often we report."""
    longest_run: timedelta = timedelta(days=1)
    """A run that takes longer is stuck."""
    system_location: str | None = None
    """Where the system tables are; without them there are no rollbacks either."""
    system_database: str = SYSTEM
    """Where the metastore has them."""
    undo_for: timedelta = timedelta(days=7)
    """How long a rollback can be undone."""
    idle: timedelta = timedelta(minutes=10)
    """After so long without work the worker ends."""
    poll: timedelta = timedelta(milliseconds=500)
    """How often an idle worker asks for work."""
    log_level: str = "info"


def secrets_of(config: WorkerConfig) -> frozenset[str]:
    """The values in it that nobody may read: the database's password, secret storage options and Spark settings. Those
    in files as they are now."""
    each = (*(one for _, one in config.storage.prefixes), *(one.options for one in config.catalogs))
    options = (pair for one in each for pair in known(one).items())
    secrets = {
        value for key, value in (*config.spark.conf, *config.spark.catalogs, *options) if is_secret_conf(key)
    }
    user, _, rest = config.database_url.partition("://")[2].partition(":")
    said = "" if {"/", "@"} & set(user) else rest.rpartition("@")[0]
    more = (value for key, value in parse_qsl(urlsplit(config.database_url).query) if is_secret_conf(key))
    return frozenset(filter(None, (*secrets, said, unquote(said), *more)))


_ADAPTER = TypeAdapter(WorkerConfig)


def write_config(config: WorkerConfig) -> str:
    """The form `read_config` reads. Holds secrets: hand it to the process itself, never to its command line."""
    return _ADAPTER.dump_json(config).decode()


def read_config(text: str) -> WorkerConfig:
    """Raises `UsageError` for anything that `write_config` did not write."""
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        raise UsageError(
            "The worker got no configuration that it understands.",
            hint="The daemon starts workers; nobody else has to.",
        ) from error
