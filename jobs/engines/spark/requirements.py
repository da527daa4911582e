"""What does a session need besides Spark? The jars of the engine, those of S3 where buckets have options, settings."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from lakewarden.catalog.errors import LakewardenError
from lakewarden.jobs.engines.spark.jars import default_cache, resolve_jars
from lakewarden.jobs.engines.spark.s3.jars import s3_jars
from lakewarden.jobs.runs.s3a import is_for_s3, without_log_store
from lakewarden.jobs.runs.spark_settings import JarSource, SparkSettings, foreign_conf

__all__ = ["conf_for_others", "with_jars"]


def with_jars(
    settings: SparkSettings, *, stays_out: Callable[[LakewardenError], None]
) -> tuple[SparkSettings, tuple[Path, ...]]:
    """The jars for a session, fetched first where the cache lacks them, and the settings that hold with them: where
    those for S3 cannot be had, `stays_out` is told why, and our LogStore is not asked for. Raises what `resolve_jars`
    raises."""
    jars, cache = tuple[Path, ...](), settings.jars_cache or default_cache()
    if settings.jar_source is JarSource.MAVEN:
        jars = resolve_jars(cache)
    if not is_for_s3(dict(settings.conf)):
        return settings, jars
    try:
        return settings, (*jars, *s3_jars(cache, jars))
    except LakewardenError as error:  # tables elsewhere are worked on all the same, those on S3 refused
        stays_out(error)
        return replace(settings, conf=without_log_store(settings.conf)), jars


def conf_for_others(
    settings: SparkSettings, *, stays_out: Callable[[LakewardenError], None]
) -> Mapping[str, str]:
    """What somebody else's session has to be started with to work on our tables. No secrets."""
    held, jars = with_jars(settings, stays_out=stays_out)
    return foreign_conf(held, jars=jars)
