"""How a session is told to Delta: commits of ours are stamped, and tried once; what Delta has in mind is let go of."""

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakewarden.jobs.engines.spark.errors import translated

__all__ = ["COMMIT_ATTEMPTS", "USER_METADATA", "forget_tables", "stamp", "stamped"]

COMMIT_ATTEMPTS: Final = "spark.databricks.delta.maxCommitAttempts"
"""How often Delta tries again on a later version, as its own conflict check allows."""
USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
"""What Delta writes beside the commits of a session."""


def forget_tables(context: SparkContext) -> None:
    """Release the state that Delta caches for an hour for each table of this application, and Python's cyclic
    references to it. Raises `UnavailableError` if Spark has ended."""
    jvm: Any = context._jvm
    gc.collect()
    with translated("forget tables"):
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def stamp(run_id: str, action: str, installation: str | None = None) -> str:
    """The `userMetadata` of our commits: how a log tells that this run, of this installation, made them."""
    whose = {} if installation is None else {"installation": installation}
    return json.dumps({"lakewarden": {"run_id": run_id, "action": action, **whose}}, separators=(",", ":"))


@contextmanager
def stamped(
    spark: SparkSession, run_id: str, action: str, installation: str | None = None
) -> Iterator[SparkSession]:
    """A clone of the session whose commits carry `run_id`, and `installation` where it is the daemon's own work, and
    are tried exactly once.

    A clone, because settings of a shared session leak into other threads' commits; it costs 5 to 10 ms and keeps
    temporary views. With `maxCommitAttempts` 0 Delta does not resolve conflicts and try again on a later version
    (`OptimisticTransaction.doCommitRetryIteratively`, 4.4): a commit happens on the version that was read, or fails
    with DELTA_MAX_COMMIT_RETRIES_EXCEEDED, which `translated` turns into `ConflictError`.
    """
    with translated("prepare a session"):
        clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
        clone.conf.set(USER_METADATA, stamp(run_id, action, installation))
        clone.conf.set(COMMIT_ATTEMPTS, "0")
        _activate(clone)
    try:
        yield clone
    finally:
        _activate(spark)


def _activate(session: SparkSession) -> None:
    """Delta reads some settings from the thread's active session, not from the one it was called on."""
    jvm = session._jvm
    if jvm is not None:
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
