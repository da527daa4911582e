"""A table made of values, and an engine that writes down what it was asked: for executors without storage or Spark."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Concatenate, ParamSpec, TypeVar

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.files_elsewhere import folder_elsewhere
from lakewarden.catalog.formats.heads import has_commit
from lakewarden.catalog.formats.port import (
    Capabilities,
    Commit,
    DataFile,
    Head,
    LogProblem,
    Observation,
    ProbeResult,
    Reference,
    Tombstone,
)
from lakewarden.catalog.model.lineage_record import LineageRecord
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.storage.file_store import FileEntry, canonical
from lakewarden.jobs.runs.port import (
    Engine,
    FileChange,
    JobContext,
    Partition,
    TableStatistics,
    Target,
    VacuumScope,
)
from lakewarden.jobs.runs.row_diff import DiffRequest, RowDiff
from support.builders.commits import changed, counted, observed
from support.fakes.clock import ManualClock

__all__ = ["DAY", "NOW", "AskedEngine", "ValueReader", "commit", "context", "data_file", "seen", "tombstone"]

_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")
NOW = datetime(2026, 11, 21, tzinfo=UTC)
DAY = timedelta(days=1)


def commit(version: int, age_days: float, *, data_change: bool = True) -> Commit:
    at = NOW - timedelta(days=age_days)
    return counted(version=version, committed_at=at, operation="WRITE", data_change=data_change)


def tombstone(path: str, removed_in: int | None, age_days: float, vector: str | None = None) -> Tombstone:
    at = NOW - timedelta(days=age_days)
    return Tombstone(path=path, removed_at=at, removed_in=removed_in, size_bytes=1, deletion_vector=vector)


def data_file(
    path: str,
    size: int,
    partition: Partition = (),
    *,
    vector: bool = False,
    deleted: int = 0,
    rows: int | None = 100,
) -> DataFile:
    return DataFile(
        path=path,
        size_bytes=size,
        modified_at=NOW,
        partition=partition,
        rows=rows,
        deleted_rows=deleted,
        has_deletion_vector=vector,
    )


def seen(location: str, version: int, **changes: object) -> Observation:
    able = Capabilities(restore=True, vacuum=True, compact=True, file_statistics=True)
    plain = observed(
        format=DELTA,
        location=location,
        version=version,
        committed_at=NOW,
        format_id="id",
        capabilities=able,
    )
    return changed(plain, **changes)


@dataclass
class ValueReader:
    """A `TableReader` that answers what it was given, wherever it is asked. `past` are the files of earlier versions,
    `added` those that a version added, `elsewhere` the files of other tables, by location; `broken` ones cannot be
    read. Given what a log says, it passes the port's contract suite."""

    observation: Observation | LogProblem
    history: Sequence[Commit] = ()
    removed: Sequence[Tombstone] = ()
    live: Sequence[DataFile] = ()
    past: dict[int, Sequence[DataFile]] = field(default_factory=dict)
    added: dict[int, Sequence[DataFile]] = field(default_factory=dict)
    elsewhere: dict[str, Sequence[DataFile]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    @property
    def format(self) -> TableFormat:
        return DELTA

    def is_table(self, location: str) -> bool:
        return location not in self.broken and not self._is_missing

    def probe(self, location: str, *, seen: int | None, head: str | None = None) -> ProbeResult:
        if self._is_missing:
            return ProbeResult(exists=False, moved=False)
        latest = self._readable().version
        return ProbeResult(exists=True, moved=seen != latest, latest=latest)

    def has_head(self, location: str, *, version: int, head: str) -> bool | None:
        return has_commit(self, location, version=version, head=head)

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        if location not in self.elsewhere or isinstance(self.observation, LogProblem):
            return self.observation
        folders = (folder_elsewhere(file.path) for file in self.elsewhere[location])
        return replace(self.observation, elsewhere=tuple({one for one in folders if one is not None}))

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        last = self.history[-1].version if upto is None else upto
        yield from (one for one in self.history if after < one.version <= last)

    def newest(self, location: str, *, count: int, after: int = -1) -> tuple[Commit, ...]:
        return tuple(self.commits(location, after=after))[-count:]

    def additions(self, location: str, *, since: int) -> Iterator[tuple[Commit, tuple[DataFile, ...]]]:
        for one in self.commits(location, after=since - 1):
            yield one, (() if one.version == since else tuple(self.added.get(one.version, ())))

    def files(self, location: str, *, version: int | None = None) -> Iterator[DataFile]:
        if location in self.broken:
            raise UnreadableError("Its log is damaged.")
        if location in self.elsewhere:
            yield from self.elsewhere[location]
            return
        self._readable(version)
        yield from self.past.get(-1 if version is None else version, self.live)

    def properties(self, location: str, *, version: int) -> Mapping[str, str]:
        return self._readable(version).properties

    def restored(self, location: str, *, version: int) -> int | None:
        same = [
            one for one in self.past if one < version and self.past[one] == self.past.get(version, self.live)
        ]
        return max(same, default=None)

    def tombstones(self, location: str) -> Iterator[Tombstone]:
        yield from () if location in self.elsewhere else self.removed

    def references(self, location: str) -> tuple[Reference, ...]:
        return ()

    def side_files(self, location: str) -> Iterator[str]:
        return iter(())

    def own_files(self, location: str) -> None:
        return None

    @property
    def _is_missing(self) -> bool:
        return isinstance(self.observation, LogProblem) and self.observation.check == "exists"

    def _readable(self, version: int | None = None) -> Observation:
        if isinstance(self.observation, LogProblem):
            raise UnreadableError(self.observation.message)
        if version is not None and version > self.observation.version:
            raise UnreadableError(f"There is no version {version}.")
        return self.observation


def _done_by(
    answer: Callable[Concatenate["AskedEngine", _Asked], _Answer],
) -> Callable[Concatenate["AskedEngine", _Asked], _Answer]:
    """The test's answer, or that of the engine it named."""

    def asked(self: "AskedEngine", /, *words: _Asked.args, **named: _Asked.kwargs) -> _Answer:
        given = answer(self, *words, **named)
        return given if self.by is None else getattr(self.by, answer.__name__)(*words, **named)

    return asked


@dataclass
class AskedEngine:
    """An `Engine` that remembers what it was asked. `by` does it, where a test names one; else nothing is done, and the
    answers are the test's: `listed` is what its listing of the folder finds, `disagrees` are the candidates that it
    finds referenced, `begun` is the version in which it says that a vacuum begins. By the fake it passes the port's
    contract suite."""

    listed: Sequence[str] = ()
    change: FileChange = field(default_factory=lambda: FileChange(version=None))
    asked: list[str] = field(default_factory=list)
    disagrees: Sequence[str] = ()
    begun: int | None = None
    partitions: Sequence[Partition] | None = None
    by: Engine | None = None

    @property
    def format(self) -> TableFormat:
        return DELTA

    @property
    def broken(self) -> bool:
        return False

    @_done_by
    def convert(
        self,
        *,
        name: str | None,
        location: str,
        partitioned_by: Sequence[tuple[str, str]],
        statistics: bool,
        run_id: str,
        proceed: Callable[[], None] = lambda: None,
    ) -> int:
        self.asked.append("convert")
        return 0

    @_done_by
    def resume_conversion(self, location: str, *, name: str | None) -> None:
        self.asked.append("resume_conversion")

    @_done_by
    def unreferenced(self, location: str) -> Sequence[str]:
        self.asked.append("unreferenced")
        return self.listed

    @_done_by
    def agreed(self, location: str, *, candidates: Sequence[FileEntry]) -> Sequence[FileEntry]:
        self.asked.append("agreed")
        return [entry for entry in candidates if entry.path not in self.disagrees]

    @_done_by
    def begin_vacuum(self, location: str, *, requires: Head, scope: VacuumScope, run_id: str) -> int | None:
        self.asked.append(f"begin {scope.files}")
        return self.begun

    @_done_by
    def end_vacuum(self, location: str, *, after: int, files: int, run_id: str) -> int | None:
        self.asked.append(f"end {files}")
        return after + 2

    @_done_by
    def delete_empty_folders(self, location: str, folders: Sequence[str]) -> int:
        self.asked.append(f"folders {sorted(folders)}")
        return len(folders)

    @_done_by
    def compact(
        self,
        location: str,
        *,
        requires: Head,
        partitions: Sequence[Partition] | None,
        target_bytes: int,
        run_id: str,
        beside_writers: bool = False,
    ) -> FileChange:
        self.asked.append(f"compact {requires}{' beside writers' if beside_writers else ''}")
        self.partitions = partitions
        return self.change

    @_done_by
    def purge_deletions(
        self,
        location: str,
        *,
        requires: Head,
        partitions: Sequence[Partition] | None,
        run_id: str,
        beside_writers: bool = False,
    ) -> FileChange:
        self.asked.append(f"purge {requires}{' beside writers' if beside_writers else ''}")
        self.partitions = partitions
        return FileChange(version=requires.version + 1, files_removed=1, files_added=1)

    def join_deletes(
        self, location: str, *, requires: Head, partitions: Sequence[Partition] | None, run_id: str
    ) -> FileChange:
        self.asked.append(f"join deletes {requires}")
        self.partitions = partitions
        return FileChange(version=requires.version + 1, files_removed=1, files_added=1)

    def join_manifests(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        self.asked.append(f"join manifests {requires}")
        return self.change

    def drop_branches(self, location: str) -> int:
        self.asked.append("drop branches")
        return 1

    def forgotten_metadata(self, location: str, *, before: datetime) -> Sequence[FileEntry]:
        self.asked.append("forgotten metadata")
        return ()

    @_done_by
    def fill_file_statistics(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        self.asked.append(f"fill {requires}")
        return self.change

    def keep_statistics(
        self, location: str, *, requires: Head, columns: Sequence[str], run_id: str
    ) -> FileChange:
        self.asked.append(f"keep statistics {requires} {' '.join(columns)}")
        return self.change

    @_done_by
    def row_diff(self, request: DiffRequest) -> RowDiff:
        self.asked.append("row diff")
        return RowDiff(request=request, rows_head=0, rows_target=0, goes=0, comes=0)

    @_done_by
    def interrupt(self) -> None:
        self.asked.append("interrupt")

    @_done_by
    def set_properties(
        self, location: str, *, requires: Head, properties: Sequence[tuple[str, str]], run_id: str
    ) -> int:
        self.asked.append(f"set {properties}")
        return requires.version + 1

    @_done_by
    def unset_properties(self, location: str, *, requires: Head, names: Sequence[str], run_id: str) -> int:
        self.asked.append(f"unset {names}")
        return requires.version + 1

    @_done_by
    def restore(self, location: str, *, requires: Head, to: int, apps: Sequence[str], run_id: str) -> int:
        self.asked.append("restore")
        return requires.version + 1

    @_done_by
    def remove_files(
        self, location: str, *, requires: Head, versions: Sequence[int], record: LineageRecord
    ) -> int:
        self.asked.append(f"remove files of {versions}")
        return requires.version + 1

    @_done_by
    def add_again(self, location: str, *, requires: Head, version: int, record: LineageRecord) -> int:
        self.asked.append(f"add {version} again")
        return requires.version + 1

    @_done_by
    def fence(
        self, location: str, *, requires: Head, run_id: str, app: str | None = None, number: int = 1
    ) -> int:
        self.asked.append("fence")
        return requires.version + 1

    @_done_by
    def begin_epoch(
        self, location: str, *, restored: int, to: int, apps: Sequence[str], run_id: str
    ) -> int | None:
        self.asked.append("epoch")
        return None

    @_done_by
    def checkpoint(self, location: str, *, requires: Head) -> None:
        self.asked.append(f"checkpoint {requires}")

    @_done_by
    def clean_log(
        self, location: str, *, keep_from: int, proceed: Callable[[], None], still_ours: Callable[[], None]
    ) -> FileChange:
        self.asked.append(f"clean {keep_from}")
        return self.change

    @_done_by
    def statistics(
        self, location: str, *, version: int, columns: Sequence[str] | None, max_rows: int
    ) -> TableStatistics:
        return TableStatistics(version=version, total_bytes=0, rows=0)

    @_done_by
    def close(self) -> None:
        self.asked.append("close")


def context(folder: str, reader: ValueReader, engine: AskedEngine) -> JobContext:
    """A run on the table in a local folder, at `NOW`."""
    return JobContext(
        target=Target(table_id="t1", name="db.t", location=canonical(folder)),
        run_id="run-1",
        reader=reader,
        clock=ManualClock(NOW),
        engine=engine,
        metastore=None,
        still_ours=lambda: None,
    )
