"""`lakewarden.attach(spark)`: connects a user's own Spark session to an installation."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lakewarden.catalog.spool import Spool
from lakewarden.catalog.state.base import HintSink
from lakewarden.daemon.governed import execute
from lakewarden.daemon.wiring import Services, open_services
from lakewarden.jobs.attach import Attached
from lakewarden.jobs.engine.frames import DataFrame, frame_of, refresh_table, run_sql
from lakewarden.jobs.engine.listener import CatalogListener, SparkSession
from lakewarden.jobs.sql.grammar import parse
from lakewarden.jobs.sql.statements import ConvertToDelta

__all__ = ["attach"]


def attach(
    spark: SparkSession, *, home: Path | str | None = None, settings: Mapping[str, str] | None = None
) -> Attached:
    """Tell the daemon at once of tables that this Spark application converts, creates or drops; run governed SQL.

    `home` and `settings` (key -> text, as in `--set`) find the installation, as for the `lakewarden` command; a driver
    on another machine needs `system.location` and, for the quick way, `database.url`. Neither has to answer: what
    cannot be told is found by the sweep. Raises `UsageError` for settings that make no sense.
    """
    services = open_services(home=None if home is None else Path(home), flags=settings)
    return Attached(
        CatalogListener(spark),
        sinks=lambda: _sinks(services),
        clock=services.clock,
        statements=lambda text: _run(services, spark, text),
    )


def _sinks(services: Services) -> Sequence[HintSink]:
    location = services.settings.system_location
    return services.inbox, Spool(location, services.storage(location), clock=services.clock)


def _run(services: Services, spark: SparkSession, text: str) -> DataFrame:
    services.require_initialised()
    result = execute(services, text, origin="session", tell=lambda _: None)
    if result is None:
        return run_sql(spark, text)
    statement = parse(text)
    if isinstance(statement, ConvertToDelta):
        refresh_table(spark, statement.where)  # a worker changed it behind this session's back
    return frame_of(spark, result)
