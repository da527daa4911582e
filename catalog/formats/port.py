"""The TableReader port: what every table format must answer from its log, and the values it answers with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from lakewarden.catalog.formats.folder_files import OwnFiles
from lakewarden.catalog.formats.size_histogram import SizeHistogram
from lakewarden.catalog.formats.version_names import Reference, ReferenceKind
from lakewarden.catalog.model.bucket_layout import BucketLayout
from lakewarden.catalog.model.lineage_record import LineageRecord, RecordVerdict
from lakewarden.catalog.model.rows import Column, TableFormat
from lakewarden.catalog.model.table_deletes import Backlog, DeleteFiles, DeleteKind, OwnStatistics

__all__ = [
    "Backlog",
    "Capabilities",
    "Commit",
    "CommitKind",
    "DataFile",
    "DeleteFiles",
    "DeleteKind",
    "Head",
    "LogProblem",
    "Maintenance",
    "Observation",
    "OwnFiles",
    "Partition",
    "ProbeResult",
    "Reference",
    "ReferenceKind",
    "SizeHistogram",
    "TableReader",
    "Tombstone",
]

Partition = tuple[tuple[str, str | None], ...]
"""The values that a file's rows have in the columns by which the table is partitioned; () where it is not."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a table was seen at, for whoever decides on it and acts later."""

    version: int
    """Tells which of two was made first, no more."""
    token: str | None = None
    """`Observation.head`, which a table made anew at the same place never has; None where nobody noted it."""

    @property
    def format_id(self) -> str | None:
        """The table's UUID, where the token tells it."""
        return None if self.token is None else self.token.partition("@")[0]

    def __str__(self) -> str:
        return str(self.version)


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """The actions possible on tables of one format with one set of protocol features."""

    restore: bool
    vacuum: bool
    compact: bool
    file_statistics: bool
    purge: bool = True
    """Whether its log tells all its files, and nobody else needs any."""
    spark_alone: bool = False
    """Whether Spark alone commits to it for us."""
    unsupported: tuple[str, ...] = ()
    """Features that keep us from acting: a table with one of them is observed only."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeResult:
    """Whether the table is there, and whether its head has moved since it was last seen."""

    exists: bool
    moved: bool
    latest: int | None = None
    """The version that head shows, or one on the way to it; exact if `moved` is False."""
    head: str | None = None
    """Head's state (`Observation.head`); None if telling it takes more than a look."""
    newest: int | None = None
    """`Observation.newest`, where head may be below it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFile:
    """One file of a version. Sizes in bytes."""

    path: str
    """As the log has it, decoded."""
    size_bytes: int
    modified_at: datetime
    partition: Partition = ()
    rows: int | None = None
    """Before deletions."""
    deleted_rows: int = 0
    has_deletion_vector: bool = False
    deletion_vector: str | None = None
    """The file that holds its deletion vector; None if there is none, or if it is inline."""
    may_lack_rows: bool = False
    """Whether files of deletes that are no vectors may concern rows of it; how many, only a scan tells."""
    has_statistics: bool = False
    deletes: DeleteKind | None = None
    """What the file deletes of other files; None where it holds rows of the table."""
    is_parquet: bool = True
    spelling: str | None = None
    """What tells it from other entries of the log, None for `path` itself: of two spellings of one path, a writer that
    removes one leaves the other."""

    @property
    def entry(self) -> str:
        """How the log names it: what tells it from others there."""
        return self.spelling or self.path


@dataclass(frozen=True, kw_only=True, slots=True)
class Tombstone:
    """One file that a commit removed and that no later commit added back."""

    path: str
    removed_at: datetime
    removed_in: int | None
    """The version that removed it; None if only a checkpoint remembers it."""
    size_bytes: int | None
    deletion_vector: str | None = None
    """The file of the deletion vector that went with it, if the vector is in a file."""
    is_metadata: bool = False
    """Whether it holds no rows: only versions that are left behind need it, to tell which files they have."""


class CommitKind(StrEnum):
    """What a commit did, in words that all formats share.

    CREATE: a table without rows, anew. REPLACE: one with rows. Up to OVERWRITE, rows came or went; PARTIAL_OVERWRITE
    replaced some by others. MAINTENANCE left both rows and definition as they were, SCHEMA, PROPERTIES and METADATA
    the rows. UNKNOWN may have done anything.
    """

    CREATE = "create"
    REPLACE = "replace"
    APPEND = "append"
    MERGE = "merge"
    UPDATE = "update"
    DELETE = "delete"
    PARTIAL_OVERWRITE = "partial overwrite"
    OVERWRITE = "overwrite"
    RESTORE = "restore"
    MAINTENANCE = "maintenance"
    SCHEMA = "schema"
    PROPERTIES = "properties"
    METADATA = "metadata"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """One version as its commit tells it."""

    version: int
    parent: int | None
    """The version whose content it was made from; None for the first. Numbers only tell which of two versions was made
    first."""
    committed_at: datetime
    """The youngest of the commit's own clocks (in-commit timestamp, commitInfo timestamp, file time), so that its age
    is never overestimated."""
    stamped_at: datetime | None = None
    """The writer's clock alone, which also stamps removed files."""
    kind: CommitKind
    """What the commit did."""
    operation: str
    """What the writer called it (WRITE, MERGE, OPTIMIZE, VACUUM END...), for people."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    data_change: bool = False
    added_files: int = 0
    removed_files: int = 0
    idle: bool | None = None
    """Whether no file at all came or went, those that hold deletes included; None: the two numbers above tell all."""
    blind_append: bool | None = None
    engine: str | None = None
    user: str | None = None
    """The author, if the engine names one."""
    user_metadata: str | None = None
    """What the writer put into commitInfo."""
    may_look: bool = False
    """Whether it may have looked for rows of the table, as a MERGE does, though its kind does not say so."""
    run_id: str | None = None
    """lakewarden's run, if it is one of ours."""
    installation: str | None = None
    """The installation of lakewarden that made it, if one did."""
    lineage: LineageRecord | None = None
    """What a governed write recorded."""
    lineage_verdict: RecordVerdict = RecordVerdict.ABSENT
    """Whether the lineage record is credible."""
    format_id: str | None = None
    """The table's UUID, if the commit set it: the first commit and CREATE OR REPLACE do, and so do changes of schema
    and properties."""
    restored: int | None = None
    """What a RESTORE went back to: as it says itself, or as the files tell (`TableReader.restored`)."""
    changed_properties: tuple[str, ...] | None = None
    """The properties that a commit of that kind set or unset; None if it does not say."""
    transactions: tuple[tuple[str, int], ...] = ()
    redefines: bool = False
    """Whether the commit changed metadata or protocol: properties and features may be others since."""
    changes_columns: bool = False
    """Whether columns changed with it or, beside commits, since the version that it was made from. Only commits of
    formats say it in which a change of columns is no commit of its own."""
    ends_vacuum: bool = False
    """Whether this commit ends a vacuum that was carried out in full."""
    branches: tuple[str, ...] = ()
    """The branches that have it, main first; none in formats without branches, and where all have gone back past it."""
    tags: tuple[str, ...] = ()
    """The tags on it."""
    beside: bool = False
    """Whether it was made on a branch, or to be published later, and the log shows that head never had it."""
    copied: int | None = None
    """The version whose changes it made once more."""
    batch: tuple[str, int] | None = None
    """The batch that a streaming query wrote with it: the query's id, and the batch's number."""
    own_id: str | None = None
    """What the format calls the version, where that is not its number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogProblem:
    """Why a log cannot be used: the name of the documented check it fails, and one sentence of our own."""

    check: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Maintenance:
    """The last commit that an installation of lakewarden made to look after the table."""

    installation: str
    version: int
    at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """Everything the log says about the version that head shows. Sizes in bytes, times UTC."""

    format: TableFormat
    location: str
    version: int
    head: str
    """Head's state as one token: it changes whenever head does, even back to an older version, and a table made anew
    at the same place never has it. It begins with `format_id` and an `@`; the rest is the format's own."""
    committed_at: datetime
    format_id: str
    name: str | None = None
    description: str | None = None
    schema: tuple[Column, ...] = ()
    partition_columns: tuple[str, ...] = ()
    names_columns: bool = False
    """Whether a column's id is the format's own, which a renamed column keeps."""
    append_only: bool = False
    """Whether the table's users want no rows taken out of it."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """As written, those for retention among them."""
    protocol: tuple[int, int] = (1, 2)
    features: tuple[str, ...] = ()
    capabilities: Capabilities
    buckets: BucketLayout | None = None
    """How its rows are spread over buckets, if they are and statements make use of that."""
    files: int = 0
    bytes: int = 0
    sizes: SizeHistogram = field(default_factory=SizeHistogram)
    """Those of the files that compaction may join with others of their partition; of a bucketed table, those that are
    in no bucket, and of each bucket those that may be joined with its smallest."""
    rows: int | None = None
    """What a scan returns, without deleted rows; None if a file of head has no row count, or only a scan can tell how
    many are deleted."""
    deleted_rows: int = 0
    deletion_vectors: int = 0
    deletes: tuple[DeleteFiles, ...] = ()
    """By kind; none of a kind that there is nothing of."""
    stored_rows: int | None = None
    """Rows of its data files, deleted ones among them; None if a file of head has no row count."""
    backlog: Backlog = field(default_factory=Backlog)
    own_statistics: OwnStatistics | None = None
    """None: tables of the format keep none of their columns."""
    partitions: int = 0
    files_without_statistics: int = 0
    tombstones: int = 0
    """Removed files that no completed vacuum has dealt with yet. A vacuum leaves the memory of them in the log."""
    tombstone_bytes: int = 0
    """Their size."""
    oldest_tombstone_at: datetime | None = None
    """When the first of them was removed."""
    checkpoint_version: int | None = None
    commits_since_checkpoint: int = 0
    first_version: int = 0
    left: tuple[int, ...] = ()
    """Versions that head showed, or that what it showed was made from, and is not made from any more though no commit
    took them back: somebody set it to an older one. In order, as far as the log tells."""
    newest: int | None = None
    """The highest number that the log has given to a version, where head may be below it: others are on branches, or
    head has left them. None: head's."""
    last_vacuum_at: datetime | None = None
    last_compaction_at: datetime | None = None
    last_write_at: datetime | None = None
    """The last commit by anybody that changed data."""
    warnings: tuple[LogProblem, ...] = ()
    """What is readable but odd: the name of a documented check, and a sentence."""
    elsewhere: tuple[str, ...] = field(default=(), compare=False)
    """Folders that hold every file, live or removed, that is named by an absolute path or a way out of the table's
    folder (a shallow clone's source)."""
    maintained: tuple[Maintenance, ...] = field(default=(), compare=False)
    """Installations of lakewarden that say in the log that they look after the table, the latest first, as far as the
    log was read."""

    @property
    def newest_version(self) -> int:
        """The highest number that a version of the log can have."""
        return self.version if self.newest is None else self.newest

    @property
    def at(self) -> Head:
        """The head that this is of."""
        return Head(self.version, self.head)


class TableReader(Protocol):
    """Reads table state from one format's log. Thread-safe; holds no open files between calls.

    Every method raises `UnavailableError` when the storage does not answer (nothing is concluded from that).
    """

    @property
    def format(self) -> TableFormat:
        """The format this reader understands."""

    def is_table(self, location: str) -> bool:
        """Whether there is a table of this format at `location` at all (even a broken one)."""

    def probe(self, location: str, *, seen: int | None, head: str | None = None) -> ProbeResult:
        """Does the table exist, and does its head show another version than `seen`? One or two small reads. `head` is
        the state of head then, where that is known: of a table made anew, the same version is another one."""

    def has_head(self, location: str, *, version: int, head: str) -> bool | None:
        """Whether `version` is still the one that head showed in state `head`, wherever head is now: not one of the
        same number in a table made anew. None if nothing tells of that version any more."""

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        """The head version's state; incremental from `since` where that is possible and right.

        A log that cannot be used is a `LogProblem`, not an exception.
        """

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        """Commits with `after` < version <= `upto`, in order, whether head goes back to them or not; those whose
        log entry is gone are left out."""

    def newest(self, location: str, *, count: int, after: int = -1) -> tuple[Commit, ...]:
        """The last commits that the log has, of those with `after` < version, in order, by one listing; their numbers
        may have gaps."""

    def additions(self, location: str, *, since: int) -> Iterator[tuple[Commit, tuple[DataFile, ...]]]:
        """By one listing: the commit of version `since`, if the log still has it, with no files; then those
        after it, in order, each with the files that it added (again, or anew)."""

    def files(self, location: str, *, version: int | None = None) -> Iterator[DataFile]:
        """The live files of a version (head when None), files of deletes among them where a format has such. Raises
        `UnreadableError` if it cannot be rebuilt."""

    def properties(self, location: str, *, version: int) -> Mapping[str, str]:
        """The table properties of a version. Raises `UnreadableError` if its log cannot tell them any more."""

    def restored(self, location: str, *, version: int) -> int | None:
        """The target of the RESTORE that made `version`, where its commit does not name it: the newest version before
        it with the same files; None where the log has none. It takes reading the log, and all files of a version."""

    def tombstones(self, location: str) -> Iterator[Tombstone]:
        """Files that head no longer has but the log still remembers."""

    def references(self, location: str) -> tuple[Reference, ...]:
        """Branches and tags, main first; none where the format has neither. Raises `UnreadableError`."""

    def side_files(self, location: str) -> Iterator[str]:
        """Paths of what branches and tags need (head's own files may be among them); none where there are neither."""

    def own_files(self, location: str) -> OwnFiles | None:
        """Every file of the table, whichever version needs it; None: head's, the tombstones, and whatever lies in the
        log's folder. Raises `RefusedError` where another table's log is there as well, `UnreadableError`."""
