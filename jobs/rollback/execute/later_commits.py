"""What happened to a table after a rollback restored it:
whether the undo would take anything of somebody else's. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.lineage.versions import only_kept, version_of

__all__ = ["Since", "since_restore"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Since:
    """What came after a restore of ours."""

    head: int
    """Up to this version."""
    foreign: Commit | None = None
    """The first commit of somebody else's that head still holds, None if its content is what the rollback left."""
    undone: tuple[int, ...] = ()
    """Our own undoing of it."""
    kept: Mapping[str, Commit] = field(default_factory=dict)
    """Properties changed since that outlive a rollback, such as a retention, each with its last commit; they outlive
    its undo, too."""


def since_restore(restored: int, commits: Iterable[Commit], ours: Collection[str], undo: str) -> Since:
    """Go through the commits after version `restored`. `ours` are the marks of the rollback and of its undo on
    this table, `undo` is that of the undo of this restore.

    Others' commits stop counting once a RESTORE has gone back to a version with the rollback's result: as the undo of a
    later rollback does.
    """
    held, head = {restored}, restored
    foreign: Commit | None = None
    undone: list[int] = []
    kept: dict[str, Commit] = {}
    for commit in commits:
        head = commit.version
        if commit.run_id == undo:
            undone.append(commit.version)
        elif not undone:
            if commit.run_id not in ours:
                if only_kept(commit):
                    kept |= dict.fromkeys(commit.changed_properties or (), commit)
                elif not _is_quiet(commit):
                    is_back = _restores_to(commit, held)
                    foreign, kept = (None, {}) if is_back else (foreign or commit, kept)
            if foreign is None:
                held.add(commit.version)
    return Since(head=head, foreign=foreign, undone=tuple(undone), kept=kept)


def _restores_to(commit: Commit, held: Collection[int]) -> bool:
    return commit.kind is CommitKind.RESTORE and version_of(commit).target in held


def _is_quiet(commit: Commit) -> bool:
    """Whether the commit changes nothing visible to readers of the table."""
    return commit.kind is CommitKind.MAINTENANCE and not commit.data_change
