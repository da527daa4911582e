"""What is done to one table: restore it or take files out, keep our properties, add lost appends again, take it back.
Each may be repeated after a crash.

Every commit carries the mark of its step. A repetition looks for that mark in the table's log first, so the log, not
memory, says whether the step was done.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.errors import ConflictError, PreconditionError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.base import Commit, LogProblem, Observation, TableReader
from lakewarden.catalog.lineage.versions import Effect, version_of
from lakewarden.catalog.model import RollbackRow
from lakewarden.catalog.rollbacks import marked_by
from lakewarden.catalog.storage import StorageOptions, open_store
from lakewarden.jobs.base import Engine
from lakewarden.jobs.rollback.records import again_record, removal_record
from lakewarden.jobs.rollback.since import since_restore
from lakewarden.jobs.rollback.step import TableStep
from lakewarden.jobs.rollback.verify import missing_files

__all__ = ["Hands", "mark_of"]

_ATTEMPTS: Final = 10
_WITHOUT: Final = "`rollback resume --consent collateral` goes on without it."


def mark_of(row: RollbackRow, *, undo: bool = False) -> str:
    """The run id that a step's commit carries."""
    return f"rollback-{row.rollback_id}-{row.step}{'-undo' if undo else ''}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Hands:
    """What works on the tables. `storage` opens a table's folder."""

    reader: TableReader
    engine: Engine
    storage: Callable[[str], StorageOptions]

    def restore(self, row: RollbackRow, step: TableStep) -> int:
        """Take the table to the step's target; the version of the commit. Raises `ConflictError` if head moved."""
        version = self._restored(row, step)
        if version is None:
            version = self._restore(row, step)
        self._begin_epoch(step, restored=version, to=step.to_version, mark=mark_of(row))
        return version

    def _restore(self, row: RollbackRow, step: TableStep) -> int:
        try:
            version = self.engine.restore(
                step.location,
                requires=step.from_version,
                to=step.to_version,
                apps=step.apps,
                run_id=mark_of(row),
            )
        except ConflictError as error:
            answered = self._restored(row, step)  # the answer to our own commit may have been lost
            if answered is None:
                raise self._moved(step) from error
            version = answered
        reach("rollback.restored")
        return version

    def remove_files(self, row: RollbackRow, step: TableStep) -> int:
        """Take the files of the step's versions out; the version of the commit. Raises `ConflictError` if head moved."""
        done = self._restored(row, step)
        if done is not None:
            return done
        mark = mark_of(row)
        record = removal_record(step, mark=mark, user=row.actor or mark)
        try:
            version = self.engine.remove_files(
                step.location, requires=step.from_version, versions=step.versions, record=record
            )
        except ConflictError as error:
            answered = self._restored(row, step)
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
            since = tuple(self.reader.commits(step.location, after=step.from_version))
            done = next((commit.version for commit in since if commit.run_id == mark_of(row)), None)
            if done is not None:
                return done
            self._require_only_appends(row, step, since)
            try:
                version = self.engine.add_again(
                    step.location,
                    requires=since[-1].version,
                    version=step.to_version,
                    record=again_record(
                        step, self._original(step), mark=mark_of(row), user=row.actor or mark_of(row)
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
        """Raise `ConflictError` if somebody wrote to the table since the plan."""
        if self.reader.probe(step.location, seen=step.from_version).moved:
            raise self._moved(step)

    def keep_properties(self, row: RollbackRow, step: TableStep) -> int | None:
        """Set again those of our properties that the restore rewound; None if there were none."""
        done = self._find(step, mark_of(row))
        if done is not None:
            return done.version
        seen = self._observe(step)
        lost = [(key, value) for key, value in step.properties if seen.properties.get(key) != value]
        if not lost:
            return None
        version = self.engine.set_properties(
            step.location, requires=seen.version, properties=lost, run_id=mark_of(row)
        )
        reach("rollback.properties")
        return version

    def take_back(self, row: RollbackRow, marks: Iterable[str], step: TableStep) -> int | None:
        """Make the version before the rollback head again; None if the restore never happened.

        `marks` are those of the commits that the rollback made on this table. Raises `ConflictError` if somebody wrote
        after them, `PreconditionError` if the old version cannot be restored any more.
        """
        undo, last = mark_of(row, undo=True), self._restored(row, step)
        if last is None:
            if row.new_version is not None:
                raise PreconditionError(
                    f"The log of {step.name} no longer shows what the rollback did to it; it stays as it is.",
                    hint="Somebody cleaned the log or made the table anew: look at `lakewarden tables history`.",
                )
            return None
        commits = self.reader.commits(step.location, after=last)
        since = since_restore(last, commits, frozenset(marks), undo)
        if since.foreign is not None:
            if len(since.undone) == 1:  # by Spark, over somebody's commit, and killed before it was put back
                version = since.undone[0]
                self.engine.restore(step.location, requires=version, to=version - 1, apps=(), run_id=undo)
            raise _written_since(step, since.foreign)
        version = since.undone[0] if since.undone else self._take_back(step, undo, since.head)
        self._begin_epoch(step, restored=version, to=step.from_version, mark=undo)
        return version

    def _take_back(self, step: TableStep, undo: str, head: int) -> int:
        self._check_old_files(step, head)
        version = self.engine.restore(
            step.location, requires=head, to=step.from_version, apps=step.apps, run_id=undo
        )
        reach("rollback.taken_back")
        return version

    def _begin_epoch(self, step: TableStep, *, restored: int, to: int, mark: str) -> None:
        """Take back the numbers of streams' batches where the restore could not; again after a crash in between."""
        if step.apps:
            self.engine.begin_epoch(step.location, restored=restored, to=to, apps=step.apps, run_id=mark)

    def _original(self, step: TableStep) -> Commit:
        version = step.to_version
        found = next(self.reader.commits(step.location, after=version - 1, upto=version), None)
        if found is None:
            raise PreconditionError(
                f"Version {version} of {step.name} is no longer in the log; its rows cannot be added again.",
                hint=_WITHOUT,
            )
        return found

    def _require_only_appends(self, row: RollbackRow, step: TableStep, since: Sequence[Commit]) -> None:
        ours = [
            commit for commit in since if (commit.run_id or "").startswith(f"rollback-{row.rollback_id}-")
        ]
        if not ours:
            raise PreconditionError(
                f"The log of {step.name} no longer shows its restore; nothing is added to it.", hint=_WITHOUT
            )
        for commit in since:
            made = version_of(commit)
            idle = made.idle and made.effect is Effect.APPEND  # a batch without rows
            if not (made.blind or idle or made.effect is Effect.ALIAS or commit in ours):
                raise ConflictError(
                    f"Somebody changed {step.name} (version {commit.version}, {commit.operation}) before version "
                    f"{step.to_version} was added again. {_WITHOUT}"
                )

    def _check_old_files(self, step: TableStep, head: int) -> None:
        store = open_store(step.location, self.storage(step.location))
        try:
            gone = missing_files(self.reader, store, step.location, head=head, target=step.from_version)
        except UnreadableError as error:
            raise PreconditionError(
                f"Version {step.from_version} of {step.name} has expired: it cannot be undone to any more.",
                hint="Versions are kept until the stated time; restore a backup.",
            ) from error
        if gone:
            raise PreconditionError(
                f"Version {step.from_version} of {step.name} cannot be undone to: {gone[0]} is gone.",
                hint="Somebody's vacuum deleted it; put it back from a backup.",
            )

    def _restored(self, row: RollbackRow, step: TableStep) -> int | None:
        """The version of the step's restore; None if it was not made.

        One that is not the version after the planned one was made by Spark over somebody's commit. Killed before it put
        that commit back, it is put back here.
        """
        mark = mark_of(row)
        commits = self.reader.commits(step.location, after=step.from_version)
        found = [commit.version for commit in commits if commit.run_id == mark]
        if not found:
            return None
        if found[0] == step.from_version + 1:
            return found[0]
        if len(found) == 1:
            self.engine.restore(step.location, requires=found[0], to=found[0] - 1, apps=(), run_id=mark)
        return None

    def _find(self, step: TableStep, mark: str) -> Commit | None:
        commits = self.reader.commits(step.location, after=step.from_version)
        return next((commit for commit in commits if commit.run_id == mark), None)

    def _observe(self, step: TableStep) -> Observation:
        seen = self.reader.observe(step.location)
        if isinstance(seen, LogProblem):
            raise UnreadableError(seen.message, hint=f"lakewarden tables validate {step.name}")
        return seen

    def _moved(self, step: TableStep) -> ConflictError:
        first = next(self.reader.commits(step.location, after=step.from_version), None)
        what = "" if first is None else f" (version {first.version}, {first.operation})"
        return ConflictError(
            f"Somebody wrote to {step.name} after version {step.from_version}{what}; it was not touched.",
            hint="`lakewarden rollback resume` takes that commit into the plan, `rollback undo` takes all back.",
        )


def _written_since(step: TableStep, foreign: Commit) -> ConflictError:
    hint = "Undo that write first, by a RESTORE to the version before it, or leave the table rolled back."
    other = marked_by(foreign.run_id)
    if other is not None:
        hint = f"It was rollback {other}: `lakewarden rollback undo {other}` first."
    return ConflictError(
        f"{step.name} was written to after its rollback (version {foreign.version}, {foreign.operation}); "
        "it stays as it is.",
        hint=hint,
    )
