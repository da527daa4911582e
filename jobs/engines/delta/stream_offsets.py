"""Taking back transaction numbers by Spark, after a RESTORE of Spark's, which keeps them: those of a rollback, and one
that a user's own RESTORE has left.

A streaming sink skips a batch whose number the table has seen, without a word. After a restore its query's
number has to be what it was at the target, or batches that were undone can never be written again. Delta
replays the last number of an application id, even if it is lower than one before (run: the replayed batch was written).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.jobs.engines.delta.own_commits import commits_of, was_restored
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path

__all__ = ["begin_epoch", "last_number", "lower_number", "number_at"]

_NEVER: Final = -1
"""The number of an application id that had written nothing yet: batch 0 comes after it."""
_ATTEMPTS: Final = 5
_OPERATION: Final = "DeltaOperations$ManualUpdate$"


def begin_epoch(
    spark: SparkSession, store: FileStore, *, restored: int, to: int, apps: Sequence[str], run_id: str
) -> int | None:
    """See `Engine.begin_epoch`. `spark` is stamped with the run.
    Raises `ConflictError` if others keep committing first."""
    done = next(commits_of(store, run_id, after=restored), None)
    if done is not None:
        return done.version
    jvm: Any = spark.sparkContext._jvm
    nothing = jvm.scala.Option.empty()
    with translated(f"take back the streams of {store.root}"):
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, hadoop_path(store.root))
        then, since = (
            _numbers(log.getSnapshotAt(version, nothing, nothing, False), apps) for version in (to, restored)
        )
    for _ in range(_ATTEMPTS):
        try:
            return _commit(jvm, log, store, then, since, restored)
        except ConflictError:
            continue  # an append of somebody's: the numbers still have to go back
    raise ConflictError(f"Others keep committing to {store.root}; its streams' numbers were not taken back.")


def last_number(spark: SparkSession, location: str, *, app: str) -> tuple[int, int | None]:
    """The head, and the last number of an application id; None for one that the table does not know."""
    jvm: Any = spark.sparkContext._jvm
    nothing = jvm.scala.Option.empty()
    with translated(f"look for a number of {location}"):
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, hadoop_path(location))
        snapshot = log.startTransaction(nothing, nothing).snapshot()
        known = snapshot.transactions().get(app)
        return int(snapshot.version()), int(known.get()) if known.isDefined() else None


def number_at(spark: SparkSession, location: str, *, version: int, app: str) -> int | None:
    """The last number of an application id that a version knows; None for one that it does not know. Raises
    `ExecutionError` if nothing is left to tell what the version was."""
    jvm: Any = spark.sparkContext._jvm
    nothing = jvm.scala.Option.empty()
    with translated(f"look for a number of version {version} of {location}"):
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, hadoop_path(location))
        known = log.getSnapshotAt(version, nothing, nothing, False).transactions().get(app)
        return int(known.get()) if known.isDefined() else None


def lower_number(spark: SparkSession, location: str, *, requires: int, app: str, number: int) -> None:
    """Say, in a commit that changes nothing else, that `number` was the last one of `app`. `spark` is stamped with a
    run. Raises `ConflictError` unless `requires` is head, on which it was decided."""
    jvm: Any = spark.sparkContext._jvm
    delta, nothing = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty()
    with translated(f"take back a number of {location}"):
        log = delta.DeltaLog.forTable(spark._jsparkSession, hadoop_path(location))
        transaction = log.startTransaction(nothing, nothing)
        if int(transaction.readVersion()) != requires:
            raise ConflictError(f"{location} moved past version {requires}, on which this was decided.")
        transaction.txnVersion(app)  # read, so that whoever writes another one first wins
        _commit_numbers(jvm, transaction, {app: number})


def _commit_numbers(jvm: Any, transaction: Any, numbers: Mapping[str, int]) -> int:
    delta, nothing = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty()
    actions = jvm.java.util.ArrayList()
    for app, number in numbers.items():
        actions.add(delta.actions.SetTransaction(app, number, nothing))
    sequence = jvm.scala.jdk.javaapi.CollectionConverters.asScala(actions).toSeq()
    return int(transaction.commit(sequence, getattr(getattr(delta, _OPERATION), "MODULE$")))


def _commit(
    jvm: Any, log: Any, store: FileStore, then: Mapping[str, int], since: Mapping[str, int], restored: int
) -> int | None:
    nothing = jvm.scala.Option.empty()
    with translated("take back the numbers of streams"):
        transaction = log.startTransaction(nothing, nothing)
        if was_restored(store, after=restored, upto=int(transaction.readVersion())):
            return None  # the rollback was undone while this one slept
        head = _numbers(transaction.snapshot(), tuple(then))
        for app in then:
            transaction.txnVersion(app)  # read, so that whoever writes another one first wins
        lower = {app: number for app, number in then.items() if head[app] == since[app] != number}
        return _commit_numbers(jvm, transaction, lower) if lower else None


def _numbers(snapshot: Any, apps: Sequence[str]) -> Mapping[str, int]:
    """By application id, the number of the last transaction that a version knows."""
    known = snapshot.transactions()
    found = {app: known.get(app) for app in apps}
    return {app: int(number.get()) if number.isDefined() else _NEVER for app, number in found.items()}
