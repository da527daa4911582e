"""Spark's exceptions as lakewarden's: what they become, and that nothing of Java gets through."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import AnalysisException

from lakewarden.catalog.errors import (
    ConflictError,
    ExecutionError,
    LakewardenError,
    RefusedError,
    UnavailableError,
)
from lakewarden.jobs.engines.spark.errors import refusal_of_delta, translated


@dataclass(frozen=True)
class Thrown:
    """A Java throwable as py4j hands it over."""

    name: str
    message: str = ""
    cause: "Thrown | None" = None

    def getClass(self) -> "Thrown":
        return self

    def getName(self) -> str:
        return self.name

    def getMessage(self) -> str:
        return self.message

    def getCause(self) -> "Thrown | None":
        return self.cause


def thrown(origin: Thrown) -> AnalysisException:
    error = AnalysisException(message=origin.message)
    error._origin = origin  # type: ignore[attr-defined]  # where PySpark keeps the Java exception
    return error


DELTA = "org.apache.spark.sql.delta.DeltaIllegalStateException"
CASES: dict[str, tuple[Thrown, type[LakewardenError]]] = {
    "tried once, lost": (Thrown(DELTA, "[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] tried 1 times"), ConflictError),
    "a concurrent append": (Thrown("io.delta.exceptions.ConcurrentAppendException", "[X] x"), ConflictError),
    "a lost race as a cause": (
        Thrown("org.apache.spark.SparkException", "job", Thrown(DELTA, "[DELTA_CONCURRENT_WRITE] x")),
        ConflictError,
    ),
    "no Parquet table": (
        Thrown("org.apache.spark.sql.delta.DeltaAnalysisException", "[DELTA_CONVERT_NON_PARQUET_TABLE] orc"),
        RefusedError,
    ),
    "a footer that an executor could not read": (
        Thrown(
            "org.apache.spark.SparkException",
            "Job aborted due to stage failure: DeltaIOException: "
            "[DELTA_FAILED_READ_FILE_FOOTER] x\n\tat org.apache",
        ),
        RefusedError,
    ),
    "a metastore that is away": (
        Thrown(
            "org.apache.spark.sql.AnalysisException",
            "x",
            Thrown("org.apache.thrift.transport.TTransportException", "connection refused"),
        ),
        UnavailableError,
    ),
    "executors whose pods are being ended": (
        Thrown(
            "org.apache.spark.SparkException",
            "Job aborted due to stage failure: Task 5 in stage 140.0 failed 4 times",
            Thrown("java.util.concurrent.RejectedExecutionException", "Task ... rejected"),
        ),
        UnavailableError,
    ),
    "an application that YARN has killed": (
        Thrown(
            "org.apache.spark.SparkException",
            "Exception thrown in awaitResult",
            Thrown("org.apache.spark.SparkException", "Job 5 cancelled because SparkContext was shut down"),
        ),
        UnavailableError,
    ),
    "a session that was stopped before": (
        Thrown("java.lang.IllegalStateException", "Cannot call methods on a stopped SparkContext."),
        UnavailableError,
    ),
    "anything else": (Thrown("java.lang.OutOfMemoryError", "Java heap space"), ExecutionError),
    "an internal error": (Thrown("org.apache.spark.SparkException", "[INTERNAL_ERROR] odd"), ExecutionError),
}


@pytest.mark.parametrize(("origin", "kind"), CASES.values(), ids=CASES)
def test_each_exception_has_its_place_in_the_error_tree(origin: Thrown, kind: type[LakewardenError]) -> None:
    with pytest.raises(LakewardenError) as caught, translated("compact db.t"):
        raise thrown(origin)
    assert type(caught.value) is kind
    sentence = str(caught.value)
    assert sentence.startswith("Spark could not compact db.t")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "org.apache" not in sentence
    assert caught.value.hint


def test_a_session_that_ended_can_be_tried_again() -> None:
    with pytest.raises(UnavailableError, match="session has ended") as caught, translated("compact db.t"):
        raise Py4JNetworkError("Answer from Java side is empty")
    assert caught.value.retry


def test_our_own_errors_pass_as_they_are() -> None:
    with pytest.raises(RefusedError, match="bucketed"), translated("convert db.t"):
        raise RefusedError("db.t is bucketed.")


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (
            Thrown(
                "java.lang.UnsupportedOperationException",
                "[DELTA_CANNOT_MODIFY_APPEND_ONLY] Append only. SQLSTATE: 42809",
            ),
            "Append only.",
        ),
        (
            Thrown(
                "org.apache.spark.SparkException",
                "Job aborted.",
                Thrown("x", "[DELTA_DEED] It\n cannot be done"),
            ),
            "It cannot be done.",
        ),
        (Thrown("io.delta.exceptions.ConcurrentAppendException", "[DELTA_CONCURRENT_APPEND] Retry."), None),
        (Thrown("org.apache.spark.SparkException", "[INTERNAL_ERROR] A bug."), None),
    ],
    ids=["a refusal", "as a cause, over two lines", "a lost race", "nothing of Delta's"],
)
def test_what_delta_refuses_is_one_sentence_of_its_own(origin: Thrown, said: str | None) -> None:
    error = cast(Py4JJavaError, Refusal(origin))
    assert refusal_of_delta(error) == said


class Refusal(Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """What py4j raises, without a Java to ask."""

    def __init__(self, origin: Thrown) -> None:
        self.java_exception = origin

    def __str__(self) -> str:
        return self.java_exception.message


@pytest.mark.parametrize(
    ("stopped", "becomes"), [(True, UnavailableError), (False, ExecutionError)], ids=["stopped", "running"]
)
def test_an_internal_error_of_an_application_that_was_killed_is_its_end(
    stopped: bool, becomes: type[LakewardenError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator's kill reaches what is under way before anything says that the session has ended."""
    java = SimpleNamespace(isStopped=lambda: stopped)
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: java))
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    error = thrown(Thrown("org.apache.spark.SparkException", "[INTERNAL_ERROR] The phase failed."))
    with pytest.raises(becomes) as refused, translated("compact db.t"):
        raise error
    assert type(refused.value) is becomes
    assert ("its session has ended" in str(refused.value)) is stopped
