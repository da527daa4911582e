"""The progress of a session's streaming queries.

Spark tells its listeners of each batch after its commit.
Ours implements the interface that PySpark's own listeners have.
A full queue drops events: then a declared checkpoint has to tell.

Seen: queries of the attached session that write a table with versions by its own sink. `foreachBatch` is no sink
of a table.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import LakewardenError, UsageError
from lakewarden.catalog.lineage.streams.offsets import NOT_SAID, Began, SourceOffsets, StreamBatch
from lakewarden.catalog.lineage.streams.session_notes import StreamNote
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.session.jvm_queue import JvmQueue
from lakewarden.jobs.session.plans import kind
from lakewarden.jobs.session.session_formats import FORMATS, first_known

__all__ = ["StreamListener", "began_with", "note_of"]

_INTERFACE: Final = "org.apache.spark.sql.streaming.PythonStreamingQueryListener"
_FLUSH_MILLISECONDS: Final = 1_000
_FIRST_API: Final = "StreamingExecutionRelation"
_SECOND_API: Final = "StreamingDataSourceV2ScanRelation"
_DEED: Final = "tell of its streams"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Beginning:
    """What a query began with."""

    began: Began = NOT_SAID
    initial: tuple[str | None, ...] = ()
    """By source, its first offset."""


_NOTHING_KNOWN: Final = _Beginning()


class StreamListener:
    """`SessionEvents` of one session. Raises `UsageError` for a Spark Connect session, `LakewardenError` if
    Spark does not let us listen."""

    def __init__(self, spark: SparkSession) -> None:
        with translated(_DEED):
            self._queue = JvmQueue(spark, _INTERFACE, "onQueryProgress")
            streaming = self._queue.jvm.org.apache.spark.sql.streaming
            self._listener: Any = streaming.PythonStreamingQueryListenerWrapper(self._queue.listener)
            self._queries: Any = self._queue.session.streams()
            self._queries.addListener(self._listener)
            self._bus: Any = self._queue.session.sparkContext().listenerBus()
        self._beginnings: dict[str, _Beginning] = {}
        self._sinks: dict[tuple[str, str], str | None] = {}

    def drain(self) -> Sequence[StreamNote]:
        """See `SessionEvents`."""
        with translated(_DEED):
            # Iterating over a Java list would end in an exception, which takes ten times as long as a call.
            events = self._queue.drain()
            return tuple(
                self._notes([events.get(number).progress().json() for number in range(events.size())])
            )

    def close(self) -> None:
        """See `SessionEvents`."""
        with suppress(LakewardenError), translated(_DEED):  # events are told by another thread: let it finish
            self._bus.waitUntilEmpty(_FLUSH_MILLISECONDS)
        with suppress(LakewardenError), translated(_DEED):  # if the JVM is gone, so is the listener
            self._queries.removeListener(self._listener)

    def _notes(self, told: Sequence[str]) -> Iterator[StreamNote]:
        for text in told:
            note = note_of(text, self._sink_at)
            if note is not None:
                yield replace(note, batch=self._begun(note.batch))

    def _sink_at(self, run_id: str, description: str) -> str | None:
        """Where a sink lies that a catalog names; asked once for each run of a query."""
        if (run_id, description) not in self._sinks:
            try:
                with translated(_DEED):
                    queue = self._queue
                    found = first_known(
                        one.sink_found(queue.session, queue.jvm, description) for one in FORMATS
                    )
            except LakewardenError:
                found = None  # its catalog does not answer: a declared checkpoint has to tell
            self._sinks[run_id, description] = found
        return self._sinks[run_id, description]

    def _begun(self, batch: StreamBatch) -> StreamBatch:
        """With what the query began with: known where its first batch was seen while it still runs."""
        if batch.query_id not in self._beginnings:
            known = self._look(batch.query_id) if batch.epoch == 0 else _NOTHING_KNOWN
            self._beginnings[batch.query_id] = known
        known = self._beginnings[batch.query_id]
        if len(known.initial) != len(batch.sources):
            return replace(batch, began=known.began)
        sources = (
            replace(source, initial=told) for source, told in zip(batch.sources, known.initial, strict=True)
        )
        return replace(batch, began=known.began, sources=tuple(sources))

    def _look(self, query_id: str) -> _Beginning:
        """What a running query began with, as its sources tell."""
        try:
            with translated(_DEED):
                query = self._queries.get(query_id)
                if query is None:
                    return _NOTHING_KNOWN
                every = query.streamingQuery().logicalPlan().collectLeaves()
                leaves = [every.apply(number) for number in range(every.length())]
                sources = [leaf.source() for leaf in leaves if kind(leaf) == _FIRST_API]
                initial = tuple(_initial_offset(leaf) for leaf in leaves if leaf.isStreaming())
                return _Beginning(began=began_with(sources), initial=initial)
        except LakewardenError:
            return _NOTHING_KNOWN  # the query has ended, or Spark keeps it elsewhere


def began_with(sources: Sequence[Any]) -> Began:
    """What a query with these sources began with."""
    told = (one.began(sources) for one in FORMATS)
    return next((one for one in told if one != NOT_SAID), NOT_SAID)


def _initial_offset(leaf: Any) -> str | None:
    """What a running query began to read with, by the leaf of its plan. Raises Spark's own errors."""
    if kind(leaf) != _SECOND_API:
        return None
    return first_known(one.initial_offset(leaf.stream()) for one in FORMATS)


def _nowhere(run_id: str, description: str) -> None:
    return None


def note_of(text: str, sink_at: Callable[[str, str], str | None] = _nowhere) -> StreamNote | None:
    """What a progress event (JSON text) says of a batch in a table; None if it says nothing of one. `sink_at` tells
    where a sink lies whose description names no place, by the id of the query's run. Pure but for that."""
    try:
        told = orjson.loads(text)
        description = told["sink"]["description"]
        place = first_known(one.sink_named(description) for one in FORMATS)
        sink = sink_at(told["runId"], description) if place is None else place
        if sink is None:
            return None
        batch = StreamBatch(
            query_id=str(told["id"]),
            epoch=int(told["batchId"]),
            sources=tuple(_source(one) for one in told["sources"]),
            stateful=bool(told.get("stateOperators")),
        )
        return StreamNote(sink=sink, batch=batch)
    except (ValueError, KeyError, TypeError, AttributeError, UsageError):
        return None  # a progress of a Spark of tomorrow: its batches are not known


def _source(told: Mapping[str, Any]) -> SourceOffsets:
    return SourceOffsets(
        start=_offset(told.get("startOffset")),
        end=_offset(told.get("endOffset")),
    )


def _offset(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()
