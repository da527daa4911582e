"""Settings of a session, a clone for one statement alone, by which Delta is told how to do it."""

from typing import Any, Final

from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import COMMIT_ATTEMPTS

__all__ = [
    "commit_at_once",
    "number_commit",
    "set_up_merge",
    "set_way",
    "skips_files",
    "use_tasks",
    "without_vectors",
    "write_as_it_comes",
]

_APP: Final = "spark.databricks.delta.write.txnAppId"
_NUMBER: Final = "spark.databricks.delta.write.txnVersion"
_RESET: Final = "spark.databricks.delta.write.txnVersion.autoReset.enabled"
_SKIPPING: Final = "spark.databricks.delta.stats.skipping"
_MATERIALIZE: Final = "spark.databricks.delta.merge.materializeSource"
_OPTIMIZE: Final = "spark.databricks.delta.optimizeWrite.enabled"
_TASKS: Final = "spark.databricks.delta.optimizeWrite.maxShufflePartitions"
_VECTORS: Final = "spark.databricks.delta.{}.deletionVectors.persistent"
_LEAST: Final = "spark.sql.adaptive.coalescePartitions.minPartitionSize"
_LEAST_BYTES: Final = "4m"
"""What little is joined, one task joins. Spark's own 1 MB makes a task for each core of it."""


def number_commit(session: Any, app: str, number: int) -> None:
    """Let what a session commits next have a number under an application id: Delta does it once."""
    session.conf().set(_APP, app)
    session.conf().set(_NUMBER, str(number))
    session.conf().set(_RESET, "false")  # whoever asks for the number first would take it away


def commit_at_once(session: Any) -> None:
    """Have a commit fail if somebody else commits after its transaction has begun."""
    session.conf().set(COMMIT_ATTEMPTS, "0")


def skips_files(session: Any) -> bool:
    """Whether a session lets files be left out by their statistics."""
    return str(session.conf().get(_SKIPPING, "true")).lower() != "false"


def set_way(session: Any, way: RowsWrite) -> None:
    """Have a session (in the JVM), a clone for one statement alone, write so."""
    if way in (RowsWrite.REWRITE, RowsWrite.VECTOR):
        for one in ("delete", "merge", "update"):
            session.conf().set(_VECTORS.format(one), "true" if way is RowsWrite.VECTOR else "false")


def without_vectors(session: Any) -> None:
    """Have a MERGE write none. With them Delta takes an unmatched row of the source for a match if all of its keys are
    NULL and match NULL: it fails on a deletion, which no clause takes."""
    session.conf().set(_VECTORS.format("merge"), "false")


def set_up_merge(session: Any) -> None:
    """Have a MERGE write few files, of a source that is kept already."""
    session.conf().set(_MATERIALIZE, "none")  # it is kept here, and looked at
    _set_unless_chosen(session, _OPTIMIZE, "true")  # few files, whatever the number of tasks
    _set_unless_chosen(session, _LEAST, _LEAST_BYTES)  # one task writes without moving its rows once more


def use_tasks(session: Any, count: int) -> None:
    """Have an optimized write take no more tasks than these, unless the user has chosen."""
    _set_unless_chosen(session, _TASKS, str(count))


def write_as_it_comes(session: Any) -> None:
    """Have what one task has be written by it."""
    session.conf().set(_OPTIMIZE, "false")


def _set_unless_chosen(session: Any, key: str, value: str) -> None:
    """Set what the user has not set."""
    if not session.sessionState().conf().contains(key):
        session.conf().set(key, value)
