"""Governed writes as values: the request, its reads, and what was seen of its execution. Pure.

A governed write pins each table it reads to one version, says so in the `userMetadata` of its own commit
(catalog/model/lineage_record.py), and afterwards compares that with what Spark's executed plans really read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.model.lineage_record import LineageRecord
from lakewarden.jobs.session.conflicts.retries import RETRIES
from lakewarden.jobs.sql.compile.reading import Draft
from lakewarden.jobs.sql.compile.values import Compiled
from lakewarden.jobs.upsert.upsert_options import UpsertOptions

__all__ = [
    "UPSERT",
    "USER_METADATA",
    "Append",
    "Directory",
    "Judge",
    "Merge",
    "Observed",
    "Overwrite",
    "Read",
    "Request",
    "Sql",
    "UncompiledChange",
    "Upsert",
    "UpsertStream",
    "Upserted",
    "Write",
    "Writer",
    "Written",
]

UPSERT = ("WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *")
"""What a merge does unless it is told otherwise."""
USER_METADATA = "userMetadata"
"""The option of a write whose value is kept in the record."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Append:
    """Add the rows of a Spark DataFrame to a table, columns matched by name."""

    frame: Any
    table: str
    options: Mapping[str, str] = field(default_factory=dict)
    """As Spark's writer takes them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Overwrite:
    """Replace all rows of a table, or some."""

    frame: Any
    table: str
    where: str | None = None
    """The rows that this SQL selects."""
    partitions: bool = False
    """The partitions that the frame has."""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Merge:
    """MERGE a frame, called `source`, into a table, called `target`."""

    frame: Any
    table: str
    on: str
    """SQL."""
    clauses: tuple[str, ...] = UPSERT
    """WHEN ..."""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sql:
    """One statement, as the user wrote it."""

    text: str
    notes: tuple[str, ...] = ()
    """What others would read in it."""
    write: RowsWrite | None = None
    """How the rows that it changes are to be written; None for what its session, its table or namespace asks for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UncompiledChange:
    """An UPDATE or DELETE of one table that is compiled when the session says which columns its tables have."""

    draft: Draft
    agreeing: bool = False
    """As in the policy for several matches (jobs/sql/compile/values.py)."""
    write: RowsWrite | None = None
    """As of `Sql`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """One thing that a plan reads."""

    location: str
    """Canonical for Delta and files, a name or empty for anything else."""
    format: str
    """`delta`, a file format, or the kind of source (`jdbc`, `hive`, `rdd`, ...)."""
    version: int | None = None
    """Only Delta has one."""
    from_version: int | None = None
    """Set where only changes are read: those of the versions after it, up to the version."""
    format_id: str | None = None

    @property
    def key(self) -> tuple[str, str, int | None, int | None, str | None]:
        """What makes two reads the same. Two tables may lie in one folder."""
        return (self.format, self.location, self.version, self.from_version, self.format_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class Upsert:
    """Bring a frame into a table by keys."""

    frame: Any
    table: str
    options: UpsertOptions
    operation: str | None = None
    """With the number it names the upsert, so that it is done but once."""
    number: int = 0
    """Under one name what has a larger number comes later."""
    partitioned: tuple[str, ...] = ()
    """For a table that is made."""
    buckets: int | None = None
    """Likewise; by the keys."""
    retries: int = RETRIES
    """So often it is tried again after a lost race, unless the session says otherwise."""
    reads: tuple[Read, ...] | None = None
    """The origin of the frame's rows, None where its plan tells."""
    query: str | None = None
    """The streaming query whose batch this is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UpsertStream:
    """An upsert of each batch of a streaming frame."""

    each: Upsert
    checkpoint: str
    trigger: Mapping[str, Any] = field(default_factory=dict)
    """As Spark's own writer takes it."""
    output_mode: str = "append"
    """Likewise."""


Request = Append | UncompiledChange | Overwrite | Merge | Sql


@dataclass(frozen=True, kw_only=True, slots=True)
class Observed:
    """The reads of a write's executed plans, compared with its commit."""

    seen: bool
    """False where Spark did not tell."""
    unrecorded: tuple[Read, ...] = ()
    """Read without being in the record: its edges are as certain as a plan is."""
    unused: tuple[Read, ...] = ()
    """In the record and not needed (an optimised-away branch): harmless."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """A governed write that has ended."""

    run_id: str
    """Carried by no commit where a statement changes nothing (a DELETE without a match): it makes none."""
    record: LineageRecord
    location: str | None
    """The table's, canonical; None where it could not be asked for."""
    observed: Observed
    operation: str | None = None
    """The id that its session gave it."""
    done_before: bool = False
    """Nothing was done, because that had been done already."""
    notes: tuple[str, ...] = ()
    """Where the choice of a dialect or a policy mattered."""
    after: int = -1
    """The commit has a later version than this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Upserted:
    """An upsert that has ended."""

    written: Written | None
    """None, and all counts 0, where it was done before."""
    rows_written: int = 0
    """New rows, and those that replaced others."""
    rows_inserted: int | None = 0
    """None, here and below, where nobody knows: the target was not read."""
    rows_updated: int | None = 0
    rows_deleted: int | None = 0
    files_before: int = 0
    """So many the target had."""
    files_read: int = 0
    """So many of these were looked into."""
    files_added: int = 0
    files_removed: int = 0
    created: bool = False
    statement: str = ""
    """The MERGE that was run; empty where there was none."""
    pruning: str = ""
    """The condition that left out the other files."""
    left_because: str = ""
    """Why the format's own MERGE did it, as the end of a sentence about the table; empty where it was done by one join
    or bucket by bucket, and of other formats."""

    @property
    def done_before(self) -> bool:
        """Whether nothing was done, because the same operation had been done already."""
        return self.written is None


class Directory(Protocol):
    """What an installation knows of locations. Answers from memory where it can."""

    def table_ids(self, locations: Sequence[str]) -> Mapping[str, str]:
        """The managed tables at these canonical locations; without those where there is none or nobody answers."""

    def reads_since(self, location: str, since: datetime) -> int | None:
        """How many commits to other tables are on record since then as made from the managed table at this canonical
        location; None where there is none or nobody answers."""

    def rows_since(self, location: str, since: datetime) -> int | None:
        """The rows in the files of the managed table at this canonical location, deleted ones among them, as a sweep
        counted them since then; None where there is none, or nobody answers or has counted."""

    def require_writable(self, location: str) -> None:
        """Raise `NotAllowedError` if no user's session may write there: system tables."""

    def require_unmanaged(self, location: str, called: str, format_id: str | None = None) -> None:
        """Raise `NotAllowedError` if what is `called` so would change a managed table there, or around it, or the one
        with this UUID, unrecorded."""

    def require_removable(
        self,
        called: str,
        *,
        location: str | None = None,
        format_id: str | None = None,
        database: str | None = None,
    ) -> None:
        """Raise `NotAllowedError` if the statement (`called`) drops or moves a managed table, by place, UUID or
        database, that has to stay where it is."""

    def require_no_hold(self, called: str, location: str, format_id: str | None = None) -> None:
        """Raise `NotAllowedError` if what is `called` so lets earlier versions of a managed table there, or with this
        UUID, be deleted, and the table is under a legal hold."""


class Judge(Protocol):
    """What a session's user may do, by the plans of statements (jobs/session/judgement/reading_rules.py). Asked in each
    try: first how a statement is said, before Spark looks for its tables; then, right before it runs, what it does."""

    def require_said(self, plan: Any) -> None:
        """Raise `NotAllowedError` unless the parsed statement may be analysed and, if it is no write, run."""

    def require_read(self, plan: Any, analysed: Any) -> None:
        """Raise `NotAllowedError` unless an analysed statement that is no governed write may be run."""

    def require_written(self, plan: Any, target: str | None, query: Any, format_: str) -> None:
        """Raise `NotAllowedError` unless a write, as parsed, may change the table of a format at `target` (canonical;
        None for one that is made) by an analysed query (None for none)."""

    def require_run(self, analysed: Any) -> None:
        """Raise `NotAllowedError` unless an analysed write may be run, whatever it changes."""


class Writer(Protocol):
    """A user's Spark session that runs statements and governed writes (daemon/attach.py). Thread-safe."""

    def sql(self, text: str, write: RowsWrite | None = None) -> Any:
        """Run one statement, whoever's it is; its result as a DataFrame. `write`: how rows that it changes are
        written."""

    def table(self, name: str, version: int | None) -> Any:
        """A DataFrame of one version of each Delta table behind `name`: a table, a view, or a path."""

    def compiled(self, draft: Draft, write: RowsWrite | None = None) -> Compiled:
        """The plain statements that a change would be run as, by the session's policy for several matches."""

    def told_of(self, text: str, write: RowsWrite | None = None) -> tuple[str, ...]:
        """What is to be said of how a statement would be done that Spark runs as it is."""

    def upsert(self, request: Upsert) -> Upserted:
        """Run an upsert. Raises `LakewardenError`, or Spark's own errors."""

    def upsert_stream(self, request: UpsertStream) -> Any:
        """Start a streaming query that upserts each batch once."""

    def located(self, spelling: str) -> str | None:
        """The canonical location of the Delta table that a VACUUM of this name would vacuum, or None."""

    def change_several(self, draft: Draft) -> tuple[Written, ...]:
        """Run a statement that changes several tables: all of them, in the order of `draft.each`, or none."""

    def run(self, request: Request) -> tuple[Any, Written | None]:
        """Run it; its result as a DataFrame, and what was written, None if it is SQL that writes no Delta table."""


class Write:
    """`lw.write(df)`: one DataFrame on its way into a Delta table. Each call pins, records and commits by itself."""

    def __init__(self, writer: Writer, frame: Any, options: Mapping[str, str]) -> None:
        self._writer, self._frame, self._options = writer, frame, options

    def append(self, table: str) -> Written:
        """Add the rows to `table` (a name or a path), columns matched by name."""
        return self._run(Append(frame=self._frame, table=table, options=self._options))

    def overwrite(self, table: str, *, where: str | None = None, partitions: bool = False) -> Written:
        """Replace the whole table; or the rows that `where` selects; or the partitions that the frame has rows for."""
        if where is not None and partitions:
            raise UsageError(
                "An overwrite takes `where` or `partitions`, not both.",
                hint="`where` may name partition columns.",
            )
        return self._run(
            Overwrite(
                frame=self._frame, table=table, where=where, partitions=partitions, options=self._options
            )
        )

    def merge(self, table: str, *, on: str, clauses: Sequence[str] = UPSERT) -> Written:
        """MERGE into `table`: `on` and `clauses` (WHEN ... THEN ...) are SQL over `target` and `source`."""
        return self._run(
            Merge(frame=self._frame, table=table, on=on, clauses=tuple(clauses), options=self._options)
        )

    def _run(self, request: Request) -> Written:
        _, written = self._writer.run(request)
        assert written is not None  # as only SQL has none
        return written
