"""Was an upsert done before? Asked of the table's log, by windows from its end."""

from itertools import count
from typing import Final

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.jobs.upsert.once import Verdict, is_named, was_done

__all__ = ["holds"]

_WINDOW: Final = 64
"""Commits looked at first; twice as many the next time."""


def holds(reader: TableReader, location: str, *, head: int, app: str, number: int) -> bool:
    """Whether version `head` holds what `app` wrote under `number` or a later one. For a number that the table knows:
    it may have been undone since.

    Raises `PreconditionError` if the log has been cleaned up so far that nobody can tell.
    """

    def restored(commit: Commit) -> int | None:
        if commit.restored is not None:
            return commit.restored
        return reader.restored(location, version=commit.version)

    for attempt in count():
        after = max(head - _WINDOW * 2**attempt, -1)
        commits = tuple(reader.commits(location, after=after, upto=head))
        verdict = was_done(commits, app, number, restored)
        if verdict is not Verdict.FURTHER:
            return verdict is Verdict.DONE
        if after < 0:
            break
    if any(is_named(one, app, number) for one in commits):
        raise PreconditionError(
            f"Whether {app} was done before number {number} was undone, its log does not tell any more.",
            hint="Give the upsert another operation id, or the stream a new checkpoint.",
        )
    return True  # the table knows the number, and nothing that is left of its log has undone it
