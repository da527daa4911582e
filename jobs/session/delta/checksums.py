"""What Delta's own checksum of a version tells of it. Each commit derives it from that of the version before, and a
snapshot has it without a job of Spark's; to put the state of the table together takes several."""

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["bytes_of", "files_of", "listed", "numbers_of", "only_file"]

_EXPIRES: Final = "delta.setTransactionRetentionDuration"


def numbers_of(snapshot: Any) -> Mapping[str, int] | None:
    """The last number of each application id that a version (Delta's own, in the JVM) knows; None where its checksum
    does not tell. With many ids there it tells of none, and of ids that expire it does not tell when."""
    found = snapshot.checksumOpt()
    if not found.isDefined() or snapshot.metadata().configuration().contains(_EXPIRES):
        return None
    told = found.get().setTransactions()
    if not told.isDefined():
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
    checksum = snapshot.checksumOpt()
    files = checksum.get().allFiles() if checksum.isDefined() else checksum
    if not files.isDefined() or files.get().length() != int(checksum.get().numFiles()):
        return None
    return tuple(files.get().apply(place) for place in range(files.get().length()))


def only_file(snapshot: Any) -> Any | None:
    """The `AddFile` of a version that has no other; None for any other version, and where its checksum does not say."""
    files = listed(snapshot) if files_of(snapshot) == 1 else None
    return None if files is None else files[0]
