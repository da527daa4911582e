"""What Delta's own checksum of a version tells of it. Each commit derives it from that of the version before, and a
snapshot has it without a job of Spark's; to put the state of the table together takes several."""

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["bytes_of", "files_of", "numbers_of", "only_file"]

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


def only_file(snapshot: Any) -> Any | None:
    """The `AddFile` of a version that has no other; None for any other version, and where its checksum does not say.
    Checksums list the files of a table that has few."""
    checksum = snapshot.checksumOpt()
    listed = checksum.get().allFiles() if checksum.isDefined() else checksum
    if not listed.isDefined() or listed.get().length() != 1 or int(checksum.get().numFiles()) != 1:
        return None
    return listed.get().head()
