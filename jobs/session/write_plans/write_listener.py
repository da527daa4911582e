"""What plain Spark writes in a session, and which versions of tables it has read for that.

Spark tells its listeners when a command has ended, with its plan. Which commit came of it the table's log tells: the
only one that has no record of ours and was made between the command's beginning and its end. A full queue drops events,
and what is not understood is not told: then the write is one of which nobody knows what it read.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.clock import from_millis
from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.lineage.write_notes import SeenRead, WriteNote
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.session.formats.plan_parts import WitnessedTarget
from lakewarden.jobs.session.jvm_queue import JvmQueue
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.read_plans.reads import place_of_leaf, reads_of_leaf, unmoved_read
from lakewarden.jobs.session.session_formats import FORMATS, first_known
from lakewarden.jobs.session.writes import Read

__all__ = ["WriteListener"]

_EVENT: Final = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
_INTERFACE: Final = "org.apache.spark.scheduler.SparkListenerInterface"
_PREDICATE: Final = "java.util.function.Predicate"
_NAME: Final = "lakewarden-writes"
_FLUSH_MILLISECONDS: Final = 1_000
_BEGUN_AT_ONCE: Final = 1_000
"""Commands whose end is waited for."""
_ROWS: Final = ("AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic")
_CHANGES: Final = ("ReplaceData", "WriteDelta")
"""How Spark itself changes rows. Where nothing changes, no commit may come of it."""
_OF_A_CHANGE: Final = "RowLevelOperationTable"
_DEED: Final = "tell of its writes"


class WriteListener:
    """The writes of one session; not those of its clones, such as governed ones and batches of streams. Raises
    `UsageError` for a Spark Connect session, `LakewardenError` if Spark does not let us listen."""

    def __init__(self, spark: SparkSession) -> None:
        with translated(_DEED):
            self._queue = JvmQueue(spark, _INTERFACE, "onOtherEvent")
            self._plans = Plans(spark)
            self._is_start, self._is_end = (self._is_a(f"{_EVENT}{one}") for one in ("Start", "End"))
            self._bus: Any = self._queue.session.sparkContext().listenerBus()
            self._bus.addToQueue(self._queue.listener, _NAME)
        self._begun: dict[int, int] = {}

    def drain(self) -> Sequence[WriteNote]:
        """The writes since the last call; waits for nothing. Raises a `LakewardenError` if the session has ended."""
        with translated(_DEED):
            while not (events := self._queue.drain()).isEmpty():
                for event in self._plans.items(events.stream().filter(self._is_start).toList()):
                    if len(self._begun) < _BEGUN_AT_ONCE:
                        self._begun[int(event.executionId())] = int(event.time())
                ends = self._plans.items(events.stream().filter(self._is_end).toList())
                if notes := tuple(self._notes(ends)):
                    return notes
        return ()

    def close(self) -> None:
        """See nothing more. What was seen before can still be drained."""
        with suppress(LakewardenError), translated(_DEED):  # events are told by another thread: let it finish
            self._bus.waitUntilEmpty(_FLUSH_MILLISECONDS)
        with suppress(LakewardenError), translated(_DEED):  # if the JVM is gone, so is the listener
            self._bus.removeListener(self._queue.listener)

    def _is_a(self, name: str) -> Any:
        """A predicate in the JVM."""
        java = self._queue.jvm.java
        of, predicate = (java.lang.Class.forName(one) for one in (name, _PREDICATE))
        return java.beans.EventHandler.create(predicate, of, "isInstance", "")

    def _notes(self, ends: Sequence[Any]) -> Iterator[WriteNote]:
        for event in ends:
            began, execution = self._begun.pop(int(event.executionId()), None), event.qe()
            if began is None or execution is None or event.executionFailure().isDefined():
                continue
            if execution.sparkSession().equals(self._queue.session):
                note = self._note(execution, began, int(event.time()))
                if note is not None:
                    yield note

    def _note(self, execution: Any, began: int, ended: int) -> WriteNote | None:
        analysed = execution.analyzed()
        target = self._target(analysed)
        if target is None:
            return None
        plan, version = execution.optimizedPlan(), None
        if kind(analysed) in _CHANGES:
            write = self._plans.option(plan.write()) if kind(plan) in _CHANGES else None
            version = None if write is None else first_known(one.committed_by(write) for one in FORMATS)
            if version is None:
                return None
        found = [one for one in self._reads(plan.query()) if not _is_own(one, target, analysed)]
        versioned = [one for one in found if one.version is not None]
        named = set(self._named(analysed.query()))
        told = {one.location for one in versioned} | ({target.location} if version is not None else set())
        return WriteNote(
            location=target.location,
            began=from_millis(began),
            ended=from_millis(ended),
            version=version,
            reads=tuple(dict.fromkeys(_seen(one) for one in versioned)),
            # Of rows that are none there may be no commit: then it may be somebody else's.
            complete=target.runs_its_plan and len(versioned) == len(found) and named <= told,
            twice=not target.runs_its_plan,
        )

    def _target(self, analysed: JavaPlan) -> WitnessedTarget | None:
        name = kind(analysed)
        if name not in (*_ROWS, *_CHANGES):
            return None
        relation = analysed.originalTable() if name in _CHANGES else analysed.table()
        table = relation.table() if kind(relation) == "DataSourceV2Relation" else None
        return None if table is None else first_known(one.witnessed(table, name) for one in FORMATS)

    def _reads(self, query: JavaPlan) -> Iterator[Read]:
        for leaf in self._plans.leaves(query):
            read = unmoved_read(self._plans, leaf)
            yield from reads_of_leaf(self._plans, leaf) if read is None else (read,)

    def _named(self, query: JavaPlan) -> Iterator[str]:
        """The places of the tables with versions in an analysed query: what is answered from their metadata alone is in
        no plan that was run."""
        found = (place_of_leaf(self._plans, leaf) for leaf in self._plans.leaves(query))
        yield from (one for one in found if one is not None)


def _is_own(read: Read, target: WitnessedTarget, analysed: JavaPlan) -> bool:
    """Whether a read is how a change finds the rows that it changes."""
    if kind(analysed) not in _CHANGES or read.version is not None:
        return False
    return read.format == _OF_A_CHANGE or read.location == target.location


def _seen(read: Read) -> SeenRead:
    assert read.version is not None, "others are not kept"
    return SeenRead(
        location=read.location,
        version=read.version,
        from_version=read.from_version,
        format_id=read.format_id,
    )
