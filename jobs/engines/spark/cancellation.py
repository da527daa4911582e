"""Whether the statement that a thread runs is still wanted. Asked right before each of its commits begins: Spark's own
cancelling ends jobs, and between two steps of a statement there are none."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import CancelledError

__all__ = ["beyond_cancelling", "is_cancelled", "require_wanted", "unwanted_once"]

_asked: ContextVar[Callable[[], bool]] = ContextVar("cancelled", default=lambda: False)
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
    """Whether somebody has cancelled what this thread runs."""
    return _asked.get()()


def require_wanted() -> None:
    """Raise `CancelledError` if somebody has cancelled what this thread runs."""
    if is_cancelled():
        raise CancelledError("The statement was cancelled before it changed anything.")


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
