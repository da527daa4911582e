"""The SystemStore port: read, compare-and-set and append on the seven system tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from lakewarden.catalog.model.rows import (
    AuditRow,
    HealthRow,
    LineageRow,
    RollbackRow,
    RunRow,
    SchemaRow,
    SystemRow,
    TableRow,
)
from lakewarden.catalog.storage.file_store import StorageOptions

__all__ = [
    "AUDIT",
    "HEALTH",
    "LINEAGE",
    "ROLLBACKS",
    "RUNS",
    "SCHEMAS",
    "SYSTEM_TABLES",
    "TABLES",
    "At",
    "Committed",
    "Fence",
    "Key",
    "R",
    "Rows",
    "SystemStore",
    "SystemTable",
    "SystemTableName",
]

R = TypeVar("R", bound=SystemRow)
R_co = TypeVar("R_co", bound=SystemRow, covariant=True)
Key = tuple[str | int | None, ...]
"""The values of a table's key columns, in the order of `SystemTable.key`."""


class SystemTableName(StrEnum):
    """The seven system tables, in the order of their rows in `lakewarden.tables`."""

    TABLES = "tables"
    HEALTH = "health"
    LINEAGE = "lineage"
    SCHEMAS = "schemas"
    RUNS = "runs"
    ROLLBACKS = "rollbacks"
    AUDIT = "audit"


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemTable(Generic[R]):
    """One system table: its name, row type, key columns, and the column its stable hash bucket is made of."""

    name: SystemTableName
    row_type: type[R]
    key: tuple[str, ...]
    bucket_by: str


TABLES = SystemTable(name=SystemTableName.TABLES, row_type=TableRow, key=("table_id",), bucket_by="table_id")
HEALTH = SystemTable(name=SystemTableName.HEALTH, row_type=HealthRow, key=("table_id",), bucket_by="table_id")
LINEAGE = SystemTable(
    name=SystemTableName.LINEAGE,
    row_type=LineageRow,
    key=("output_id", "output_version", "input_id", "input_version", "from_version", "output_format_id"),
    bucket_by="output_id",
)
SCHEMAS = SystemTable(
    name=SystemTableName.SCHEMAS, row_type=SchemaRow, key=("table_id", "version"), bucket_by="table_id"
)
RUNS = SystemTable(name=SystemTableName.RUNS, row_type=RunRow, key=("run_id",), bucket_by="run_id")
ROLLBACKS = SystemTable(
    name=SystemTableName.ROLLBACKS, row_type=RollbackRow, key=("rollback_id", "step"), bucket_by="rollback_id"
)
AUDIT = SystemTable(name=SystemTableName.AUDIT, row_type=AuditRow, key=("audit_id",), bucket_by="audit_id")
SYSTEM_TABLES: tuple[SystemTable[Any], ...] = (TABLES, HEALTH, LINEAGE, SCHEMAS, RUNS, ROLLBACKS, AUDIT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fence:
    """A leader's right to write: its token rides in every commit as Transaction("lakewarden.leader", token)."""

    token: int
    incarnation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Committed(Generic[R]):
    """What an edit did: the system table's version afterwards and the rows written (none: nothing was committed)."""

    version: int
    rows: tuple[R, ...]


At = tuple[int, int]
"""The generation of a system table (how often this process has seen one put back from a backup) and its version."""


class Rows(Protocol[R_co]):
    """A system table as of one version. Everything read through it comes from that version."""

    @property
    def version(self) -> int:
        """The system table's Delta version."""

    @property
    def at(self) -> At:
        """What to remember a version by: one that was put back from a backup has a number that another had."""

    def get(self, *key: str | int | None) -> R_co | None:
        """The row with this key (values in the order of `SystemTable.key`)."""

    def stored(self, keys: Iterable[Key]) -> Mapping[Key, R_co]:
        """The rows with these keys, those there are: for many at once."""

    def find(self, **equals: str | int | None) -> tuple[R_co, ...]:
        """Rows whose columns equal all of these, pushed down to the files."""

    def all(self) -> tuple[R_co, ...]:
        """Every row, in key order. For sweeps over a fleet prefer `arrow`."""

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The columns named (all when None) without making row objects."""

    def highest(self, column: str) -> int | None:
        """The largest value of an integer column, from the log's statistics; None for an empty table."""


class SystemStore(Protocol):
    """The only way the control plane touches the system tables. Safe with many processes and no shared lock."""

    def create(self, rows: Iterable[TableRow]) -> None:
        """Create all seven tables if absent; `rows` become the first rows of `lakewarden.tables`. Idempotent."""

    def exists(self) -> bool:
        """Whether this store was initialised."""

    def installation(self) -> str:
        """Which installation this is: the UUID that `lakewarden.tables` got from Delta when it was made. It outlives
        upgrades, backups and moves, and a copy has it, too. Raises `NotFoundError` before `create`."""

    def require_current(self) -> None:
        """Raise `OutdatedError` once a newer lakewarden has begun to upgrade the tables, `PreconditionError` while they
        wait for an upgrade or one is under way: before and after it each version works, in between nobody does."""

    def location(self, table: SystemTable[Any]) -> str:
        """The canonical location of a system table."""

    def storage(self) -> StorageOptions:
        """What opens those locations."""

    def rows(self, table: SystemTable[R], *, version: int | None = None) -> Rows[R]:
        """A view of the table: its head, or an older version (time travel is the audit trail)."""

    def edit(
        self,
        table: SystemTable[R],
        change: Callable[[Rows[R]], Iterable[R]],
        *,
        delete: Callable[[Rows[R]], Iterable[R]] | None = None,
        fence: Fence | None = None,
        because: str,
        run_id: str | None = None,
    ) -> Committed[R]:
        """Compare-and-set: `change` sees one version and returns the rows to insert or replace by key.

        It is called again on a fresh version when somebody else committed first, so it must be pure; it raises
        `PreconditionError` to give up. Rows equal to what is stored are not written, and no rows is no commit.
        Raises `FencedError` if `fence` is older than the newest leader, `ConflictError` after too many retries.
        """

    def append(
        self, table: SystemTable[R], rows: Iterable[R], *, fence: Fence | None = None, because: str
    ) -> int:
        """Add rows of an append-only table (runs, lineage, audit, rollbacks); returns the version.

        A key that is there already is left as it is, so that repeating an append after a crash adds nothing.
        """

    def digest(self, table: SystemTable[Any], version: int) -> str | None:
        """The identity of this version's commit; None where the log has no such entry (any more). Read anew. Raises
        `UnavailableError`."""

    def added(self, table: SystemTable[R], version: int) -> tuple[R, ...]:
        """The rows of an append-only table that one of its commits added, in key order; none where files were only
        rewritten. Raises `NotFoundError` if the log does not reach back to the version before, or not up to it.
        """

    def raise_fence(self, incarnation: str, *, at_least: int) -> Fence:
        """Become leader in the format: token = 1 + max(`at_least`, tokens in all tables), committed to all seven.
        Raises `PreconditionError`, before it commits anything, if one of them waits for an upgrade."""
