"""What Spark tells its listeners, taken to Python without a single call from the JVM into Python.

Spark calls listeners in a thread of its own, the catalog's in that of the statement.
Ours is a `java.beans.EventHandler`:
a proxy inside the JVM that offers the event to a bounded `LinkedBlockingQueue` and returns, in microseconds;
a full queue drops it. A listener in Python would add a round trip to each statement,
and hang it whenever the interpreter hangs.
"""

from datetime import timedelta
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import UsageError

__all__ = ["JvmQueue"]

_CAPACITY: Final = 10_000
_AT_ONCE: Final = 500


class JvmQueue:
    """Events of the JVM of `spark`, in their order. `listener` is a proxy there of a Java `interface`, to be registered
    with Spark; it keeps the argument of each call, or only of calls of `method`. `jvm` and `session` are the
    JVM and the session there.

    Raises `UsageError` for a Spark Connect session: its JVM is elsewhere. Every method may raise Spark's own errors.
    """

    def __init__(self, spark: SparkSession, interface: str, method: str | None = None) -> None:
        self.session: Any = getattr(spark, "_jsparkSession", None)
        if self.session is None:
            raise UsageError(
                "A Spark Connect session cannot be attached: its driver, and what it reads "
                "and writes, is elsewhere.",
                hint="Attach in the driver itself, or send SQL through `lakewarden gateway`; "
                "what is written from here is found by the sweep.",
            )
        jvm: Any = spark.sparkContext._jvm
        java, self.jvm = jvm.java, jvm
        self._events: Any = java.util.concurrent.LinkedBlockingQueue(_CAPACITY)
        self._new_list: Any = java.util.ArrayList
        self._milliseconds: Any = java.util.concurrent.TimeUnit.MILLISECONDS
        only = () if method is None else (method,)
        of = java.lang.Class.forName(interface)
        self.listener: Any = java.beans.EventHandler.create(of, self._events, "offer", "", *only)

    def wait(self, timeout: timedelta) -> Any:
        """The next event; None if there is none within `timeout`."""
        return self._events.poll(timeout // timedelta(milliseconds=1), self._milliseconds)

    def drain(self) -> Any:
        """A Java list of what waits, at most 500 events."""
        found = self._new_list()
        self._events.drainTo(found, _AT_ONCE)
        return found

    def offer(self, event: str) -> None:
        """Put in something of our own: it ends a `wait`."""
        self._events.offer(event)
