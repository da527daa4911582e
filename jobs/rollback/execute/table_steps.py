"""What is done to one table: restore it or take files out, keep our properties, add lost appends again, take it back.
Each may be repeated after a crash.

Every commit carries the mark of its step. A repetition looks for that mark in the table's log first, so the log, not
memory, says whether the step was done.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lakewarden.catalog.errors import ConflictError, LakewardenError, PreconditionError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.heads import commit_at
from lakewarden.catalog.formats.port import Commit, Head, LogProblem, Observation, TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.model.lineage_record import group_app
from lakewarden.catalog.model.rollbacks import UNDO
from lakewarden.catalog.model.rows import RollbackRow, RollbackStep
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.rollback.execute.commit_records import again_record, removal_record
from lakewarden.jobs.rollback.execute.head_line import commits_since, made_on
from lakewarden.jobs.rollback.execute.later_commits import (
    Since,
    require_only_appends,
    set_back_since,
    since_restore,
    without,
    written_since,
)
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.step_check import missing_files, require_same_head
from lakewarden.jobs.runs.port import Tools

__all__ = ["StepExecutor", "mark_found", "mark_of", "told_of"]

_ATTEMPTS: Final = 10
_ON_ANY_HEAD: Final = (RollbackStep.REAPPLY, RollbackStep.CHANGE)
"""Steps that may be made on another version than the one that they were planned on."""


def mark_of(row: RollbackRow, *, undo: bool = False) -> str:
    """The run id that a step's commit carries: all changes of a group have the same, its id."""
    if row.kind is RollbackStep.CHANGE and not undo:
        return row.rollback_id
    return f"rollback-{row.rollback_id}-{row.step}{UNDO if undo else ''}"


def mark_found(readers: Sequence[TableReader], step: TableStep, mark: str) -> int | None:
    """The version of the first commit after the step's that carries a mark; None if the log has none."""
    commits = reader_of(readers, step.format).commits(step.location, after=step.from_version)
    return next((commit.version for commit in commits if commit.run_id == mark), None)


def told_of(row: RollbackRow, error: LakewardenError) -> str:
    """What keeps a step from being done or taken back, with the table's name: several may have such a message."""
    name = row.name or row.table_id
    return error.in_full if name in error.in_full else f"{name}: {error.in_full}"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepExecutor:
    """What works on the tables, each with the tools of its format."""

    tools: Tools
    storage: Callable[[str], StorageOptions]
    """Opens a table's folder."""
    permit: Callable[[RollbackRow, TableStep], None] = lambda row, step: None
    """Asked right before each commit, after the version it is made on was read: it raises what speaks against it."""
    claim: Callable[[RollbackRow], None] = lambda row: None
    """All that is asked before a fence, which changes nothing and keeps a sleeper from changing anything: a hold or a
    pause must not keep it away."""

    def restore(self, row: RollbackRow, step: TableStep) -> int:
        """Take the table to the step's target; the version of the commit. Raises `ConflictError` if head moved."""
        version = self.done(row, step)
        if version is None:
            version = self._restore(row, step)
        self._begin_epoch(row, step, restored=version, to=step.to_version, mark=mark_of(row))
        return version

    def _restore(self, row: RollbackRow, step: TableStep) -> int:
        self.permit(row, step)
        try:
            version = self.tools.engine(step.format).restore(
                step.location,
                requires=step.at,
                to=step.to_version,
                apps=step.apps,
                run_id=mark_of(row),
            )
        except ConflictError as error:
            answered = self.done(row, step)  # the answer to our own commit may have been lost
            if answered is None:
                raise self._moved(step) from error
            version = answered
        reach("rollback.restored")
        return version

    def remove_files(self, row: RollbackRow, step: TableStep) -> int:
        """Take the files of the step's versions out; the version of the commit.
        Raises `ConflictError` if head moved."""
        done = self.done(row, step)
        if done is not None:
            return done
        mark = mark_of(row)
        line = commits_since(self.tools.reader(step.format), step.location, after=step.to_version)
        if line is None:
            raise self._moved(step)
        record = removal_record(step, [one.version for one in line], mark=mark, user=row.actor or mark)
        self.permit(row, step)
        try:
            version = self.tools.engine(step.format).remove_files(
                step.location, requires=step.at, versions=step.versions, record=record
            )
        except ConflictError as error:
            answered = self.done(row, step)
            if answered is None:
                raise self._moved(step) from error
            version = answered
        reach("rollback.files_removed")
        return version

    def add_again(self, row: RollbackRow, step: TableStep) -> int:
        """Append what the step's version had appended, after the restore; the version of the commit.

        Appends of others in between do not matter. Raises `ConflictError` if somebody did anything else: the order of
        the two would decide what the table holds.
        """
        for _ in range(_ATTEMPTS):
            done = self.done(row, step)
            if done is not None:
                return done
            line = commits_since(self.tools.reader(step.format), step.location, after=step.from_version)
            since = require_only_appends(row, step, line)
            self.permit(row, step)
            try:
                version = self.tools.engine(step.format).add_again(
                    step.location,
                    requires=Head(since[-1].version),
                    version=step.to_version,
                    record=again_record(
                        step, self._original(row, step), mark=mark_of(row), user=row.actor or mark_of(row)
                    ),
                )
            except ConflictError:
                continue  # somebody was first, or the answer to our own commit was lost: the log tells
            reach("rollback.added_again")
            return version
        raise ConflictError(
            f"Others keep writing to {step.name}: version {step.to_version} could not be added again."
        )

    def require_head(self, step: TableStep) -> None:
        """Raise `ConflictError` if somebody wrote to the table since the plan, or made it anew."""
        reader = self.tools.reader(step.format)
        if reader.probe(step.location, seen=step.from_version).moved:
            raise self._moved(step)
        require_same_head(step, reader)

    def keep_properties(self, row: RollbackRow, step: TableStep) -> int | None:
        """Set those of our properties again that the restore rewound, and take those away that it brought back; None if
        there were none. What somebody has set since is as they want it."""
        commits = self.tools.reader(step.format).commits(step.location, after=step.from_version)
        made = [one for one in commits if one.run_id == mark_of(row)]
        version = next((one.version for one in reversed(made)), None)
        if any(one.changed_properties is None for one in made):
            return version
        done = {name for one in made for name in one.changed_properties or ()}
        seen = self._observe(step)
        others = [
            (key, value)
            for key, value in step.properties
            if key not in done and seen.properties.get(key) != value
        ]
        left = self._left_by_restore(row, step) if others else None
        if left is None:
            return version
        lost = [(key, value) for key, value in others if seen.properties.get(key) == left.get(key)]
        sets = [(key, value) for key, value in lost if value is not None]
        if not lost:
            return version
        self.permit(row, step)
        engine, run_id = self.tools.engine(step.format), mark_of(row)
        if not sets:
            names = [key for key, _ in lost]
            version = engine.unset_properties(step.location, requires=seen.at, names=names, run_id=run_id)
            reach("rollback.properties")
            return version
        version = engine.set_properties(step.location, requires=seen.at, properties=sets, run_id=run_id)
        reach("rollback.properties")
        return version if sets == lost else self.keep_properties(row, step)

    def _left_by_restore(self, row: RollbackRow, step: TableStep) -> Mapping[str, str] | None:
        """The properties that the restore before this step left; None if the log no longer shows it."""
        restore = replace(row, step=row.step - 1, kind=RollbackStep.RESTORE)
        version = self.done(restore, step)
        if version is None:
            return None
        return self.tools.reader(step.format).properties(step.location, version=version)

    def done(self, row: RollbackRow, step: TableStep) -> int | None:
        """The version of the commit that the step made, by its mark in the log; None if it made none so far."""
        return mark_found(self.tools.readers, step, mark_of(row))

    def is_left_over(self, row: RollbackRow, step: TableStep) -> bool:
        """Whether the step was done and never taken back, whatever the journal thinks of it."""
        return (
            self.done(row, step) is not None
            and mark_found(self.tools.readers, step, mark_of(row, undo=True)) is None
        )

    def is_undone_after(self, row: RollbackRow, later: TableStep) -> bool:
        """Whether a step was taken back after a later one on the same table was made."""
        return mark_found(self.tools.readers, later, mark_of(row, undo=True)) is not None

    def resolve(self, row: RollbackRow, step: TableStep) -> int | None:
        """The outcome of a step that an attempt may have begun: the version of its commit. None if it made no commit;
        then it never will, because an empty commit of ours takes the place of its own. A group's session may still
        begin its change on any head: there the empty commit says that the change was made. Raises `ConflictError` if
        others keep committing first."""
        for _ in range(_ATTEMPTS):
            # Head before the log: a commit that comes between the two looks is found by the second.
            latest = self.tools.reader(step.format).probe(step.location, seen=None).latest
            done = self.done(row, step)
            if done is not None or latest is None:
                return done
            if row.kind not in _ON_ANY_HEAD and latest != step.from_version:
                return None
            undo = mark_of(row, undo=True)
            if row.kind is RollbackStep.CHANGE and mark_found(self.tools.readers, step, undo) is not None:
                return None
            is_change = row.kind is RollbackStep.CHANGE
            app = next(iter(step.apps), group_app(row.rollback_id)) if is_change else None
            self.claim(row)
            try:
                self.tools.engine(step.format).fence(
                    step.location, requires=Head(latest), run_id=undo, app=app, number=step.fence
                )
            except ConflictError:
                continue
            reach("rollback.fenced")
            return None
        raise ConflictError(f"Others keep writing to {step.name}: it cannot be told what was done to it.")

    def take_back(
        self, row: RollbackRow, ours: frozenset[str], step: TableStep, *, begun: bool = True
    ) -> int | None:
        """Make the version before the rollback head again; None if the restore never happened, and then it never will,
        if it may have been `begun`.

        `ours` are the marks of the commits that the rollback and its undo make on this table.
        Raises `ConflictError` if somebody wrote after them, `PreconditionError` if the old version cannot be restored
        any more.
        """
        undo = mark_of(row, undo=True)
        last = self.resolve(row, step) if begun and row.new_version is None else self.done(row, step)
        if last is None:
            # Where head does not go back to a change any more, its commit may not say whose it was.
            taken = mark_found(self.tools.readers, step, undo) if row.kind is RollbackStep.CHANGE else None
            if row.new_version is not None and taken is None:
                raise PreconditionError(
                    f"The log of {step.name} no longer shows what the rollback did to it; it stays as it is.",
                    hint="Somebody cleaned the log or made the table anew: "
                    "look at `lakewarden tables history`.",
                )
            return None if row.new_version is None else taken
        reader = self.tools.reader(step.format)
        commits = commits_since(reader, step.location, after=last)
        if commits is None:
            every = reader.commits(step.location, after=last)
            commits = tuple(one for one in every if one.run_id == undo)
            if not commits:
                raise set_back_since(step, last)
        since = since_restore(last, commits, ours, undo)
        if since.foreign is not None:
            raise written_since(row, step, since.foreign)
        if row.kind is RollbackStep.CHANGE:
            step = made_on(reader, step, last)  # whatever came before it is others'
        version = since.undone[0] if since.undone else self._take_back(row, step, since)
        self._begin_epoch(row, step, restored=version, to=step.from_version, mark=undo)
        if since.kept:
            self._set_again(row, step, since, undone=version)
        return version

    def _require_none_unset(self, row: RollbackRow, step: TableStep, since: Since) -> None:
        """Raise `ConflictError` if the undo would bring back a property that somebody has unset since."""
        if since.kept:
            reader = self.tools.reader(step.format)
            now = reader.properties(step.location, version=since.head)
            old = reader.properties(step.location, version=step.from_version)
            for name, commit in since.kept.items():
                if name in old and name not in now:
                    raise written_since(row, step, commit)

    def _set_again(self, row: RollbackRow, step: TableStep, since: Since, *, undone: int) -> None:
        """Properties that somebody has set since the restore, as they were before its undo. What somebody sets after
        that is as they want it."""
        reader, mark = self.tools.reader(step.format), mark_of(replace(row, step=row.step + 1), undo=True)
        undo = commit_at(reader, step.location, undone)
        is_done = mark_found(self.tools.readers, replace(step, from_version=undone), mark) is not None
        if undo is None or undo.parent is None or is_done:
            return
        before = reader.properties(step.location, version=undo.parent)
        left = reader.properties(step.location, version=undone)
        for _ in range(_ATTEMPTS):
            seen = self._observe(step)
            lost = [
                (key, value)
                for key, value in sorted(before.items())
                if key in since.kept and value != left.get(key) and left.get(key) == seen.properties.get(key)
            ]
            if not lost:
                return
            self.permit(row, step)
            try:
                self.tools.engine(step.format).set_properties(
                    step.location, requires=seen.at, properties=lost, run_id=mark
                )
            except ConflictError:
                continue
            reach("rollback.properties")
            return
        raise ConflictError(f"Others keep writing to {step.name}: its retention could not be set again.")

    def _take_back(self, row: RollbackRow, step: TableStep, since: Since) -> int:
        self._require_none_unset(row, step, since)
        head = since.head
        self._check_old_files(step, head)
        self.permit(row, step)
        undo = mark_of(row, undo=True)
        try:
            version = self.tools.engine(step.format).restore(
                step.location, requires=Head(head), to=step.from_version, apps=step.apps, run_id=undo
            )
        except ConflictError:
            # The answer to our own commit was lost, or somebody else who is at it too came first.
            answered = mark_found(self.tools.readers, replace(step, from_version=head), undo)
            if answered is None:
                raise
            version = answered
        reach("rollback.taken_back")
        return version

    def _begin_epoch(self, row: RollbackRow, step: TableStep, *, restored: int, to: int, mark: str) -> None:
        """Take back the numbers of streams' batches where the restore could not; again after a crash in between."""
        if step.apps:
            self.permit(row, step)
            self.tools.engine(step.format).begin_epoch(
                step.location, restored=restored, to=to, apps=step.apps, run_id=mark
            )

    def _original(self, row: RollbackRow, step: TableStep) -> Commit:
        version = step.to_version
        found = commit_at(self.tools.reader(step.format), step.location, version)
        if found is None:
            raise PreconditionError(
                f"Version {version} of {step.name} is no longer in the log; its rows cannot be added again.",
                hint=without(row, step),
            )
        return found

    def _check_old_files(self, step: TableStep, head: int) -> None:
        try:
            gone = missing_files(
                self.tools.reader(step.format),
                self.storage,
                step.location,
                head=head,
                target=step.from_version,
            )
        except UnreadableError as error:
            raise PreconditionError(
                f"Version {step.from_version} of {step.name} has expired: it can no longer be restored.",
                hint="Versions are kept until the stated time; restore a backup.",
            ) from error
        if gone:
            raise PreconditionError(
                f"Version {step.from_version} of {step.name} cannot be restored: {gone[0]} is gone.",
                hint="Somebody's vacuum deleted it; put it back from a backup.",
            )

    def _observe(self, step: TableStep) -> Observation:
        seen = self.tools.reader(step.format).observe(step.location)
        if isinstance(seen, LogProblem):
            raise UnreadableError(seen.message, hint=f"lakewarden tables validate {step.name}")
        return seen

    def _moved(self, step: TableStep) -> ConflictError:
        reader = self.tools.reader(step.format)
        first = next(iter(commits_since(reader, step.location, after=step.from_version) or ()), None)
        what = "" if first is None else f" (version {first.version}, {first.operation})"
        return ConflictError(
            f"Somebody wrote to {step.name} after version {step.from_version}{what}; it was not touched.",
            hint="`lakewarden rollback resume` takes that commit into the plan, "
            "`rollback undo` takes all back.",
        )
