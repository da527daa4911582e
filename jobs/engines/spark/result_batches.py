"""The rows of a frame as Arrow batches, some partitions at a time.

Spark's own `collectAsArrowToPython` writes a result to its reader in the thread that schedules the tasks of everybody,
so one large result holds up all other statements. A job of `PythonRDD.runJob` only keeps what its tasks return, and
another thread of Spark's hands that over when the job is over; the next partitions run when it has been read. A plan
is run as `Dataset.rdd` runs it: under no execution id, so Spark's UI shows jobs, not a query.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.util import _load_from_socket

__all__ = ["batches_of", "partitions_next"]

_FIRST: Final = 4
"""Partitions of the first job, if the application has fewer cores."""
_GROWTH: Final = 4
_WANTED_BYTES: Final = 8 * 1024 * 1024
"""What one job's partitions should return together: the driver holds it until it has been read."""
_LARGE_TYPES: Final = "spark.sql.execution.arrow.useLargeVarTypes"


def batches_of(frame: DataFrame) -> Generator[pa.RecordBatch, None, None]:
    """The rows in their order. Whoever has had enough closes the iterator."""
    session: Any = frame.sparkSession
    rows: Any = frame._jdf
    schema = to_arrow_schema(frame.schema, prefers_large_types=session.conf.get(_LARGE_TYPES) == "true")
    with _settings_in_tasks(session):
        returned = rows.toArrowBatchRdd().toJavaRDD()
        partitions = returned.getNumPartitions()
        begin, most = 0, max(_FIRST, session.sparkContext.defaultParallelism)
        while begin < partitions:
            end = min(begin + most, partitions)
            size = 0
            for message in _returned(session, returned, range(begin, end)):
                size += len(message)
                yield pa.ipc.read_record_batch(pa.py_buffer(message), schema)
            begin, most = end, partitions_next(most, size)


def partitions_next(before: int, size: int) -> int:
    """How many partitions the next job has, when those before returned so many bytes together."""
    return max(1, min(before * _GROWTH, before * _WANTED_BYTES // max(size, 1)))


def _returned(session: Any, rows: Any, partitions: range) -> Iterator[bytes]:
    """The messages of some partitions, in order."""
    context = session.sparkContext
    port, secret, server = context._jvm.PythonRDD.runJob(context._jsc.sc(), rows, list(partitions))
    try:
        yield from _load_from_socket((port, secret), NoOpSerializer())
        with unwrap_spark_exception():
            server.getResult()  # the line ends likewise where Spark failed to write to it
    finally:
        context._gateway.detach(server)  # it holds the rows, and py4j lets go of it a second later


@contextmanager
def _settings_in_tasks(session: Any) -> Iterator[None]:
    """Let the tasks that this thread starts see the session's settings, as Spark's `withSQLConfPropagated` does."""
    context = session.sparkContext._jsc.sc()
    before = context.getLocalProperties()
    told = before.clone()
    settings = session._jsparkSession.sessionState().conf().getAllConfs()
    told.putAll(session._jvm.scala.jdk.javaapi.CollectionConverters.asJava(settings))
    context.setLocalProperties(told)
    try:
        yield
    finally:
        context.setLocalProperties(before)
