"""What Delta's own checksum of a version tells of it. Each commit derives it from that of the version before, and a
snapshot has it without a job of Spark's; to put the state of the table together takes several.

A checksum is found by its version's number alone. Files and ids are taken from it only if it is of the very commit that
the log has under this number: where one writer's commit has taken the place of another's, the other's checksum stays.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

__all__ = ["bytes_of", "files_of", "listed", "numbers_of", "only_file"]

_EXPIRES: Final = "delta.setTransactionRetentionDuration"


def numbers_of(snapshot: Any) -> Mapping[str, int] | None:
    """The last number of each application id that a version (Delta's own, in the JVM) knows; None where its checksum
    does not tell. With many ids there it tells of none, and of ids that expire it does not tell when."""
    if snapshot.metadata().configuration().contains(_EXPIRES):
        return None
    found = _of_this_commit(snapshot)
    told = None if found is None else found.setTransactions()
    if told is None or not told.isDefined():
        return None
    every = told.get()
    each = [every.apply(place) for place in range(every.length())]
    return {str(one.appId()): int(one.version()) for one in each}


def files_of(snapshot: Any) -> int:
    """How many files a version has."""
    found = snapshot.checksumOpt()
    return int(found.get().numFiles() if found.isDefined() else snapshot.numOfFiles())


def bytes_of(snapshot: Any) -> int | None:
    """How many bytes they have; None where nobody knows."""
    checksum = snapshot.checksumOpt()
    if checksum.isDefined():
        return int(checksum.get().tableSizeBytes())
    known = snapshot.sizeInBytesIfKnown()
    return int(known.get()) if known.isDefined() else None


def listed(snapshot: Any) -> tuple[Any, ...] | None:
    """The `AddFile`s of a version, with their statistics; None where its checksum does not list them. It does of tables
    that have few."""
    checksum = _of_this_commit(snapshot)
    files = None if checksum is None else checksum.allFiles()
    if checksum is None or files is None or not files.isDefined():
        return None
    if files.get().length() != int(checksum.numFiles()):
        return None
    return tuple(files.get().apply(place) for place in range(files.get().length()))


def only_file(snapshot: Any) -> Any | None:
    """The `AddFile` of a version that has no other; None for any other version, and where its checksum does not say."""
    files = listed(snapshot) if files_of(snapshot) == 1 else None
    return None if files is None else files[0]


def _of_this_commit(snapshot: Any) -> Any | None:
    """The checksum of a version, if it says that it is of the commit that the log has; None where nobody can tell."""
    found = snapshot.checksumOpt()
    told = found.get().txnId() if found.isDefined() else found
    if not told.isDefined():
        return None
    return found.get() if str(told.get()) == _commit_id(snapshot) else None


def _commit_id(snapshot: Any) -> str | None:
    """What the log's commit of a version calls itself; None where its first line does not say."""
    log = snapshot.deltaLog()
    path = snapshot.path().suffix(f"/{int(snapshot.version()):020d}.json")
    try:
        lines = log.store().readAsIterator(path, log.newDeltaHadoopConf())
        try:
            first = orjson.loads(str(lines.next())) if lines.hasNext() else {}
        finally:
            lines.close()
    except (PySparkException, Py4JJavaError, ValueError):
        return None  # it is in a checkpoint alone, or elsewhere; whoever needs it will say so
    told = first.get("commitInfo", {}).get("txnId")
    return None if told is None else str(told)
