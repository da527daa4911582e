"""Was it done before? Told by the versions that head was made from, not by numbers alone: a RESTORE of Spark's leaves
the numbers of what it has undone, and one to a later version brings that back without its number. Numbers decide where
the log has been cleaned up. Pure.

The numbers of statements tell by themselves what became of them: an odd one was written by the statement; an even one
(0, or a fence's) says that earlier ones do not count. So each try has the next odd number, and no session that wakes up
late can write one again that was fenced off.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.model.rollbacks import is_mark

__all__ = [
    "OperationFinding",
    "OperationQuestion",
    "OperationVerdict",
    "fence_of",
    "find",
    "is_of_old",
    "is_statement",
    "next_number",
]

_BEFORE_ALL: Final = -1
_OLD_BYTES: Final = 7
_OLD: Final = 2**32
"""Numbers above it are an older build's, which made them of a statement's text."""


class OperationVerdict(Enum):
    """What a log says of an operation. OVERTAKEN: it was undone, or the table was made anew since, and a later number
    of the same application is there.
    FURTHER: its answer lies before the commits that were looked at. UNTOLD: it lies before all that is left of the log,
    where some have been undone."""

    DONE = auto()
    NOT_DONE = auto()
    OVERTAKEN = auto()
    FURTHER = auto()
    UNTOLD = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationFinding:
    """A verdict, and the commit that did it (None if the log no longer has it); the first of the later ones where it
    was OVERTAKEN."""

    verdict: OperationVerdict
    commit: Commit | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationQuestion:
    """Whether a table holds what an application wrote under a number."""

    app: str
    number: int
    last: int
    """The number that head knows."""
    known: Callable[[int], int | None]
    """The number of an earlier version; None where nothing tells it."""
    restored: Callable[[Commit], int | None]
    """What a RESTORE went back to; None where nothing tells it."""
    by_parity: bool = False
    """The application is a statement's, whatever its number."""

    def by(self, number: int | None) -> OperationFinding:
        """The verdict where nothing but a version's number is left."""
        return OperationFinding(
            verdict=OperationVerdict.DONE if self.is_meant(number) else OperationVerdict.NOT_DONE
        )

    def is_meant(self, number: int | None) -> bool:
        """Whether a number counts as done."""
        if number is None or number < self.number:
            return False
        return not self.by_parity or number % 2 == 1 or is_of_old(number)

    def number_in(self, commit: Commit) -> int | None:
        """The number that a commit gives to `app`."""
        return max((told for name, told in commit.transactions if name == self.app), default=None)


def find(commits: Sequence[Commit], asked: OperationQuestion, *, whole: bool) -> OperationFinding:
    """Look for it in the end of a log, in order; FURTHER is never said of a `whole` log, as far as it is left.

    What a rollback of ours numbers anew says what its target's number was, and no more: the walk goes on to the target.
    """
    line = {one.version: one for one in commits}
    version = commits[-1].version if commits else None
    told: int | None = None  # what the number was where the RESTORE just before this commit went to
    before: Commit | None = None
    later: Commit | None = None  # the first that is there of those with a larger number
    gone, undone = list[_Span](), False
    while version is not None:
        one = line.get(version)
        if one is None:
            if not whole:
                return OperationFinding(verdict=OperationVerdict.FURTHER)
            left = _left(asked, before, gone, told, first=commits[0].version, undone=undone)
            return _unless_later(left, later, undone=undone)
        number = asked.number_in(one)
        if one.kind is CommitKind.RESTORE:
            told, undone = told if number is None else number, True
            target = asked.restored(one)
            if target is None:
                left = OperationFinding(verdict=OperationVerdict.UNTOLD) if told is None else asked.by(told)
                return _unless_later(left, later, undone=undone)
            before, version = one, target
            continue
        is_ours = is_mark(one.run_id)
        told = number if is_ours and one.lineage is None else None
        if number is not None and not is_ours:
            is_gone = any(version in span for span in gone)
            if number > asked.number and not asked.by_parity:
                later = later if is_gone else one
            else:
                is_done = asked.is_meant(number) and not is_gone
                verdict = OperationVerdict.DONE if is_done else OperationVerdict.NOT_DONE
                return _unless_later(
                    OperationFinding(verdict=verdict, commit=one if is_done else None), later, undone=undone
                )
        if one.kind is CommitKind.CREATE:  # without a row: nothing from before is in it
            return _unless_later(OperationFinding(verdict=OperationVerdict.NOT_DONE), later, undone=True)
        removed = _removed(one)
        if removed is None:
            return OperationFinding(verdict=OperationVerdict.UNTOLD)
        gone += removed
        undone = undone or bool(removed)
        before, version = one, one.parent
    return _unless_later(
        OperationFinding(verdict=OperationVerdict.NOT_DONE), later, undone=undone or bool(commits)
    )


def _unless_later(found: OperationFinding, later: Commit | None, *, undone: bool) -> OperationFinding:
    """What is found, where later ones may be there: what they came after is there as well, unless something was undone
    between, or the table began without it; then it is too late for it. In between, what found nothing to change may
    have left no commit."""
    if found.verdict is not OperationVerdict.NOT_DONE or later is None:
        return found
    return (
        OperationFinding(verdict=OperationVerdict.OVERTAKEN, commit=later)
        if undone
        else OperationFinding(verdict=OperationVerdict.DONE)
    )


def _left(
    asked: OperationQuestion,
    before: Commit | None,
    gone: Iterable["_Span"],
    told: int | None,
    *,
    first: int,
    undone: bool,
) -> OperationFinding:
    """What numbers say of the versions before the log's `first`, where the walk went after `before`."""
    if not undone or before is None:
        return asked.by(asked.last)  # nothing that is left of the log speaks against the number
    jumped = before.kind is CommitKind.RESTORE
    if jumped and told is not None:
        return asked.by(told)
    known = asked.known(first)
    is_clear = not jumped and asked.number_in(before) is None and all(one.after + 1 >= first for one in gone)
    return asked.by(known) if is_clear or known is None else OperationFinding(verdict=OperationVerdict.UNTOLD)


@dataclass(frozen=True, slots=True)
class _Span:
    """The versions after one, up to another: whichever there are."""

    after: int
    upto: int

    def __contains__(self, version: int) -> bool:
        return self.after < version <= self.upto

    def without(self, kept: "_Span") -> Iterator["_Span"]:
        """What is left of it."""
        parts = (_Span(self.after, min(self.upto, kept.after)), _Span(max(self.after, kept.upto), self.upto))
        return (part for part in parts if part.after < part.upto)


def _removed(commit: Commit) -> Sequence[_Span] | None:
    """The versions whose files a commit took out of its parent; None where it has no room to say it."""
    record = commit.lineage
    if record is None or record.operation is not Operation.REMOVE_FILES or commit.parent is None:
        return ()
    if not record.complete:
        return None
    base, kept = _BEFORE_ALL, list[_Span]()
    for one in record.inputs:
        if one.version is None:
            continue
        if one.from_version is None:
            base = one.version
        else:
            kept.append(_Span(one.from_version, one.version))
    left = [_Span(base, commit.parent)] if base < commit.parent else []
    for spared in kept:
        left = [part for span in left for part in span.without(spared)]
    return left


def next_number(last: int | None) -> int:
    """The number of the next try of a statement, where `last` is the table's, None for none."""
    return 1 if last is None or last < 1 else last + 1 + last % 2


def fence_of(number: int) -> int:
    """The number by which a table says that the try of this number was not made, and never will be."""
    return number + 1


def is_of_old(number: int) -> bool:
    """Whether an older build made a statement's number of its text."""
    return number > _OLD


def is_statement(commit: Commit | None, *, app: str, last: int, digest: str) -> bool:
    """Whether the operation `app` was the statement of this digest, as far as `commit` tells; where that is cleaned up,
    `last` is the number that is left."""
    told = () if commit is None else commit.transactions
    number = max((number for name, number in told if name == app), default=last)
    if is_of_old(number):
        return number == int.from_bytes(bytes.fromhex(digest)[:_OLD_BYTES], "big") + 1
    record = None if commit is None else commit.lineage
    return record is None or record.statement is None or record.statement == digest
