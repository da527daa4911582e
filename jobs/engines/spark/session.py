"""The Spark session of a worker: how it is started, and let go of."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import LakewardenError, RefusedError
from lakewarden.catalog.logs import get_log
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.java import java_command
from lakewarden.jobs.engines.spark.requirements import with_jars
from lakewarden.jobs.engines.spark.yarn import require_cluster
from lakewarden.jobs.runs.log_stores import WHAT_TO_DO, why_not
from lakewarden.jobs.runs.spark_settings import SparkSettings, is_secret_conf, session_conf

__all__ = [
    "abandon_session",
    "require_safe_commits",
    "start_session",
]


def start_session(settings: SparkSettings) -> SparkSession:
    """Start Spark: 4 to 10 seconds. Raises `PreconditionError` without Java, or with YARN nobody knows where,
    `UnavailableError` if it does not start."""
    java_command()
    require_cluster(settings.master)
    settings, jars = with_jars(settings, stays_out=_stays_out)
    # Executors would take whatever python3 is on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    conf = session_conf(settings, cores=os.cpu_count() or 1, jars=jars)
    for key, value in conf.items():
        builder = builder.config(key, value)
    with translated("start Spark"):
        _start_jvm({key: value for key, value in conf.items() if not is_secret_conf(key)})
        return builder.getOrCreate()


def _stays_out(error: LakewardenError) -> None:
    get_log("spark").warning("Spark stays out of S3", because=str(error), hint=error.hint)


def require_safe_commits(spark: SparkSession, location: str) -> None:
    """Return if this very session may work on a table at a canonical location. Raises `RefusedError`."""
    if location.startswith(("file://", "hdfs://")):
        return  # what follows asks the JVM
    because = why_not(location, dict(spark.sparkContext.getConf().getAll()))
    if because is not None:
        raise RefusedError(f"{because}.", hint=WHAT_TO_DO)


def abandon_session(spark: SparkSession) -> None:
    """Let go of an application that has ended, its JVM or only its context, so that this process can start another."""
    gateway: Any = SparkContext._gateway
    with suppress(PySparkException, Py4JError, OSError):
        spark.stop()
    if gateway is not None:
        with suppress(Py4JError, OSError):
            gateway.shutdown()
        with suppress(OSError):
            gateway.proc.stdin.close()  # what is left of the JVM ends by that
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def _start_jvm(conf: Mapping[str, str]) -> None:
    """What PySpark starts Java with stands on its command line, for everybody to read: it gets the rest later,
    through its socket."""
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(conf.items())))
