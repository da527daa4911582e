"""What a person wants to know of a plan before agreeing to it: owners, commits with author and time, and reasons of the
taint. Pure."""

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
    """The edge by which taint came in."""

    table_id: str
    name: str
    versions: tuple[int, ...]
    """Of the table that was read."""
    changes: bool
    """The changes of these versions were read, not their content."""
    confidence: Confidence
    """The confidence of the edge."""
    more: int = 0
    """So many versions are left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitDetail:
    """One commit that is lost, unknown or tainted."""

    version: int
    role: CommitReason
    operation: str
    rows: int | None = None
    user: str | None = None
    """As its lineage record or its commitInfo says, as is the engine; None where nobody knows any more."""
    engine: str | None = None
    at: datetime | None = None
    """The time of the commit (UTC)."""
    run_id: str | None = None
    seed: bool = False
    """The commit was itself asked for."""
    reads: tuple[TaintedRead, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TableDetails:
    """One table."""

    table_id: str
    owner: str | None
    commits: tuple[CommitDetail, ...] = ()
    more: int = 0
    """So many commits are left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Details:
    """Of every table of a plan, in its order."""

    tables: tuple[TableDetails, ...] = ()
    clones: tuple[tuple[str, str], ...] = ()
    """Managed shallow clones that the plan leaves as they are, each with its source, a table that goes back: what a
    clone has copied is on no record."""
    beyond: tuple[tuple[str, str], ...] = ()
    """Managed tables that the plan does not change, each with something that it has read and no plan follows: one of
    the clones, or the location of an unmanaged table. Each may have read what goes back."""

    def of(self, table_id: str) -> TableDetails | None:
        """What is known of one table."""
        return next((one for one in self.tables if one.table_id == table_id), None)

    def may_change(self, table_id: str, caller: Caller) -> bool:
        """Whether somebody may roll this table back: its owner, or an admin."""
        known = self.of(table_id)
        return caller.admin or (known is not None and known.owner is not None and known.owner == caller.name)
