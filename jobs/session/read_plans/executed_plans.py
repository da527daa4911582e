"""What Spark really executed: the plans of a session's own queries, as Spark tells its listeners.

A listener inside the JVM (`java.beans.EventHandler`, as in listener.py) keeps the events of one write in a bounded
queue of its own; taking the listener away waits until all of them are there. Nothing calls into Python.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import LakewardenError
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.read_plans.reads import versions_of
from lakewarden.jobs.session.writes import Read

__all__ = ["ExecutedPlans", "PlanRecorder"]

_CAPACITY: Final = 1_000
"""Events kept of one write. More, of a busy application: what did not fit was not seen."""
_END: Final = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd"
_LISTENER: Final = "org.apache.spark.scheduler.SparkListenerInterface"
_PREDICATE: Final = "java.util.function.Predicate"
_DEED: Final = "tell what it executed"


class ExecutedPlans:
    """What a block of code made one session execute. Known after the block."""

    def __init__(self) -> None:
        self.reads: tuple[Read, ...] | None = None
        """What was read; None where Spark did not tell, or not everything."""


class PlanRecorder:
    """Sees what sessions of one Spark application execute."""

    def __init__(self, spark: SparkSession, plans: Plans) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._plans = plans
        self._bus: Any = spark.sparkContext._jsc.sc().listenerBus()
        self._create: Any = jvm.java.beans.EventHandler.create
        self._queue: Any = jvm.java.util.concurrent.LinkedBlockingQueue
        end, predicate = (jvm.java.lang.Class.forName(one) for one in (_END, _PREDICATE))
        self._is_end: Any = self._create(predicate, end, "isInstance", "")
        self._interface: Any = jvm.java.lang.Class.forName(_LISTENER)

    @contextmanager
    def watching(self, session: Any, name: str) -> Iterator[ExecutedPlans]:
        """Gather what `session` (in the JVM) executes in the block; `name` is unique and names the queue."""
        evidence = ExecutedPlans()
        queue = self._queue(_CAPACITY)
        listener = self._create(self._interface, queue, "offer", "", "onOtherEvent")
        self._bus.addToQueue(listener, name)
        done = False
        try:
            yield evidence
            done = True
        finally:
            evidence.reads = self._collect(session, queue, listener, wanted=done)

    def _collect(self, session: Any, queue: Any, listener: Any, *, wanted: bool) -> tuple[Read, ...] | None:
        try:
            with translated(_DEED):
                self._bus.removeListener(listener)
                if not wanted or queue.remainingCapacity() == 0:
                    return None
                return self._reads(session, self._plans.items(queue.stream().filter(self._is_end).toList()))
        except LakewardenError:
            return None  # the write has been made; that nobody could watch is part of its result

    def _reads(self, session: Any, events: Sequence[Any]) -> tuple[Read, ...] | None:
        """The versions that the session's executions read; None if it had no execution at all."""
        found: list[Read] = []
        seen = False
        for event in events:
            execution = event.qe()
            if execution is None or not execution.sparkSession().equals(session):
                continue
            seen = True
            found += versions_of(self._plans, execution.optimizedPlan())
        return tuple(found) if seen else None
