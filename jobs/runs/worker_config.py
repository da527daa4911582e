"""What the daemon tells a worker process, as one value: JSON on its standard input. Imports nothing of PySpark."""

from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import TypeAdapter, ValidationError

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.metastore.lookup import SYSTEM
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.catalog.storage.secret_files import known
from lakewarden.jobs.runs.spark_settings import SparkSettings, is_secret_conf

__all__ = ["WorkerConfig", "read_config", "secrets_of", "write_config"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerConfig:
    """`name` is unique among live workers. `parent` is the process whose end is ours too; None: nobody's.

    `lease` is how long a run stays ours without a report, `heartbeat` how often we report, `longest_run` when a run
    counts as stuck; after `idle` without work the worker ends; `poll` is how often an idle one asks for work.
    `system_location` is where the system tables are (None: none, and no rollbacks either), `system_database` where the
    metastore has them; a rollback can be undone for `undo_for`.
    """

    name: str
    database_url: str = field(repr=False)
    parent: int | None = None
    spark: SparkSettings = field(default_factory=SparkSettings)
    storage: StorageMap = field(default_factory=StorageMap)
    lease: timedelta = timedelta(seconds=60)
    heartbeat: timedelta = timedelta(seconds=10)
    longest_run: timedelta = timedelta(days=1)
    system_location: str | None = None
    system_database: str = SYSTEM
    undo_for: timedelta = timedelta(days=7)
    idle: timedelta = timedelta(minutes=10)
    poll: timedelta = timedelta(milliseconds=500)
    log_level: str = "info"


def secrets_of(config: WorkerConfig) -> frozenset[str]:
    """The values in it that nobody may read: the database's password, secret storage options and Spark settings. Those
    in files as they are now."""
    options = (pair for _, options in config.storage.prefixes for pair in known(options).items())
    secrets = {value for key, value in (*config.spark.conf, *options) if is_secret_conf(key)}
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
