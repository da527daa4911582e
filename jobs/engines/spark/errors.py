"""Spark's exceptions as lakewarden's: one sentence, a hint, and no Java stack (that is in the worker's log)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from lakewarden.catalog.errors import (
    AccessDeniedError,
    ConflictError,
    ExecutionError,
    LakewardenError,
    RefusedError,
    UnavailableError,
)

__all__ = [
    "conditions_of",
    "is_lost_race",
    "is_stopped",
    "is_told",
    "refusal_of_delta",
    "root_of",
    "translated",
    "trouble_of",
    "unreadable",
    "violation",
]

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_.]+)?\]")
_DEEPEST: Final = 20
"""Causes looked at: a chain may be a circle."""

_LOST_RACES: Final = (
    "DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
    "DELTA_CONCURRENT_",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_METADATA_CHANGED",
)
_LOST_RACE_CLASSES: Final = (
    "io.delta.exceptions.",
    "java.util.ConcurrentModificationException",
    "org.apache.iceberg.exceptions.CommitFailedException",
)
_SILENT_CLASSES: Final = (
    "java.net.ConnectException",
    "java.net.SocketTimeoutException",
    "java.net.UnknownHostException",
    "org.apache.thrift.transport.TTransportException",
)
_SHUT_OUT: Final = "java.nio.file.AccessDeniedException"
"""What S3A makes of a key that is unknown, expired or not allowed to."""
_TAKEN_AWAY: Final = "java.util.concurrent.RejectedExecutionException"
"""What an executor answers to a task while its pod is being ended: four such answers end the whole job."""
_ENDED: Final = re.compile(r"SparkContext was shut down|stopped SparkContext")
"""Java's error while Python still has its session: the application was killed, by YARN or by its own JVM."""

_REFUSALS: Final = {
    "DELTA_CONVERT_NON_PARQUET_TABLE": "it is not a Parquet table",
    "DELTA_FAILED_READ_FILE_FOOTER": "one of its files is not a readable Parquet file",
    "FAILED_READ_FILE": "one of its files cannot be read",
    "DELTA_FAILED_TO_MERGE_FIELDS": "its Parquet files do not agree on the type of a column",
    "DELTA_MERGE_INCOMPATIBLE_DATATYPE": "its Parquet files do not agree on the type of a column",
    "DELTA_FAILED_MERGE_SCHEMA_FILE": "its Parquet files do not agree on the type of a column",
    "CANNOT_MERGE_SCHEMAS": "its Parquet files do not agree on the type of a column",
    "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES": "a column's name has a space or one of ,;{}()= in it",
    "DELTA_FAILED_CAST_PARTITION_VALUE": "a partition folder's value does not fit "
    "the type given for its column",
    "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME": "its folders and the given "
    "partition columns differ",
    "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME": "its folders and the given partition columns differ",
    "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER": "the given partition columns differ from the metastore's",
    "DELTA_OPERATION_NOT_ALLOWED_DETAIL": "Delta does not allow it",
    "DELTA_UNSUPPORTED_WRITER_FEATURES": "it uses features that this Delta does not know",
    "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE": "it uses features that this Delta does not know",
    "TABLE_OR_VIEW_NOT_FOUND": "the metastore has no such table",
    "PARSE_SYNTAX_ERROR": "a name or a type in it cannot be parsed",
}  # fmt: skip
"""Conditions that no repetition changes, and the rest of the sentence "Spark cannot ... because"."""

_VIOLATIONS: Final = (
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
    "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
    "EXCEED_LIMIT_LENGTH",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "CAST_OVERFLOW",
    "DELTA_CAST_OVERFLOW",
    "CAST_INVALID_INPUT",
    "ARITHMETIC_OVERFLOW",
    "DIVIDE_BY_ZERO",
)
"""What is wrong with the rows that somebody writes."""
_BESIDE: Final = re.compile(r"SQLSTATE: |== SQL|Use [`'\"]try_")
"""What follows the sentence: codes, the statement, and advice to change settings that compiled statements fix."""


@contextmanager
def translated(action: str) -> Iterator[None]:
    """Raise what Spark raised inside as one of ours. `action` completes "Spark could not ...".

    `ConflictError` for a lost race, `RefusedError` for what no repetition changes, `UnavailableError` when Spark, the
    storage or the metastore does not answer, `ExecutionError` for everything else.
    """
    try:
        yield
    except PySparkException as error:
        raise _ours(action, _causes(getattr(error, "_origin", None)), str(error)) from error
    except Py4JJavaError as error:
        raise _ours(action, _causes(error.java_exception), "") from error
    except (Py4JError, ConnectionError) as error:
        raise _ended(action) from error


def is_stopped(context: SparkContext) -> bool:
    """Whether a Spark application does not answer any more: its process is gone, or it was stopped."""
    try:
        return bool(context._jsc.sc().isStopped())
    except (Py4JError, ConnectionError, AttributeError):
        return True


def is_lost_race(error: PySparkException | Py4JJavaError) -> bool:
    """Whether a write failed because somebody else committed first."""
    causes = _causes(_java(error))
    return _is_lost_race([name for name, _ in causes], _conditions(causes, str(error)))


def is_told(error: PySparkException | Py4JJavaError, *words: str) -> bool:
    """Whether an exception, or one of its causes, says all of these words."""
    told = (str(error), *(said for _, said in _causes(_java(error))))
    return any(all(word in said for word in words) for said in told)


def conditions_of(error: PySparkException | Py4JJavaError) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """The conditions of an exception and of its causes by name, and what they are about, outermost first."""
    found, throwable = list[tuple[str, Mapping[str, str]]](), _java(error)
    try:
        while throwable is not None and len(found) < _DEEPEST:
            condition = _CONDITION.search(str(throwable.getMessage()))
            if condition is not None:
                found.append((condition[1], _about(throwable)))
            throwable = throwable.getCause()
    except (Py4JError, ConnectionError):
        pass  # the JVM went away while telling
    if not found and isinstance(error, PySparkException) and error.getCondition():
        about = {key: str(value) for key, value in (error.getMessageParameters() or {}).items()}
        found.append((str(error.getCondition()).partition(".")[0], about))
    return tuple(found)


def root_of(error: PySparkException | Py4JJavaError) -> str:
    """The name of the deepest cause's class."""
    causes = _causes(_java(error))
    return causes[-1][0].rpartition(".")[2] if causes else type(error).__name__


def trouble_of(error: PySparkException | Py4JJavaError, action: str) -> LakewardenError | None:
    """The error for what is wrong with the world around a statement, not with itself; None for all else. `action` as
    for `translated`."""
    told = _ours(action, _causes(_java(error)), str(error) if isinstance(error, PySparkException) else "")
    return None if isinstance(told, RefusedError | ExecutionError) else told


def violation(
    error: PySparkException | Py4JJavaError, conditions: tuple[str, ...] = _VIOLATIONS
) -> str | None:
    """Spark's or Delta's sentence about rows that a table does not take; None for all else."""
    return _words(error, conditions)


def refusal_of_delta(error: Py4JJavaError) -> str | None:
    """Delta's refusal in one sentence: what Python sees of it is a stack of Java's. None for all else."""
    return None if is_lost_race(error) else _words(error, ("DELTA_",))


def unreadable(error: Py4JJavaError) -> str | None:
    """Spark's error about an unreadable file, in one sentence; None for all else."""
    return _words(error, ("FAILED_READ_FILE",))


def _words(error: PySparkException | Py4JJavaError, conditions: tuple[str, ...]) -> str | None:
    """The sentence of the deepest cause that has one of these conditions."""
    for _, said in reversed(_causes(_java(error))):
        found = _CONDITION.match(said)
        if found is not None and found[1].startswith(conditions):
            words = " ".join(_BESIDE.split(said[found.end() :], maxsplit=1)[0].split())
            return words if words.endswith(".") else f"{words}."
    return None


def _java(error: PySparkException | Py4JJavaError) -> Any:
    """The Java exception behind one of Python's, None where there is none."""
    return error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)


def _about(throwable: Any) -> Mapping[str, str]:
    """What Spark says a condition is about; nothing where it is no exception of Spark's."""
    try:
        return {str(key): str(value) for key, value in dict(throwable.getMessageParameters()).items()}
    except (Py4JError, AttributeError, TypeError):
        return {}


def _is_lost_race(classes: Sequence[str], conditions: Sequence[str]) -> bool:
    return any(condition.startswith(_LOST_RACES) for condition in conditions) or any(
        name.startswith(_LOST_RACE_CLASSES) for name in classes
    )


def _conditions(causes: tuple[tuple[str, str], ...], message: str) -> list[str]:
    return [match for text in (*(said for _, said in causes), message) for match in _CONDITION.findall(text)]


def _ours(action: str, causes: tuple[tuple[str, str], ...], message: str) -> LakewardenError:
    """`causes` are (class, condition or message) from the outermost to the root."""
    classes, conditions = [name for name, _ in causes], _conditions(causes, message)
    if _is_lost_race(classes, conditions):
        return ConflictError(f"Spark could not {action}: somebody else committed first.")
    if any(_ENDED.search(said) for said in (*(said for _, said in causes), message)):
        return _ended(action)
    for condition in reversed(conditions):
        if condition in _REFUSALS:
            return RefusedError(f"Spark could not {action}: {_REFUSALS[condition]}.", hint=_hint(condition))
    for name in classes:
        if name.startswith(_SILENT_CLASSES):
            return UnavailableError(
                f"Spark could not {action}: storage or metastore does not answer.",
                hint="Check them, then retry.",
            )
    if _TAKEN_AWAY in classes:
        return UnavailableError(
            f"Spark could not {action}: its executors were taken away.",
            hint="Retry: the next attempt gets new ones.",
        )
    if _SHUT_OUT in classes:
        return AccessDeniedError(f"Spark could not {action}: the storage denied access.")
    # What is under way while the application stops fails in any way, also as an internal error of Spark's.
    if SparkContext._active_spark_context is not None and is_stopped(SparkContext._active_spark_context):
        return _ended(action)
    root = conditions[-1] if conditions else classes[-1].rpartition(".")[2] if classes else ""
    return ExecutionError(f"Spark could not {action}{f' ({root})' if root else ''}.", hint=_hint(root))


def _ended(action: str) -> UnavailableError:
    return UnavailableError(
        f"Spark could not {action}: its session has ended.", hint="The worker starts a new one."
    )


def _hint(word: str) -> str:
    return f"The worker's log has the whole story{f': look for {word}' if word else ''}."


def _causes(throwable: Any) -> tuple[tuple[str, str], ...]:
    """Class and message of a Java throwable and of its causes, outermost first; what cannot be had is left out."""
    chain: list[tuple[str, str]] = []
    try:
        while throwable is not None and len(chain) < _DEEPEST:
            chain.append((str(throwable.getClass().getName()), str(throwable.getMessage())))
            throwable = throwable.getCause()
    except (Py4JError, ConnectionError):
        pass  # the JVM went away while telling: what it said so far has to do
    return tuple(chain)
