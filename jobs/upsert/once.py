"""Was it done before? Told by the versions that head was made from, not by numbers alone: a RESTORE of Spark's leaves
the numbers of what it has undone. Pure."""

from collections.abc import Callable, Sequence
from enum import Enum, auto

from lakewarden.catalog.formats.port import Commit, CommitKind

__all__ = ["Verdict", "is_named", "was_done"]


class Verdict(Enum):
    """What a log says of an operation. FURTHER: its answer lies before the commits that were looked at."""

    DONE = auto()
    NOT_DONE = auto()
    FURTHER = auto()


def was_done(
    commits: Sequence[Commit], app: str, number: int, restored: Callable[[Commit], int | None]
) -> Verdict:
    """Whether head holds what `app` wrote under `number` or a later one. `commits` are the end of the log, in order;
    `restored` tells what a RESTORE went back to, None where nothing does."""
    line = {one.version: one for one in commits}
    version = commits[-1].version if commits else None
    while version is not None:
        one = line.get(version)
        if one is None:
            return Verdict.FURTHER
        if is_named(one, app, number):
            return Verdict.DONE
        if one.kind is CommitKind.RESTORE:
            version = restored(one)
            if version is None:
                return Verdict.FURTHER
        else:
            version = one.parent
    return Verdict.NOT_DONE


def is_named(commit: Commit, app: str, number: int) -> bool:
    """Whether a commit was made by `app` under `number` or a later one."""
    return any(name == app and told >= number for name, told in commit.transactions)
