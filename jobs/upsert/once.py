"""Was it done before? Told by the versions that head was made from, not by numbers alone: a RESTORE of Spark's leaves
the numbers of what it has undone, and one to a later version brings that back without its number. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.model.lineage_record import Operation

__all__ = ["Finding", "Verdict", "find", "is_statement"]

_BEFORE_ALL: Final = -1
_OLD_BYTES: Final = 7


class Verdict(Enum):
    """What a log says of an operation. FURTHER: its answer lies before the commits that were looked at, and all of
    these count. UNTOLD: it lies before them, where some have been undone."""

    DONE = auto()
    NOT_DONE = auto()
    FURTHER = auto()
    UNTOLD = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A verdict, and the commit that did it, None where nothing is left of that in the log."""

    verdict: Verdict
    commit: Commit | None = None


def find(
    commits: Sequence[Commit], app: str, number: int, restored: Callable[[Commit], int | None]
) -> Finding:
    """Whether head holds what `app` wrote under `number` or a later one. `commits` are the end of the log, in order;
    `restored` tells what a RESTORE went back to, None where nothing does."""
    line = {one.version: one for one in commits}
    version = commits[-1].version if commits else None
    further, gone = Verdict.FURTHER, set[int]()
    while version is not None:
        one = line.get(version)
        if one is None:
            return Finding(verdict=further)
        if one.kind is CommitKind.RESTORE:
            further, version = Verdict.UNTOLD, restored(one)
            if version is None:
                return Finding(verdict=further)
            continue
        numbers = [told for name, told in one.transactions if name == app]
        if numbers and version in gone:
            further = Verdict.UNTOLD
        elif numbers and max(numbers) >= number:
            return Finding(verdict=Verdict.DONE, commit=one)
        elif numbers:
            break  # its number was lower then: what is asked for came later, or had been undone
        removed = _removed(one)
        if removed is None:
            return Finding(verdict=Verdict.UNTOLD)
        gone |= removed
        version = one.parent
    return Finding(verdict=Verdict.NOT_DONE)


def _removed(commit: Commit) -> frozenset[int] | None:
    """The versions whose files a commit took out of its parent; None where it has no room to say it."""
    record = commit.lineage
    if record is None or record.operation is not Operation.REMOVE_FILES or commit.parent is None:
        return frozenset()
    if not record.complete:
        return None
    base, kept = _BEFORE_ALL, set[int]()
    for one in record.inputs:
        if one.version is None:
            continue
        if one.from_version is None:
            base = one.version
        else:
            kept.update(range(one.from_version + 1, one.version + 1))
    return frozenset(range(base + 1, commit.parent + 1)).difference(kept)


def is_statement(commit: Commit | None, *, app: str, last: int, digest: str) -> bool:
    """Whether what was done as `app` is the statement of this digest, as far as `commit` tells; where that is cleaned
    up, `last` is the number that is left. A number above 1 is an older build's, which made it of the digest."""
    told = () if commit is None else commit.transactions
    number = max((number for name, number in told if name == app), default=last)
    if number > 1:
        return number == int.from_bytes(bytes.fromhex(digest)[:_OLD_BYTES], "big") + 1
    record = None if commit is None else commit.lineage
    return record is None or record.statement is None or record.statement == digest
