"""Which engine may commit where, while others write there too?
One table, read by planner, engines, `doctor` and docs. Pure.

Spark commits to a Delta table through a LogStore, which Delta chooses by the storage and by the session's settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = [
    "CONDITIONAL",
    "S3_LOG_STORE",
    "SAFETY",
    "WHAT_TO_DO",
    "Cell",
    "Committer",
    "Safety",
    "cell_of",
    "committer_of",
    "has_one_for_all",
    "log_store_of",
    "why_not",
]

CONDITIONAL: Final = "lakewarden.ConditionalLogStore"
"""The class of ours (jobs/engines/spark/s3): it creates a commit only if there is none of its version."""
S3_LOG_STORE: Final = "spark.delta.logStore.s3a.impl"
"""Where a session says which LogStore commits to S3: Spark reaches it by the scheme s3a."""
_EVERYWHERE: Final = ("spark.delta.logStore.class", "delta.logStore.class")
"""The same for all storages at once. Delta takes no other LogStore beside it."""
_S3_SINGLE: Final = "io.delta.storage.S3SingleDriverLogStore"
_DELTAS_OWN: Final = {
    "s3": _S3_SINGLE,
    "abfs": "io.delta.storage.AzureLogStore",
    "gs": "io.delta.storage.GCSLogStore",
}
_HADOOP_SCHEMES: Final = {"s3": "s3a"}
_OBJECT_STORES: Final = frozenset(_DELTAS_OWN)


class Safety(StrEnum):
    """Whether an acknowledged commit survives concurrent commits."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    UNTESTED = "untested"
    IMPOSSIBLE = "not possible"


class Committer(StrEnum):
    """What commits: an engine, and by which means."""

    DELTA_RS = "delta-rs"
    SPARK = "Spark, Delta's own LogStore"
    SPARK_CONDITIONAL = "Spark, lakewarden's ConditionalLogStore"
    SPARK_OTHER = "Spark, any other LogStore"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One committer on one storage (scheme of canonical locations), why it is so, and what shows it."""

    storage: str
    committer: Committer
    safety: Safety
    because: str
    shown_by: str = ""


WHAT_TO_DO: Final = (
    "Name the bucket in a [[storage]] entry of the settings, with spark.jars other than packages "
    "and no LogStore of your own in spark.conf: sessions then commit through lakewarden's, if a JDK is there "
    "(the worker's log says); docs/object-stores.md."
)
_BY_WRITERS: Final = "tests/integration/test_s3.py"
_BY_HDFS: Final = "tests/integration/test_storage_hdfs.py"
_BY_JVMS: Final = "tests/integration/test_s3_log_store.py"
_LOCK_TABLE: Final = "a lock in DynamoDB, or in one process, which delta-rs and others do not know"
SAFETY: Final = (
    Cell(storage="file", committer=Committer.DELTA_RS, safety=Safety.UNSAFE,
         because="safe among delta-rs' own writers; Spark's rename can overwrite its commit",
         shown_by="docs/operations.md"),
    Cell(storage="file", committer=Committer.SPARK, safety=Safety.UNSAFE,
         because="its rename can overwrite a commit of another process", shown_by="docs/operations.md"),
    Cell(storage="hdfs", committer=Committer.DELTA_RS, safety=Safety.SAFE,
         because="a rename that fails where something is", shown_by=_BY_HDFS),
    Cell(storage="hdfs", committer=Committer.SPARK, safety=Safety.SAFE,
         because="a rename that fails where something is", shown_by=_BY_HDFS),
    Cell(storage="s3", committer=Committer.DELTA_RS, safety=Safety.SAFE,
         because="If-None-Match", shown_by=_BY_WRITERS),
    Cell(storage="s3", committer=Committer.SPARK, safety=Safety.UNSAFE,
         because="one lock per process: two processes overwrite each other's commits", shown_by=_BY_JVMS),
    Cell(storage="s3", committer=Committer.SPARK_CONDITIONAL, safety=Safety.SAFE,
         because="If-None-Match, and its own commit recognised after a lost answer", shown_by=_BY_JVMS),
    Cell(storage="s3", committer=Committer.SPARK_OTHER, safety=Safety.UNSAFE, because=_LOCK_TABLE),
    Cell(storage="az", committer=Committer.DELTA_RS, safety=Safety.SAFE,
         because="If-None-Match, tested on Azurite", shown_by="tests/azure/test_azure.py"),
    Cell(storage="az", committer=Committer.SPARK, safety=Safety.IMPOSSIBLE,
         because="Hadoop reaches Azure by the scheme abfs:// alone", shown_by="tests/azure/test_azure.py"),
    Cell(storage="abfs", committer=Committer.DELTA_RS, safety=Safety.UNTESTED, because="If-None-Match"),
    Cell(storage="abfs", committer=Committer.SPARK, safety=Safety.UNTESTED,
        because="a rename that does not overwrite"),
    Cell(storage="gs", committer=Committer.DELTA_RS, safety=Safety.UNTESTED,
        because="a condition on the generation"),
    Cell(storage="gs", committer=Committer.SPARK, safety=Safety.UNTESTED,
        because="a condition on the generation"),
)  # fmt: skip
_BY_PLACE: Final[Mapping[tuple[str, Committer], Cell]] = {(one.storage, one.committer): one for one in SAFETY}


def cell_of(storage: str, committer: Committer) -> Cell:
    """What is known of a committer on a storage; what is not in the table is untested."""
    unknown = Cell(storage=storage, committer=committer, safety=Safety.UNTESTED, because="nobody has tried")
    return _BY_PLACE.get((storage, committer), unknown)


def log_store_of(conf: Mapping[str, str], storage: str) -> str:
    """The class that a session with these settings commits through; "" where Delta's default for file systems does."""
    scheme = _HADOOP_SCHEMES.get(storage, storage)
    keys = (f"spark.delta.logStore.{scheme}.impl", f"delta.logStore.{scheme}.impl", *_EVERYWHERE)
    return next((conf[key] for key in keys if conf.get(key)), _DELTAS_OWN.get(storage, ""))


def has_one_for_all(conf: Mapping[str, str]) -> bool:
    """Whether a session commits everywhere through one LogStore: Delta then refuses any other: no Delta table could be
    opened."""
    return any(conf.get(key) for key in _EVERYWHERE)


def committer_of(log_store: str, storage: str) -> Committer:
    """Which row of the table a session's LogStore is."""
    if log_store == CONDITIONAL:
        return Committer.SPARK_CONDITIONAL
    return Committer.SPARK if log_store == _DELTAS_OWN.get(storage, "") else Committer.SPARK_OTHER


def why_not(location: str, conf: Mapping[str, str]) -> str | None:
    """Why a session with these settings may not work on a table at a canonical location, as the end of a sentence; None
    where it may. Refused are object stores on which its commits are known to be unsafe, or which it does not know."""
    storage = location.partition("://")[0]
    if cell_of(storage, Committer.SPARK).safety is Safety.IMPOSSIBLE:
        return f"Spark knows no {storage}:// ({cell_of(storage, Committer.SPARK).because})"
    if storage not in _OBJECT_STORES:
        return None
    log_store = log_store_of(conf, storage)
    found = cell_of(storage, committer_of(log_store, storage))
    if found.safety is not Safety.UNSAFE:
        return None
    return (
        f"Spark would commit to {storage}:// through {log_store.rpartition('.')[2]}, "
        f"where commits of several writers get lost ({found.because})"
    )
