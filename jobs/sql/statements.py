"""Governed statements as values: a closed union that the CLI, `attach(spark).sql` and later the gateway execute."""

from dataclasses import dataclass

from lakewarden.catalog.model.rows import DELTA, MarkVerdict, TableFormat
from lakewarden.catalog.policy.effective import Value
from lakewarden.jobs.sql.compile.reading import Draft

__all__ = [
    "AutoVacuum",
    "ChangeRows",
    "ConvertTable",
    "DescribeTable",
    "Explain",
    "InSession",
    "MarkTable",
    "Query",
    "RollbackTable",
    "SetPolicy",
    "SetRows",
    "ShowLineage",
    "ShowRollbacks",
    "ShowRuns",
    "ShowTables",
    "Statement",
    "Unmanaged",
    "VacuumDue",
    "VacuumTable",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvertTable:
    """CONVERT TO DELTA|ICEBERG t [PARTITIONED BY ...] [NO STATISTICS] [VACUUM RETAIN n DAYS|HOURS] [OWNER x]."""

    where: str
    format: TableFormat = DELTA
    """The format that the table gets."""
    partitioned_by: tuple[tuple[str, str], ...] = ()
    statistics: bool = True
    retain_seconds: int | None = None
    owner: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SetRows:
    """UPDATE lakewarden.tables SET policy.<key> = ..., owner = ... WHERE <condition>."""

    policy: tuple[tuple[str, Value | None], ...] = ()
    owner: str | None = None
    condition: str
    """SQL text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """A SELECT on system tables alone: answered without a JVM."""

    sql: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unmanaged:
    """Anything else: a Spark session runs it as it is, the CLI refuses it."""

    sql: str
    notes: tuple[str, ...] = ()
    """What others would read in it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackTable:
    """ROLLBACK TABLE t TO VERSION n | TO TIMESTAMP '...' | BAD VERSIONS n, m | MARKED [CASCADE] [REAPPLY] [REMOVE
    FILES [FROM t, u]]. Exactly one of the four is set."""

    where: str
    version: int | None = None
    timestamp: str | None = None
    bad: tuple[int, ...] = ()
    marked: bool = False
    cascade: bool = False
    reapply: bool = False
    remove_files: tuple[str, ...] = ()
    """The tables that only lose the files of bad appends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkTable:
    """MARK TABLE t VERSIONS n, m BAD|CLEAN [BECAUSE '...'], or UNMARK TABLE t VERSIONS n, m."""

    where: str
    versions: tuple[int, ...]
    verdict: MarkVerdict | None
    """None: unmark."""
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ShowTables:
    """SHOW MANAGED TABLES [LIKE '...']."""

    pattern: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DescribeTable:
    """DESCRIBE MANAGED t."""

    where: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ShowRuns:
    """SHOW RUNS [FOR t] [LIMIT n]: newest first, of one table or of all."""

    where: str | None = None
    limit: int = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class ShowLineage:
    """SHOW LINEAGE [OF] t."""

    where: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ShowRollbacks:
    """SHOW ROLLBACKS."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SetPolicy:
    """ALTER TABLE t SET POLICY ('key' = 'value', ...), or UNSET POLICY ('key', ...): then the values are None."""

    where: str
    values: tuple[tuple[str, Value | None], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class VacuumTable:
    """VACUUM t [FULL|LITE] [RETAIN n HOURS|DAYS] [DRY RUN]."""

    where: str
    spelling: str
    """The place or name as Spark reads it."""
    name: str | None = None
    """Its name in the statement, where a session resolved the place."""
    full: bool = False
    """The folder is listed, too."""
    retain_seconds: int | None = None
    """None: as policy says."""
    dry_run: bool = False
    inventory: bool = False
    """VACUUM t USING INVENTORY ..., which only Delta does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AutoVacuum:
    """VACUUM t AUTO RUN [RETAIN n HOURS|DAYS], or VACUUM t AUTO OFF."""

    where: str
    on: bool
    retain_seconds: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VacuumDue:
    """VACUUM AUTO RUN: every table whose vacuum is due."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeRows:
    """UPDATE or DELETE of a user's tables as a warehouse writes it: a Spark session runs what it is compiled to."""

    draft: Draft


@dataclass(frozen=True, kw_only=True, slots=True)
class Explain:
    """EXPLAIN GOVERNED <statement>: the plain statements that would be run."""

    statement: ChangeRows | Unmanaged
    """None of the daemon's."""


InSession = ChangeRows | Explain | Unmanaged | VacuumTable
"""What a Spark session runs, or may have to: a VACUUM is its own where the table is not managed."""
Statement = (
    AutoVacuum
    | ChangeRows
    | ConvertTable
    | DescribeTable
    | Explain
    | MarkTable
    | Query
    | RollbackTable
    | SetPolicy
    | SetRows
    | ShowLineage
    | ShowRollbacks
    | ShowRuns
    | ShowTables
    | Unmanaged
    | VacuumDue
    | VacuumTable
)
