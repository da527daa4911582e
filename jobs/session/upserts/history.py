"""Was an operation done before? Asked of the table's log, by windows from its end."""

from itertools import count
from typing import Final

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.jobs.upsert.once import Finding, Verdict, find

__all__ = ["found", "holds"]

_WINDOW: Final = 64
"""Commits looked at first; twice as many the next time."""


def holds(reader: TableReader, location: str, *, head: int, app: str, number: int, last: int) -> bool:
    """Whether version `head` holds an upsert's or a stream's batch: see `found`.

    Raises `PreconditionError` if the log has been cleaned up so far that nobody can tell.
    """
    verdict = found(reader, location, head=head, app=app, number=number, last=last).verdict
    if verdict is Verdict.UNTOLD:
        raise PreconditionError(
            f"Whether {app} was done before number {number} was undone, its log does not tell any more.",
            hint="Give the upsert another operation id, or the stream a new checkpoint.",
        )
    return verdict is Verdict.DONE


def found(reader: TableReader, location: str, *, head: int, app: str, number: int, last: int) -> Finding:
    """Whether version `head` holds what `app` wrote under `number` or a later one. `last` is the number that head
    knows, which a RESTORE leaves as it is. DONE, NOT_DONE, or UNTOLD: the log has been cleaned up too far."""

    def restored(commit: Commit) -> int | None:
        if commit.restored is not None:
            return commit.restored
        return reader.restored(location, version=commit.version)

    finding = Finding(verdict=Verdict.UNTOLD)
    for attempt in count():
        after = max(head - _WINDOW * 2**attempt, -1)
        commits = tuple(reader.commits(location, after=after, upto=head))
        finding = find(commits, app, number, restored)
        if finding.verdict in (Verdict.DONE, Verdict.NOT_DONE):
            return finding
        if after < 0:
            break
    if finding.verdict is Verdict.FURTHER:  # nothing that is left of the log speaks against the number
        return Finding(verdict=Verdict.DONE if last >= number else Verdict.NOT_DONE)
    return finding
