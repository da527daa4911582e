"""Was an operation done before? Asked of the table's log, by windows from its end."""

from collections.abc import Callable, Sequence
from typing import Final

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.jobs.session.formats.repeated_batches import require_same_changes, undoing
from lakewarden.jobs.session.writes import Read
from lakewarden.jobs.upsert.once import OperationFinding, OperationQuestion, OperationVerdict, find

__all__ = ["found", "was_done"]

_WINDOW: Final = 8
"""Commits looked at first; twice as many the next time."""

Known = Callable[[int], int | None]
"""The last number of the application id that a version of the table knows, None for none."""


def was_done(finding: OperationFinding, *, app: str, number: int, reads: Sequence[Read] = ()) -> bool:
    """Whether a table holds the batch of an upsert or a stream, by the finding of `found`. `reads` are those of the
    batch now, as far as they are known.

    Raises `PreconditionError` if the log has been cleaned up so far that nobody can tell, if the batch was undone and a
    later one was not, and if it was done with other changes than it has now.
    """
    match finding:
        case OperationFinding(verdict=OperationVerdict.OVERTAKEN, commit=Commit() as later):
            raise _overtaken(number, later.version, later.run_id)
        case OperationFinding(verdict=OperationVerdict.UNTOLD):
            raise PreconditionError(
                f"Whether {app} was done before number {number} was undone, its log does not tell any more.",
                hint="Give the upsert another operation id, or the stream a new checkpoint.",
            )
        case OperationFinding(verdict=OperationVerdict.DONE, commit=Commit() as made):
            require_same_changes(made.lineage, made.run_id, number, reads)
    return finding.verdict is OperationVerdict.DONE


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
) -> OperationFinding:
    """Whether version `head` holds what `app` wrote under `number`. `last` is the number that head knows, which a
    RESTORE leaves as it is; `known` is asked of the log's first version only; `by_parity` as in
    `OperationQuestion`. Never FURTHER; UNTOLD: the log has been cleaned up too far."""

    def restored(commit: Commit) -> int | None:
        if commit.restored is not None:
            return commit.restored
        return reader.restored(location, version=commit.version)

    asked = OperationQuestion(
        app=app, number=number, last=last, known=known, restored=restored, by_parity=by_parity
    )
    commits: tuple[Commit, ...] = ()
    upto = head
    window = _WINDOW
    while True:
        after = max(head - window, -1)
        commits = (*reader.commits(location, after=after, upto=upto), *commits)
        upto, window = after, 2 * window
        whole = after < 0 or not commits or commits[0].version > after + 1
        finding = find(commits, asked, whole=whole)
        if whole or finding.verdict is not OperationVerdict.FURTHER:
            return finding


def _overtaken(number: int, version: int, run_id: str | None) -> PreconditionError:
    """A batch that a table does not hold comes again, and a later one is in a version that a run made."""
    return PreconditionError(
        f"Batch {number} is not in the table (it was undone, or the table was made anew since), and a "
        f"later one of its query is, in version {version}: written now, older rows would replace "
        "newer ones.",
        hint=f"Undo that as well ({undoing(run_id)}), and all of them are written again; "
        "or start the query with a new checkpoint.",
    )
