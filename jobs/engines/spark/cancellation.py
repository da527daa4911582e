"""Whether the statement that a thread runs is still wanted. Asked right before each of its commits begins: Spark's own
cancelling ends jobs, and between two steps of a statement there are none."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import CancelledError

__all__ = ["beyond_cancelling", "is_cancelled", "it_is_done", "require_wanted", "unwanted_once"]

_asked: ContextVar[Callable[[], bool] | None] = ContextVar("cancelled", default=None)
_GROUP: Final = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


@contextmanager
def unwanted_once(cancelled: Callable[[], bool]) -> Iterator[None]:
    """Let what this thread runs end at its next step once `cancelled` says so."""
    token = _asked.set(cancelled)
    try:
        yield
    finally:
        _asked.reset(token)


def is_cancelled() -> bool:
    """Whether this thread's work was cancelled."""
    cancelled = _asked.get()
    return cancelled is not None and cancelled()


def require_wanted() -> None:
    """Raise `CancelledError` if somebody has cancelled what this thread runs."""
    if is_cancelled():
        raise CancelledError("The statement was cancelled before it changed anything.")


def it_is_done(spark: SparkSession) -> None:
    """The statement that this thread runs has committed all it will: a cancel comes too late from now on, and what is
    still asked of Spark, its result, is no job that a cancel ends. Where nobody can cancel nothing is changed."""
    if _asked.get() is not None:
        spark.sparkContext.setJobGroup(f"told-{uuid.uuid4().hex}", "tells what a statement did")


@contextmanager
def beyond_cancelling(spark: SparkSession, name: str) -> Iterator[None]:
    """Run jobs that a cancel of the statement does not end: those that take it back."""
    context: Any = spark.sparkContext
    before = {key: context.getLocalProperty(key) for key in _GROUP}
    context.setJobGroup(name, "takes back what a statement did")
    try:
        yield
    finally:
        for key, value in before.items():
            context.setLocalProperty(key, value)
