"""What happened to a table after a rollback restored it:
whether the undo would take anything of somebody else's. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.lineage.versions import Effect, only_kept, version_of
from lakewarden.catalog.model.rollbacks import marked_by
from lakewarden.catalog.model.rows import RollbackRow, RollbackStep
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.plan.consents import Consent, flags_of

__all__ = [
    "Since",
    "require_only_appends",
    "set_back_since",
    "since_restore",
    "without",
    "written_since",
]

_CAUSES: Final = {RollbackStep.CHANGE: "the statement changed it"}


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


def written_since(row: RollbackRow, step: TableStep, foreign: Commit) -> ConflictError:
    """Somebody's commit keeps a step from being taken back."""
    hint = (
        "Undo that write first, by a RESTORE to the version before it, or leave the table "
        "as it is (`undo --leave`)."
    )
    other = marked_by(foreign.run_id)
    if other is not None:
        hint = f"It was rollback {other}: `lakewarden rollback undo {other}` first."
    return ConflictError(
        f"{step.name} was written to after {_CAUSES.get(row.kind, 'its rollback')} "
        f"(version {foreign.version}, {foreign.operation}); it stays as it is.",
        hint=hint,
    )


def set_back_since(step: TableStep, made: int) -> ConflictError:
    """Nobody can tell what came after the version that a step made."""
    return ConflictError(
        f"The head of {step.name} does not go back to version {made} any more, or versions in between have expired: "
        "what was written since its rollback cannot be told, and it stays as it is.",
        hint="Set head to a version that was made from it, or leave the table as it is (`undo --leave`).",
    )


def require_only_appends(
    row: RollbackRow, step: TableStep, since: Sequence[Commit] | None
) -> Sequence[Commit]:
    """The commits by which head came from the version that the step's rollback began with, if others' among them
    are appends alone: the order of any other and of what is to be added again would decide what the table holds.
    Raises `ConflictError` if they are not, `PreconditionError` if they cannot be told."""
    ours = [one for one in since or () if (one.run_id or "").startswith(f"rollback-{row.rollback_id}-")]
    if since is None or not ours:
        raise PreconditionError(
            f"The log of {step.name} no longer shows its restore; nothing is added to it.",
            hint=without(row, step),
        )
    for commit in since:
        made = version_of(commit)
        idle = made.idle and made.effect is Effect.APPEND  # a batch without rows
        if not (made.blind or idle or made.effect is Effect.ALIAS or commit in ours):
            raise ConflictError(
                f"Somebody changed {step.name} (version {commit.version}, {commit.operation}) "
                f"before version {step.to_version} was added again. {without(row, step)}"
            )
    return since


def without(row: RollbackRow, step: TableStep) -> str:
    """How a rollback goes on without adding an append again."""
    flag = flags_of(Consent.COLLATERAL, step.name, [step.to_version])
    return f"`lakewarden rollback resume {row.rollback_id} {flag}` goes on without it."
