"""Can a table be taken back to the version that a plan chose, and what goes with it? Asked of its log and its files."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.heads import commit_at
from lakewarden.catalog.formats.port import Commit, CommitKind, LogProblem, Observation, TableReader
from lakewarden.catalog.formats.registry import retention_of, spec_of
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.rollback.plan.facts import PropertyChange, TableFacts, Unreachable, VersionObstacle
from lakewarden.jobs.rollback.plan.model import TablePlan
from lakewarden.jobs.rollback.step_check import kept_properties, unreachable, why_not

__all__ = ["TargetCheck"]


_NONE: Final = (frozenset[int](), frozenset[int]())


class _FileState(NamedTuple):
    """A file, and what says whether all of its rows are there."""

    entry: str
    vector: str | None
    may_lack_rows: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetCheck:
    """The version that a plan takes a table back to."""

    table: TablePlan
    target: int
    reader: TableReader
    """The reader of the table's format."""
    storage: Callable[[str], StorageOptions]
    no_spark: Callable[[str], str | None] = lambda location: None
    """Why Spark may not work on a table at a location."""

    def completed(self, facts: TableFacts, seen: Observation | LogProblem | None) -> TableFacts:
        """The facts, completed: whether the target can be restored, lost appends that are still whole, and other
        changes."""
        reach = self._reach(seen)
        if reach is not None:
            facts = replace(facts, unreachable={self.target: reach, **facts.unreachable})
        able = seen.capabilities if isinstance(seen, Observation) else None
        intact, thinned = self._appends() if able is not None and able.restore else _NONE
        commits = tuple(self.reader.commits(self._location, after=self.target, upto=self.table.from_version))
        redefined = [commit for commit in commits if commit.format_id is not None]
        first = min((one.version for one in commits if _changes_columns(one)), default=None)
        fitting = frozenset(version for version in intact if first is None or version < first)
        properties: tuple[PropertyChange, ...] = ()
        may_change = bool(redefined) or not spec_of(self.reader.format).commits_tell_properties
        if may_change and reach is None and isinstance(seen, Observation):
            try:
                there = self.reader.properties(self._location, version=self.target)
                properties, reach = _changes(seen, there), self._taken_away(seen, there)
            except UnreadableError as error:
                reach = Unreachable(why=VersionObstacle.EXPIRED, message=str(error))
            if reach is not None:
                facts = replace(facts, unreachable={self.target: reach, **facts.unreachable})
        return replace(facts, intact=intact, thinned=thinned, fitting=fitting, properties=properties)

    @property
    def _location(self) -> str:
        return self.table.location or ""

    def _reach(self, seen: Observation | LogProblem | None) -> Unreachable | None:
        if isinstance(seen, Observation) and not seen.capabilities.restore:
            message = why_not(self.table.name, seen)
            return Unreachable(why=VersionObstacle.UNSUPPORTED, message=message)
        name, head = self.table.name, self.table.from_version
        return unreachable(
            self.reader, self.storage, self._location, name=name, head=head, target=self.target
        )

    def _taken_away(self, seen: Observation, target: Mapping[str, str]) -> Unreachable | None:
        """Why a property cannot be taken away again that only the target has: that takes Spark."""
        gone = [key for key, value in kept_properties(seen, target) if value is None]
        because = self.no_spark(self._location) if gone else None
        if because is None or not spec_of(self.reader.format).commits_tell_properties:
            return None
        message = (
            f"Only Spark takes {gone[0]} away again, which version {self.target} of {self.table.name} has "
            f"and its head has not, and it stays out: {because}."
        )
        return Unreachable(why=VersionObstacle.UNSUPPORTED, message=message)

    def _appends(self) -> tuple[frozenset[int], frozenset[int]]:
        """Of the lost blind appends: those whose files are all still in head, as they were; those whose files are, and
        perhaps not all rows of them."""
        if not self.table.appends:
            return _NONE
        head, intact, thinned = self._files(self.table.from_version), set[int](), set[int]()
        for version in self.table.appends:
            added = self._added(version)
            if added is not None and all(head[file] == times for file, times in added.items()):
                intact.add(version)
            elif added is not None and {file.entry for file in added} <= {file.entry for file in head}:
                thinned.add(version)
        return frozenset(intact), frozenset(thinned)

    def _added(self, version: int) -> "Counter[_FileState] | None":
        """The files that a version added; None where the log no longer tells, or it added none."""
        try:
            made = commit_at(self.reader, self._location, version)
            return None if made is None else (self._files(version) - self._files(made.parent)) or None
        except UnreadableError:
            return None

    def _files(self, version: int | None) -> "Counter[_FileState]":
        """How often a version has each: some writers add a file that is there already."""
        if version is None:
            return Counter()
        files = self.reader.files(self._location, version=version)
        return Counter(
            _FileState(one.entry, one.deletion_vector, one.may_lack_rows or one.has_deletion_vector)
            for one in files
        )


def _changes_columns(commit: Commit) -> bool:
    """Whether files from before a commit may not fit what the table is with it, or the other way round."""
    redefines = commit.format_id is not None and commit.kind is not CommitKind.PROPERTIES
    return redefines or commit.changes_columns


def _changes(seen: Observation, target: Mapping[str, str]) -> tuple[PropertyChange, ...]:
    """The properties that a restore would change; ours are set again after it."""
    head, keeps = seen.properties, retention_of(seen.format).keeps
    return tuple(
        PropertyChange(key=key, head=head.get(key), target=target.get(key))
        for key in sorted(head.keys() | target.keys())
        if head.get(key) != target.get(key) and not keeps(key)
    )
