"""The one Spark session of a worker process, whichever engine asks first."""

import threading
import time
from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession

from lakewarden.catalog.logs import get_log
from lakewarden.jobs.engines.spark.errors import is_stopped
from lakewarden.jobs.engines.spark.session import start_session
from lakewarden.jobs.runs.spark_settings import SparkSettings

__all__ = ["worker_session"]

_LOCK: Final = threading.Lock()
_STARTED: Final[dict[SparkSettings, SparkSession]] = {}


def worker_session(settings: SparkSettings) -> Callable[[], SparkSession]:
    """Starts the session where that has not been done, with a word in the worker's log how long it took."""

    def session() -> SparkSession:
        with _LOCK:
            known = _STARTED.get(settings)
            if known is not None and not is_stopped(known.sparkContext):
                return known
            began = time.monotonic()
            spark = _STARTED[settings] = start_session(settings)
            seconds = round(time.monotonic() - began, 1)
            get_log("worker").info("Spark has started", master=settings.master, seconds=seconds)
            return spark

    return session
