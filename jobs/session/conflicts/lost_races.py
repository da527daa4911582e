"""A race that a write has lost: to which commit, and by whom. Pure but for the reading of the log."""

import re
from typing import Final, NoReturn

from lakewarden.catalog.errors import ConflictError, LakewardenError
from lakewarden.catalog.formats.port import Commit, TableReader

__all__ = ["LostRaceError", "UntoldWriteError", "look_for_own_commit", "lose_for_good", "told_of"]

_VERSION: Final = re.compile(r"committed at version (\d+)")
"""The part of Delta's error that names the commit. Of a change of metadata it does not."""
_READ_ANEW: Final = (
    "Its source has a fixed version of the very table that it writes to: another try would undo what was "
    "committed since. Read the table anew, then run it again."
)
_MAKES_A_TABLE: Final = "Look at what is there now: another try would replace it."


class LostRaceError(ConflictError):
    """Somebody else committed first, or executors were lost with rows that the write had kept; nothing of it is in the
    table. `is_mendable`: another try means the same as one that had begun later."""

    def __init__(self, message: str, *, is_mendable: bool, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.is_mendable = is_mendable


def lose_for_good(error: LostRaceError) -> NoReturn:
    """Raise it as the loss of a write whose source has a fixed version of its target: another try would read that."""
    raise LostRaceError(str(error), is_mendable=False, hint=_READ_ANEW) from error


class UntoldWriteError(ConflictError):
    """Whether a write was made, or will be, nobody can tell."""


def look_for_own_commit(
    reader: TableReader,
    location: str,
    *,
    since: int,
    run_id: str,
    said: str,
    reads_fixed: bool,
    makes_table: bool,
) -> Commit:
    """The commit that a write has made in spite of its error: where the answer to it got lost, Delta takes its own
    commit for somebody else's. `since` is a version from before it, `said` what Delta said.

    Raises `LostRaceError` where there is none; it names the commit that has won.
    """
    try:
        commits = tuple(reader.commits(location, after=since))
    except LakewardenError as problem:
        raise LostRaceError(
            f"Somebody else committed to {location} first, it seems; "
            f"its log does not tell just now: {problem}",
            is_mendable=False,
            hint="Check whether the rows are in the table; if not, run the statement again.",
        ) from problem
    own = next((one for one in commits if one.run_id == run_id), None)
    if own is not None:
        return own
    winner = _winner(commits, said)
    told = "" if winner is None else f": {told_of(winner)}"
    raise LostRaceError(
        f"Somebody else committed to {location} first{told}.",
        is_mendable=not (reads_fixed or makes_table),
        hint=_MAKES_A_TABLE if makes_table else _READ_ANEW,
    )


def told_of(commit: Commit) -> str:
    """The winning commit and its author, as far as the error names them."""
    record = commit.lineage
    user = commit.user if record is None else record.user
    parts = [f"version {commit.version}, {commit.operation}"]
    if user is not None:
        parts.append(f"by {user}")
    if commit.run_id is not None:
        parts.append(f"in run {commit.run_id}")
    elif commit.engine is not None:
        parts.append(f"with {commit.engine}")
    return " ".join(parts)


def _winner(commits: tuple[Commit, ...], said: str) -> Commit | None:
    """The commit that Delta names; where it names none the last one."""
    named = _VERSION.search(said)
    version = None if named is None else int(named[1])
    return next((one for one in commits if one.version == version), commits[-1] if commits else None)
