"""What a run whose worker is gone came to: the table's log says, not memory. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.state.port import Run

__all__ = ["GiveUp", "Recovered", "Retry", "Verdict", "verdict_of"]

_LAST_COMMIT_OF_A_VACUUM = "VACUUM END"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered:
    """It was done: its commit is version `version`."""

    version: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry:
    """It left nothing behind, or all of its steps can be done again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GiveUp:
    """It was interrupted half-way, on a version that is no longer head; what is left will be planned anew."""

    because: str


Verdict = Recovered | Retry | GiveUp


def verdict_of(run: Run, commits: Iterable[Commit]) -> Verdict:
    """Judge a run by the commits after the version it was decided on (after -1 where it was on none).

    A commit of somebody else does not matter here: begun again, the run finds that its version is no longer head.
    """
    action = run.request.action
    ours = [commit for commit in commits if commit.run_id == run.request.run_id]
    if not ours:
        return Retry()
    last = ours[-1].version
    match action:
        case Action.CONVERT | Action.PURGE | Action.SYNC | Action.LOG_CARE | Action.ROLLBACK:
            return Retry()
        case Action.PROPERTIES if run.request.requires_version is None:
            return Retry()  # giving back may take two commits
        case Action.PROPERTIES | Action.COMPACT | Action.STATISTICS:
            return Recovered(version=last)
        case Action.VACUUM:
            if ours[-1].operation == _LAST_COMMIT_OF_A_VACUUM:
                return Recovered(version=last)
            return GiveUp(because="It was interrupted while deleting; the next vacuum deletes the rest.")
        case _:
            assert_never(action)
