"""What an executor gets and gives: the Engine port (Spark behind it), the context of one run, its report."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.formats.files_elsewhere import Look
from lakewarden.catalog.formats.port import Head, Partition, TableReader
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.model.lineage_record import LineageRecord
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import DELTA, TableFormat, TableRow
from lakewarden.catalog.policy.original_properties import OriginalProperty, Owed
from lakewarden.catalog.registry.other_installations import Others
from lakewarden.catalog.storage.file_store import FileEntry, StorageOptions
from lakewarden.jobs.runs.row_diff import DiffRequest, RowDiff
from lakewarden.jobs.runs.run_report import Report

__all__ = [
    "ColumnStatistics",
    "Engine",
    "FileChange",
    "Guard",
    "JobContext",
    "Ledger",
    "Partition",
    "Report",
    "Rollbacks",
    "TableStatistics",
    "Target",
    "Tools",
    "VacuumScope",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The table a run works on."""

    table_id: str
    name: str
    location: str
    format: TableFormat = DELTA


@dataclass(frozen=True, kw_only=True, slots=True)
class VacuumScope:
    """What a vacuum takes away at most."""

    oldest: int
    """The oldest version that is protected."""
    left_before: datetime
    """Versions that anybody was at since then stay."""
    files: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """What an engine call did."""

    version: int | None
    """The version it committed, if any."""
    files_removed: int = 0
    bytes_removed: int = 0
    files_added: int = 0
    problems: tuple[str, ...] = ()
    """Sentences about what it found damaged and therefore left alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnStatistics:
    """One column as Spark's optimizer wants it. Lengths in bytes; None where it does not apply."""

    name: str
    type: str
    distinct_count: int
    null_count: int
    minimum: str | None = None
    """In Spark's external string form, as `maximum`."""
    maximum: str | None = None
    average_length: int | None = None
    maximum_length: int | None = None
    histogram: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableStatistics:
    """Table statistics of one version."""

    version: int
    total_bytes: int
    rows: int
    columns: tuple[ColumnStatistics, ...] = ()
    sampled_share: float = 1.0
    """Share of the rows that was looked at."""


class Engine(Protocol):
    """Work on users' data, done by Spark. One engine lives in one worker process and keeps its session warm.

    Every method that commits carries `run_id` into the commit, commits on exactly the head that it `requires`, and
    raises `ConflictError` (nothing changed) when somebody else committed first, or the version of that number is
    another commit by now (the table was made anew, its log put back), `ExecutionError` when Spark fails.
    """

    @property
    def format(self) -> TableFormat:
        """The table format this engine works on."""

    @property
    def broken(self) -> bool:
        """Whether the engine is unusable for good: its worker ends then."""

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
        """Parquet to this format in place; repeats of an interrupted conversion finish it. Returns the version.
        `proceed` raises where it may not be done any more: asked right before the table is another."""

    def resume_conversion(self, location: str, *, name: str | None) -> None:
        """Before a conversion is judged: finish an interrupted one whose table others may see already, take back
        what it has made that nobody sees. `name` as for `convert`."""

    def unreferenced(self, location: str) -> Sequence[str]:
        """List the whole folder: paths, relative to it, of the files that neither head nor a removal younger than the
        table's own retention names. Changes nothing. Whoever deletes one looks himself at what was committed since."""

    def agreed(self, location: str, *, candidates: Sequence[FileEntry]) -> Sequence[FileEntry]:
        """The `candidates` (paths relative to the table, as on disk) that the engine's head does not reference either:
        a second opinion. Changes nothing."""

    def begin_vacuum(self, location: str, *, requires: Head, scope: VacuumScope, run_id: str) -> int | None:
        """Say in the log what is about to be deleted at most, and forget the versions that nothing needs where a format
        has no log to go on with without them. Returns the version after which the vacuum has begun: of an empty
        commit, which may come after somebody else's, or the one required; None where vacuums are not logged."""

    def end_vacuum(self, location: str, *, after: int, files: int, run_id: str) -> int | None:
        """Say in the log that the vacuum begun after version `after` has deleted `files` files. Returns the version of
        that commit, None if it makes none."""

    def delete_empty_folders(self, location: str, folders: Sequence[str]) -> int:
        """Delete those of `folders` (relative, inner ones first;
        "" is the table's own) that are empty, and say how many."""

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
        """Rewrite small files of these partitions (None: the whole table) into files of about `target_bytes`.

        `beside_writers`: on what it `requires` or a later version, as long as commits in between left the rewritten
        files alone."""

    def purge_deletions(
        self,
        location: str,
        *,
        requires: Head,
        partitions: Sequence[Partition] | None,
        run_id: str,
        beside_writers: bool = False,
    ) -> FileChange:
        """Rewrite files of which rows are deleted by vectors, or by delete files, without these rows. `beside_writers`
        as in `compact`."""

    def join_deletes(
        self, location: str, *, requires: Head, partitions: Sequence[Partition] | None, run_id: str
    ) -> FileChange:
        """Rewrite delete files by position of these partitions (None: the whole table) into few, without deletes that
        concern no file any more. Files of both kinds are counted together."""

    def set_properties(
        self, location: str, *, requires: Head, properties: Sequence[tuple[str, str]], run_id: str
    ) -> int:
        """Set table properties in one commit. Returns its version."""

    def unset_properties(self, location: str, *, requires: Head, names: Sequence[str], run_id: str) -> int:
        """Take table properties away, in one commit; names that are not set do not matter. Returns its version."""

    def restore(self, location: str, *, requires: Head, to: int, apps: Sequence[str], run_id: str) -> int:
        """Make the contents, schema and properties of version `to` the new head, in one commit. Returns its version.

        Where the table's features allow it, the transaction numbers of `apps` go back, too; else `begin_epoch` sees to
        them. Raises `ExecutionError` if files of `to` are gone."""

    def fence(
        self, location: str, *, requires: Head, run_id: str, app: str | None = None, number: int = 1
    ) -> int:
        """One commit that changes nothing, on exactly that head:
        whoever decided on it comes too late. So does, on any version, whoever would write as application
        `app`: its transactions up to `number` count as made.
        Returns its version."""

    def begin_epoch(
        self, location: str, *, restored: int, to: int, apps: Sequence[str], run_id: str
    ) -> int | None:
        """After a restore to version `to` in version `restored`: take back the transaction numbers of `apps`, where the
        restore itself could not, in one commit of its own on whatever version is head. Returns its version.

        May be repeated. None if nothing is left to do; an application that has written since is left alone."""

    def remove_files(
        self, location: str, *, requires: Head, versions: Sequence[int], record: LineageRecord
    ) -> int:
        """Take just the files that the commits of `versions` added out of the table, in one commit that
        carries `record` and, as run id, the record's. Returns its version.

        Raises `PreconditionError` if that head no longer has one of them, or a commit is gone from the log."""

    def add_again(self, location: str, *, requires: Head, version: int, record: LineageRecord) -> int:
        """Append what the commit of `version` had appended, in one commit that carries `record` and, as run id, the
        record's: the very files, or copies of their rows, where a file must not come back. The table must not have
        them. Returns its version.

        Raises `PreconditionError` if the table's columns are no longer those of `version`, or a file is gone."""

    def checkpoint(self, location: str, *, requires: Head) -> None:
        """Write a checkpoint of the version that is required; no commit. Never cleans the log."""

    def clean_log(
        self, location: str, *, keep_from: int, proceed: Callable[[], None], still_ours: Callable[[], None]
    ) -> FileChange:
        """Delete the log entries that no version from `keep_from` on needs; no commit. What replaces them is compared
        with them first; what is damaged stays and is told in `problems`. Killed half-way it leaves a readable table,
        and the next call goes on. `proceed` is called before each bounded batch, `still_ours` before each deletion:
        what they raise ends the call. `version`: the first that can still be rebuilt, None if nothing was deleted."""

    def join_manifests(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        """Rewrite what lists head's files into as few files as their size allows, which are counted."""

    def drop_branches(self, location: str) -> int:
        """Drop the branches that runs of ours have left. Returns how many."""

    def forgotten_metadata(self, location: str, *, before: datetime) -> Sequence[FileEntry]:
        """Files of metadata that head does not remember, and that were no head at a moment, in the order to go."""

    def statistics(
        self, location: str, *, version: int, columns: Sequence[str] | None, max_rows: int
    ) -> TableStatistics:
        """Table and column statistics of a version; sampled above `max_rows`."""

    def fill_file_statistics(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        """Give per-file statistics to files that have none, in one commit that changes no data. `files_added` of the
        answer counts them; no commit where there are none that can be given exact ones."""

    def keep_statistics(
        self, location: str, *, requires: Head, columns: Sequence[str], run_id: str
    ) -> FileChange:
        """Count the distinct values of columns, and keep that in the table's own metadata. Rows are as they were."""

    def row_diff(self, request: DiffRequest) -> RowDiff:
        """Compare the rows of two versions. Changes nothing; collects at most the samples that are asked for.

        Raises `PreconditionError` for a key column that not both versions have, `ExecutionError` if a version is gone,
        `RefusedError` where rows of this format cannot be compared."""

    def interrupt(self) -> None:
        """Make a call under way in another thread fail soon, as by `ExecutionError`; nothing if there is none."""

    def close(self) -> None:
        """End the session."""


class Tools(Protocol):
    """What tables are read and worked on with, by their format (None: of a table that has none yet, Delta's)."""

    @property
    def runtimes(self) -> Sequence[str]:
        """The formats whose tables this worker can work on, as runs name them (`RunRequest.runtime`)."""

    @property
    def readers(self) -> Sequence[TableReader]:
        """The readers of all formats."""

    @property
    def entries(self) -> TakenEntries | None:
        """The entries of catalogs that these readers ask; None: they ask none."""

    def reader(self, format_: TableFormat | None) -> TableReader:
        """The reader of a format. Raises `RefusedError` where there is none."""

    def engine(self, format_: TableFormat | None) -> Engine:
        """The engine of a format. Raises `RefusedError` where there is none."""

    def interrupt(self) -> None:
        """Make calls that are under way fail soon, whichever engine they are at."""


class Guard(Protocol):
    """What allows a run, asked anew each time (jobs/runs/guard.py)."""

    def confirm(self) -> None:
        """Return if the run is still this worker's, as the queue itself says. Raises `ConflictError`."""

    def ask(self, table_id: str, name: str, location: str) -> None:
        """Return if the run may go on with this table at this place. Raises `RevokedError` or `ConflictError`."""

    def readers_of(self, location: str) -> tuple[TableRow, ...]:
        """The other managed tables that name files in this folder (shallow clones), or that nobody has looked at."""

    def moved(self, look: Look) -> tuple[TableRow, ...]:
        """The tables that have moved since the last sweep saw them, as `look` finds them now."""


class Ledger(Protocol):
    """What runs keep in tables' rows: properties from before lakewarden (catalog/policy/original_properties.py), and
    that nothing of them is left (catalog/model/pending_purge.py). Raises `UnavailableError`."""

    def kept(self, table_id: str) -> tuple[OriginalProperty, ...]:
        """What is remembered of a table."""

    def owed(self, table_id: str) -> Owed | None:
        """What is to be given back to a table that leaves; None if it does not, or has been given all."""

    def remember(
        self,
        table_id: str,
        wanted: Iterable[tuple[str, str]],
        present: Mapping[str, str],
        told: Iterable[OriginalProperty] = (),
    ) -> None:
        """Keep what is `present` before `wanted` are set; `told` is what the log says of earlier times."""

    def awaits_purge(self, table_id: str) -> bool:
        """Whether a table is to be purged still, by whichever run."""

    def is_deleted(self, table_id: str) -> bool:
        """Whether an earlier attempt at purging a table has deleted the last of its files."""

    def note_deleted(self, table_id: str) -> None:
        """Keep that no file of a table is left. Raises `ConflictError` if it does not wait to be purged any more."""


class Rollbacks(Protocol):
    """What runs need to know of rollbacks, and the way to execute one."""

    def needed_version(self, table_id: str) -> int | None:
        """The oldest version of a table that a rollback, or its undo, still needs; None if none does. Read anew each
        time. Raises `UnavailableError` when the journal cannot be read: then nothing may be deleted."""

    def locked_by(self, table_id: str) -> str | None:
        """The rollback that holds a table: nothing else of ours may work on it; None if none does."""

    def go_on(self, rollback_id: str, ctx: "JobContext") -> Rollback:
        """Do what is left to do of a rollback. Returns it in the state it came to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobContext:
    """Everything one run needs."""

    target: Target
    run_id: str
    reader: TableReader
    clock: Clock
    engine: Engine
    metastore: Metastore | None
    """None if none is configured."""
    still_ours: Callable[[], None]
    """Raises `ConflictError` once the run was cancelled or its lease was lost, by this process' own clock."""
    storage: StorageOptions = field(default_factory=StorageOptions)
    """Options to open the table's folder with."""
    rollbacks: Rollbacks | None = None
    """The journal of rollbacks and what acting on it takes."""
    guard: Guard | None = None
    """What allows the run (jobs/runs/guard.py)."""
    ledger: Ledger | None = None
    """What stood in its properties before us; None if there is nothing to respect."""
    installation: Callable[[], str | None] = lambda: None
    """Tells which one this is, if anybody knows."""
    others: Others | None = None
    """Looks for other installations."""
    entries: TakenEntries | None = None
    """The entries of catalogs that the reader asks for heads; None: it asks none."""
    readers: Sequence[TableReader] = ()
    """Those of all formats, where the worker knows others than the table's."""

    def require_allowed(self) -> None:
        """Ask everything that allows the run, as it is now: right before anything is deleted, rewound or committed.
        Raises `RevokedError` with the reason, `ConflictError` once the run is not this worker's any more."""
        self.still_ours()
        if self.guard is not None:
            self.guard.ask(self.target.table_id, self.target.name, self.target.location)
