"""What a Spark session of one's own has to be started with, to work on the tables of an installation."""

from collections.abc import Callable, Mapping

from lakewarden.catalog.errors import LakewardenError
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.workers.pool import spark_settings
from lakewarden.jobs.engines.spark.requirements import conf_for_others

__all__ = ["spark_config_of"]


def spark_config_of(services: Services, *, tell: Callable[[str], None]) -> Mapping[str, str]:
    """Delta's extension, catalog and jars (fetched first, where the cache lacks them), the metastore, and how storages
    are reached; neither sizes nor secrets. Raises `PreconditionError`, `UnavailableError` where jars cannot be had."""

    def stays_out(error: LakewardenError) -> None:
        tell(f"Without S3: {error.in_full}")

    return conf_for_others(spark_settings(services.settings), stays_out=stays_out)
