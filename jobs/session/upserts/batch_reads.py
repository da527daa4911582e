"""What a batch of a running streaming query reads. Spark gives foreachBatch rows without an origin, but the query
knows: the offsets of the batch say what came from its streams, the plan of its last execution what else it read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame

from lakewarden.catalog.errors import LakewardenError, PreconditionError
from lakewarden.catalog.formats.stream_sources import FindTable, KnownTable, KnownTables
from lakewarden.catalog.lineage.streams.offsets import (
    NOT_SAID,
    SourceOffsets,
    StreamBatch,
    StreamReads,
    inside_version,
    reads_of,
    uuid_in,
)
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.session.formats.stream_parts import StreamOrigin
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.read_plans.reads import reads_of_leaf
from lakewarden.jobs.session.session_formats import FORMATS, first_known
from lakewarden.jobs.session.stream_listener import began_with
from lakewarden.jobs.session.writes import Read

__all__ = ["UNKNOWN", "query_of", "reads_of_batch", "require_whole_versions"]

UNKNOWN: Final = Read(location="", format="rdd")
"""Rows of which nobody can tell where they come from."""
_QUERY: Final = "sql.streaming.queryId"
_STATEFUL: Final = "org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter"


def query_of(frame: DataFrame) -> str | None:
    """The id of the streaming query that a frame is a batch of, None for any other. The thread that runs the batch
    knows; one that its function has started does not, but the batch has the session of its query alone."""
    told: str | None = frame.sparkSession.sparkContext.getLocalProperty(_QUERY)
    if told is not None:
        return told
    session: Any = frame._jdf.sparkSession()
    running = Plans(frame.sparkSession).listed(session.sharedState().activeStreamingQueries().values())
    return next((str(one.id()) for one in running if _runs_in(one, session)), None)


def reads_of_batch(plans: Plans, query: str | None, number: int) -> tuple[Read, ...]:
    """Of the batch that this thread runs; with `UNKNOWN` among them where not everything can be told."""
    if query is None:
        return (UNKNOWN,)
    try:
        with translated("tell what a batch reads"):
            running = _running(plans, query)
            return (UNKNOWN,) if running is None else _reads_of_running(plans, running, query, number)
    except LakewardenError:
        return (UNKNOWN,)  # a Spark of tomorrow keeps it elsewhere


def _runs_in(query: Any, session: Any) -> bool:
    """Whether a batch of a query runs in a session."""
    execution = query.lastExecution()
    return execution is not None and bool(execution.sparkSession().equals(session))


def require_whole_versions(plans: Plans, frame: DataFrame) -> None:
    """Return unless the frame is a batch of Delta's change feed that begins or ends in the middle of a version: what is
    deleted and what is inserted in its place may then be in two batches, in any order. Raises `PreconditionError`."""
    query = query_of(frame)
    running = None if query is None else _running(plans, query)
    if running is None:
        return
    number = int(running.lastExecution().currentBatchId())
    offsets = running.offsetLog()
    for known, then in (
        (_told(plans, offsets, number - 1), "start it with a new checkpoint"),
        (_told(plans, offsets, number), f"remove offsets/{number} from the checkpoint, and start it again"),
    ):
        split = next(filter(None, map(inside_version, known)), None)  # version 0 has only insertions
        if split is not None:
            raise PreconditionError(
                f"Batch {number} has a part of version {split} of its change feed: a rate limit splits it.",
                hint="Raise maxFilesPerTrigger (1,000 unless set) and maxBytesPerTrigger of the source above "
                f"what one commit has, and {then}.",
            )


def _running(plans: Plans, query: str) -> Any:
    """The query of an id, None if it does not run here."""
    session: Any = plans.spark._jsparkSession
    # Of the whole application: each query runs in a session of its own.
    return session.sharedState().activeStreamingQueries().get(plans.java.UUID.fromString(query))


def _reads_of_running(plans: Plans, running: Any, query: str, number: int) -> tuple[Read, ...]:
    sources = plans.sequence(running.sources())
    tables = [
        first_known(one.streamed(leaf) for one in FORMATS) for leaf in plans.leaves(running.logicalPlan())
    ]
    batch = StreamBatch(
        query_id=query,
        epoch=number,
        sources=_offsets(plans, running.offsetLog(), number, sources),
        stateful=_has_state(plans, running.lastExecution().executedPlan()),
        began=began_with(sources) if number == 0 else NOT_SAID,
    )
    if len(batch.sources) != len(sources):
        return (UNKNOWN,)
    told = reads_of(batch, KnownTables(by_format_id=_places(sources, batch), find=_among(tables)))
    return tuple(dict.fromkeys((*_streamed(told), *_besides(plans, running.lastExecution().optimizedPlan()))))


def _among(tables: Iterable[StreamOrigin | None]) -> FindTable:
    def find(format_: TableFormat, own_id: str, near: str | None) -> KnownTable | None:
        found = (one.known(own_id, near) for one in tables if one is not None)
        return next((one for one in found if one is not None), None)

    return find


def _offsets(plans: Plans, log: Any, number: int, sources: Sequence[Any]) -> tuple[SourceOffsets, ...]:
    """By source: where the batch begins and ends; `first` only matters to a query with state."""
    end = _told(plans, log, number)
    start = _told(plans, log, number - 1) if number else [None] * len(end)
    first = _told(plans, log, 0) if number else end
    if not (len(start) == len(end) == len(first)):
        start = first = [None] * len(end)  # purged: then everything up to the end counts as read
    began = [first_known(one.initial_offset(source) for one in FORMATS) for source in sources]
    if len(began) != len(end):
        began = [None] * len(end)
    return tuple(
        SourceOffsets(start=begin, end=upto, first=early, initial=initial)
        for begin, upto, early, initial in zip(start, end, first, began, strict=True)
    )


def _told(plans: Plans, log: Any, number: int) -> Sequence[str | None]:
    found = plans.option(log.get(number))
    if found is None:
        return ()
    offsets = (plans.option(one) for one in plans.sequence(found.offsets()))
    return [None if one is None else str(one.json()) for one in offsets]


def _places(sources: Sequence[Any], batch: StreamBatch) -> Mapping[str, str]:
    """Where the tables lie whose UUIDs the offsets name."""
    places = {}
    for source, told in zip(sources, batch.sources, strict=True):
        format_id = uuid_in(told.end)
        place = None if format_id is None else first_known(one.source_place(source) for one in FORMATS)
        if format_id is not None and place is not None:
            places[format_id] = place
    return places


def _streamed(told: StreamReads) -> Iterator[Read]:
    for one in told.inputs:
        yield Read(
            location=one.location if one.table_id is None else one.table_id,  # the place that `_places` gave
            format=one.format,
            version=one.version,
            from_version=one.from_version,
            format_id=one.format_id,
        )
    if not told.complete:
        yield UNKNOWN


def _besides(plans: Plans, plan: Any) -> Iterator[Read]:
    """What a batch reads beside its streams: tables that these are joined with."""
    for leaf in plans.leaves(plan):
        if not leaf.isStreaming():
            yield from reads_of_leaf(plans, leaf)


def _has_state(plans: Plans, plan: Any) -> bool:
    """Whether rows of earlier batches may come out of this one."""
    jvm: Any = plans.spark.sparkContext._jvm
    stateful = jvm.java.lang.Class.forName(_STATEFUL)
    return any(stateful.isInstance(node) for node in plans.nodes(plan))
