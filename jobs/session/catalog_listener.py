"""Catalog events of a Spark application.

Seen: CREATE, DROP, RENAME, ALTER and CONVERT by name in the session catalog, and DROP DATABASE as a whole. Not seen:
anything by path, other catalogs, other applications. These are hints; the sweep is the truth.
"""

import re
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.state.port import HintKind
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.session.attached import Sighting
from lakewarden.jobs.session.jvm_queue import JvmQueue

__all__ = ["CatalogListener", "SparkSession", "sightings"]

_LISTENER: Final = "org.apache.spark.sql.catalyst.catalog.ExternalCatalogEventListener"
_GATHERING_SECONDS: Final = 0.1
"""What comes so soon after a first event is taken with it."""
_EVENT: Final = re.compile(r"\b([A-Z][A-Za-z]+)Event\((\w+)(?:,(\w+))?(?:,(\w+))?\)")
_WAKE: Final = "wake up"
_DEED: Final = "tell what happens in its catalog"


class CatalogListener:
    """`CatalogEvents` of the application a session belongs to: all sessions of an application share one catalog.

    Raises `UsageError` for a Spark Connect session (its JVM is elsewhere), `LakewardenError` when Spark does not let
    us listen.
    """

    def __init__(self, spark: SparkSession) -> None:
        with translated(_DEED):
            self._queue = JvmQueue(spark, _LISTENER)
            self._context: Any = self._queue.session.sparkContext()
            self._catalog: Any = self._queue.session.sharedState().externalCatalog()
            self._catalog.addListener(self._queue.listener)

    def poll(self, timeout: timedelta) -> Sequence[Sighting]:
        """See `CatalogEvents`. Raises `UnavailableError` once the application has ended and all was told."""
        with translated(_DEED):
            first = self._queue.wait(timeout)
            if first is None:
                if self._context.isStopped():
                    raise UnavailableError("The Spark application has ended.")
                return ()
            if timeout:
                time.sleep(_GATHERING_SECONDS)
            # One call for all: each costs the interpreter some 0.2 ms, which the user's job may want.
            return sightings(f"{first} {self._queue.drain().toString()}")

    def close(self) -> None:
        """See `CatalogEvents`."""
        try:
            with translated(_DEED):
                self._catalog.removeListener(self._queue.listener)
                self._queue.offer(_WAKE)
        except LakewardenError:
            return  # the JVM is gone, and the listener with it


def sightings(events: str) -> Sequence[Sighting]:
    """What ExternalCatalogEvents say, given as text: `CreateTableEvent(db,t)`. Pure.

    Spark allows only letters, digits and `_` in names here. Each event is announced before (`...PreEvent`) and told
    afterwards; only the latter counts.
    """
    found: list[Sighting] = []
    for kind, database, table, new in _EVENT.findall(events):
        match kind:
            case "CreateTable":
                found.append(_sighting(database, table, HintKind.CREATED))
            case "DropTable":
                found.append(_sighting(database, table, HintKind.DROPPED))
            case "AlterTable":  # CONVERT TO DELTA is one of these, and nothing tells it from others
                found.append(_sighting(database, table, HintKind.ALTERED))
            case "RenameTable":
                found.append(_sighting(database, table, HintKind.DROPPED))
                found.append(_sighting(database, new, HintKind.CREATED))
            case "DropDatabase":
                found.append(_sighting(database, "*", HintKind.DROPPED))
    return found


def _sighting(database: str, table: str, kind: HintKind) -> Sighting:
    return Sighting(f"{database}.{table}".lower(), kind)
