"""What a person wants to know of a plan before agreeing to it:
whose tables, who wrote what when, why it is tainted. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lakewarden.catalog.model.rows import Confidence
from lakewarden.catalog.policy.access import Caller

__all__ = ["CommitDetail", "CommitReason", "Details", "TableDetails", "TaintedRead"]


class CommitReason(StrEnum):
    """Why a commit is in the plan."""

    LOST = "lost"
    UNKNOWN = "unknown"
    TAINTED = "tainted"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaintedRead:
    """The edge by which taint came in: versions of a table, or (`changes`) what they changed. `confidence` is how it is
    known that they were read; `more` counts versions left out."""

    table_id: str
    name: str
    versions: tuple[int, ...]
    changes: bool
    confidence: Confidence
    more: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitDetail:
    """One commit that is lost, unknown or tainted. `user` and `engine` as its lineage record or its commitInfo say,
    `at` when it was committed (UTC); None where nobody knows any more. `seed`: it was asked for by itself."""

    version: int
    role: CommitReason
    operation: str
    rows: int | None = None
    user: str | None = None
    engine: str | None = None
    at: datetime | None = None
    run_id: str | None = None
    seed: bool = False
    reads: tuple[TaintedRead, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TableDetails:
    """One table. `more` counts commits left out."""

    table_id: str
    owner: str | None
    commits: tuple[CommitDetail, ...] = ()
    more: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Details:
    """Of every table of a plan, in its order. `clones` are managed shallow clones that the plan leaves as they are,
    each with the table that goes back and whose files it reads: what a clone has copied is on no record.
    `beyond` are managed tables that the plan does not change, each with something that it has read and no plan follows:
    one of `clones`, or a table that is not managed (its location), which may have read what goes back."""

    tables: tuple[TableDetails, ...] = ()
    clones: tuple[tuple[str, str], ...] = ()
    beyond: tuple[tuple[str, str], ...] = ()

    def of(self, table_id: str) -> TableDetails | None:
        """What is known of one table."""
        return next((one for one in self.tables if one.table_id == table_id), None)

    def may_change(self, table_id: str, caller: Caller) -> bool:
        """Whether somebody may roll this table back: its owner, or an admin."""
        known = self.of(table_id)
        return caller.admin or (known is not None and known.owner is not None and known.owner == caller.name)
