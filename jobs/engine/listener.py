"""Catalog events of a Spark application, without a single call from the JVM into Python.

Spark's catalog calls its listeners in the thread of the statement. Ours is a `java.beans.EventHandler`: a proxy inside
the JVM that offers the event to a bounded `LinkedBlockingQueue` and returns, in microseconds; a full queue drops it. A
listener in Python would add a round trip to each statement, and hang it whenever the interpreter hangs.

Seen: CREATE, DROP, RENAME, ALTER and CONVERT by name in the session catalog, and DROP DATABASE as a whole. Not seen:
anything by path, other catalogs, other applications. These are hints; the sweep is the truth.
"""

import re
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import LakewardenError, UnavailableError, UsageError
from lakewarden.catalog.state.base import HintKind
from lakewarden.jobs.attach import Sighting
from lakewarden.jobs.engine.errors import translated

__all__ = ["CatalogListener", "SparkSession", "sightings"]

_LISTENER: Final = "org.apache.spark.sql.catalyst.catalog.ExternalCatalogEventListener"
_CAPACITY: Final = 10_000
_AT_ONCE: Final = 500
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
        session: Any = getattr(spark, "_jsparkSession", None)
        if session is None:
            raise UsageError(
                "A Spark Connect session cannot be listened to.",
                hint="Attach in the driver itself; without it the sweep finds the tables all the same.",
            )
        jvm: Any = spark.sparkContext._jvm
        with translated(_DEED):
            self._context: Any = session.sparkContext()
            self._queue: Any = jvm.java.util.concurrent.LinkedBlockingQueue(_CAPACITY)
            self._new_list: Any = jvm.java.util.ArrayList
            self._milliseconds: Any = jvm.java.util.concurrent.TimeUnit.MILLISECONDS
            interface = jvm.java.lang.Class.forName(_LISTENER)
            self._listener: Any = jvm.java.beans.EventHandler.create(interface, self._queue, "offer", "")
            self._catalog: Any = session.sharedState().externalCatalog()
            self._catalog.addListener(self._listener)

    def poll(self, timeout: timedelta) -> Sequence[Sighting]:
        """See `CatalogEvents`. Raises `UnavailableError` once the application has ended and all was told."""
        with translated(_DEED):
            first = self._queue.poll(timeout // timedelta(milliseconds=1), self._milliseconds)
            if first is None:
                if self._context.isStopped():
                    raise UnavailableError("The Spark application has ended.")
                return ()
            if timeout:
                time.sleep(_GATHERING_SECONDS)
            more = self._new_list()
            self._queue.drainTo(more, _AT_ONCE)
            # One call for all: each costs the interpreter some 0.2 ms, which the user's job may want.
            return sightings(f"{first} {more.toString()}")

    def close(self) -> None:
        """See `CatalogEvents`."""
        try:
            with translated(_DEED):
                self._catalog.removeListener(self._listener)
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
