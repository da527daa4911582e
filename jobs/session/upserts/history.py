"""Was an operation done before? Asked of the table's log, by windows from its end."""

from collections.abc import Callable
from typing import Final

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.jobs.upsert.once import Asked, Finding, Verdict, find

__all__ = ["found", "was_done"]

_WINDOW: Final = 64
"""Commits looked at first; twice as many the next time."""

Known = Callable[[int], int | None]
"""The last number of the application id that a version of the table knows, None for none."""


def was_done(
    reader: TableReader, location: str, *, head: int, app: str, number: int, last: int, known: Known
) -> bool:
    """Whether version `head` holds an upsert's or a stream's batch: see `found`.

    Raises `PreconditionError` if the log has been cleaned up so far that nobody can tell.
    """
    verdict = found(reader, location, head=head, app=app, number=number, last=last, known=known).verdict
    if verdict is Verdict.UNTOLD:
        raise PreconditionError(
            f"Whether {app} was done before number {number} was undone, its log does not tell any more.",
            hint="Give the upsert another operation id, or the stream a new checkpoint.",
        )
    return verdict is Verdict.DONE


def found(
    reader: TableReader,
    location: str,
    *,
    head: int,
    app: str,
    number: int,
    last: int,
    known: Known,
    by_parity: bool = False,
) -> Finding:
    """Whether version `head` holds what `app` wrote under `number` or a later one. `last` is the number that head
    knows, which a RESTORE leaves as it is; `known` is asked of the log's first version only; `by_parity` as in `Asked`.
    DONE, NOT_DONE, or UNTOLD: the log has been cleaned up too far."""

    def restored(commit: Commit) -> int | None:
        if commit.restored is not None:
            return commit.restored
        return reader.restored(location, version=commit.version)

    asked = Asked(app=app, number=number, last=last, known=known, restored=restored, by_parity=by_parity)
    commits: tuple[Commit, ...] = ()
    upto = head
    window = _WINDOW
    while True:
        after = max(head - window, -1)
        commits = (*reader.commits(location, after=after, upto=upto), *commits)
        upto, window = after, 2 * window
        whole = after < 0 or not commits or commits[0].version > after + 1
        finding = find(commits, asked, whole=whole)
        if whole or finding.verdict is not Verdict.FURTHER:
            return finding
