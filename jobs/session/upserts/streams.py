"""An upsert of every batch of a streaming query, each once: its commit has the query's id and the batch's number."""

import logging
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from lakewarden.catalog.errors import LakewardenError, RefusedError, UsageError
from lakewarden.catalog.failpoints import reach
from lakewarden.jobs.session.conflicts.retries import RETRIES_OF_BATCHES
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.upserts.batch_reads import query_of, reads_of_batch
from lakewarden.jobs.session.writes import Upsert, Upserted, UpsertStream

__all__ = ["start"]


def start(stream: UpsertStream, run: Callable[[Upsert], Upserted]) -> StreamingQuery:
    """Start the query. Raises `UsageError` for a frame that is not a stream."""
    request = stream.each
    if not request.frame.isStreaming:
        raise UsageError("This DataFrame is not a stream.", hint="Use `lw.upsert` for it.")

    plans = Plans(request.frame.sparkSession)

    def upsert(frame: DataFrame, number: int) -> None:
        query = query_of(frame)
        if query is None:
            raise RefusedError(
                f"Nobody can tell which query batch {number} is of, and so whether it was done. Nothing was changed.",
                hint="This Spark is none of those that lakewarden knows: report it.",
            )
        reads = reads_of_batch(plans, query, number)
        batch = replace(request, frame=frame, operation=query, number=number, reads=reads, query=query)
        try:
            done = run(replace(batch, retries=RETRIES_OF_BATCHES))
        except LakewardenError as error:
            error.args = (error.in_full,)  # of an error the query keeps the text alone: with what to do
            raise
        reach("upsert.batch")
        if done.done_before:
            logging.getLogger("lakewarden").info(
                "Batch %d of query %s is in %s already.", number, query, request.table
            )

    writer = request.frame.writeStream.foreachBatch(upsert).outputMode(stream.output_mode)
    if stream.trigger:
        writer = writer.trigger(**stream.trigger)
    query: StreamingQuery = writer.option("checkpointLocation", stream.checkpoint).start()
    return query
