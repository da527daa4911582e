"""One Spark application that serves many connections: a session for each, results as Arrow, cancelled from outside.

Every thread that calls into the JVM keeps a connection to it: call from a few threads that stay.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType

from lakewarden.catalog.errors import (
    ConflictError,
    ExecutionError,
    LakewardenError,
    UnavailableError,
    UsageError,
)
from lakewarden.jobs.engines.spark.cancellation import require_wanted, unwanted_once
from lakewarden.jobs.engines.spark.errors import is_stopped, translated
from lakewarden.jobs.engines.spark.result_batches import batches_of

__all__ = [
    "Field",
    "SparkEndedError",
    "Stage",
    "cancel",
    "collected",
    "fields_of",
    "is_alive",
    "left_tasks",
    "new_session",
    "serving",
    "stages_of",
]

_PLAIN: Final = frozenset(
    {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary"}
)
"""Types that go over the wire as they are; everything else goes as text, as HiveServer2 does it."""
_NESTED: Final = ("array", "map", "struct", "variant")
_POOL: Final = "spark.scheduler.pool"
_HAS_ENDED: Final = "The gateway's Spark session has ended."
_NULLS_TOO: Final = {"ignoreNullFields": "false"}
_PLACE: Final = re.compile(r"; line \d+ pos \d+|\n(?:== SQL|JVM stacktrace|'|\+-)")


class SparkEndedError(UnavailableError):
    """The Spark application is gone; what its sessions held (temporary views, settings, results) went with it."""

    hint = "Repeat the statement: a new one is started. Temporary views and settings have to be made again."


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A column of a result."""

    name: str
    type: str
    """In Spark's words, such as `decimal(10,2)`."""
    comment: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A stage of an operation that Spark has begun, and how many of its tasks are where."""

    name: str
    attempt: int
    tasks: int
    done: int
    running: int
    failed: int


def new_session(spark: SparkSession) -> SparkSession:
    """A session with settings and temporary views of its own. Its tables are everybody's."""
    with _told("open a session"):
        return spark.newSession()


def is_alive(spark: SparkSession) -> bool:
    """Whether the application still runs."""
    context: Any = spark.sparkContext._jsc
    try:
        return context is not None and not context.sc().isStopped()
    except (Py4JError, ConnectionError):
        return False


@contextmanager
def serving(
    spark: SparkSession,
    operation: str,
    *,
    user: str | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """Let this thread run one operation in a session: what it starts, `cancel` can end, and what it has not started
    when `cancelled` says so is not begun. `user` is who `current_user()` is, None for the application's own. Errors are
    ours, in Spark's own words: `UsageError` for a wrong statement, `SparkEndedError`, `ExecutionError`."""
    with _told("run the statement"):
        active, current_user = _of_this_thread(spark.sparkContext)
        active.setActiveSession(spark._jsparkSession)
        current_user.set(user)  # null is Spark's own word for nobody in particular
        spark.sparkContext.setLocalProperty(
            _POOL, user or "default"
        )  # with a fair scheduler, each user has a part
        spark.sparkContext.setJobGroup(operation, "a statement of the gateway", interruptOnCancel=True)
        with unwanted_once(cancelled):
            require_wanted()  # Spark may just have been started, for long
            yield


@lru_cache(maxsize=2)
def _of_this_thread(context: SparkContext) -> tuple[Any, Any]:
    """Where Spark keeps a thread's session and its user. Looked up once: each name of a package costs a call."""
    jvm: Any = context._jvm
    user = jvm.org.apache.spark.sql.catalyst.CurrentUserContext.CURRENT_USER()
    return jvm.org.apache.spark.sql.classic.SparkSession, user


def cancel(spark: SparkSession, operation: str) -> None:
    """End the jobs of an operation, also those that it has not begun; quietly if it has none, or Spark is gone."""
    with suppress(LakewardenError), _told("cancel a statement"):
        context: Any = spark.sparkContext._jsc
        context.sc().cancelJobGroupAndFutureJobs(operation)


def left_tasks(spark: SparkSession) -> int:
    """How many tasks compute for no stage: they were cancelled, and do not look whether they were. 0 if Spark does not
    answer."""
    with suppress(LakewardenError), _told("ask what still runs"):
        context: Any = spark.sparkContext._jsc
        tracker = context.sc().statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        wanted = sum(int(one.get().numActiveTasks()) for one in stages if one.isDefined())
        return sum(int(one.numRunningTasks()) for one in tracker.getExecutorInfos()) - wanted
    return 0


def stages_of(spark: SparkSession, operation: str) -> tuple[Stage, ...]:
    """The stages of an operation in the order in which Spark numbered them; none if Spark does not answer."""
    found: list[Stage] = []
    with suppress(LakewardenError), _told("ask how far a statement is"):
        tracker = spark.sparkContext.statusTracker()
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(operation))
        numbers = {stage for job in jobs if job is not None for stage in job.stageIds}
        for number in sorted(numbers):
            told = tracker.getStageInfo(number)
            if told is not None:
                found.append(
                    Stage(
                        name=f"Stage-{number}",
                        attempt=told.currentAttemptId,
                        tasks=told.numTasks,
                        done=told.numCompletedTasks,
                        running=told.numActiveTasks,
                        failed=told.numFailedTasks,
                    )
                )
    return tuple(found)


def fields_of(frame: DataFrame) -> tuple[Field, ...]:
    """The columns of a result."""
    return tuple(
        Field(
            name=one.name,
            type=one.dataType.simpleString(),
            comment=str((one.metadata or {}).get("comment", "")),
        )
        for one in frame.schema.fields
    )


def collected(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The rows in their order, as they come. What is not plain is text already."""
    return batches_of(_rendered(frame))


def _rendered(frame: DataFrame) -> DataFrame:
    types = [one.dataType for one in frame.schema.fields]
    names = [f"c{number}" for number in range(len(types))]
    numbered = frame.toDF(*names)
    if all(one.simpleString() in _PLAIN for one in types):
        return numbered
    return numbered.select(
        *(_text(name, type_).alias(name) for name, type_ in zip(names, types, strict=True))
    )


def _text(name: str, type_: DataType) -> Column:
    words = type_.simpleString()
    if words in _PLAIN:
        return sql.col(name)
    if words.startswith(_NESTED) and "interval" not in words:
        return sql.to_json(sql.col(name), _NULLS_TOO)
    return sql.col(name).cast("string")


@contextmanager
def _told(action: str) -> Iterator[None]:
    try:
        yield
    except (AnalysisException, ParseException) as error:
        raise UsageError(_words(error)) from error
    except (PySparkException, Py4JJavaError) as error:
        raise _ours(action, error) from error
    except (Py4JError, ConnectionError, EOFError) as error:
        raise SparkEndedError(_HAS_ENDED) from error


def _ours(action: str, error: PySparkException | Py4JJavaError) -> LakewardenError:
    """A lost race by its own name; what else went wrong in Spark's words, where it found any."""
    try:
        with translated(action):
            raise error
    except ConflictError as lost:
        return lost
    except LakewardenError as other:
        if SparkContext._active_spark_context is None or is_stopped(SparkContext._active_spark_context):
            return SparkEndedError(_HAS_ENDED)
        return ExecutionError(_words(error)) if isinstance(error, PySparkException) else other


def _words(error: PySparkException) -> str:
    """Spark's sentence, without the plan or the stack behind it."""
    return _PLACE.split(str(error), maxsplit=1)[0].strip() or type(error).__name__
