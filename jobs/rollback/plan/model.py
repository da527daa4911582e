"""The rollback plan as a value: what dry run, CLI, journal and executor all read. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.catalog.lineage.versions import Touch
from lakewarden.catalog.model.rows import OnRollback
from lakewarden.jobs.rollback.plan.consents import Consent
from lakewarden.jobs.rollback.plan.facts import PropertyChange
from lakewarden.jobs.rollback.plan.request import RollbackRequest

__all__ = ["Blocked", "Blocker", "Lost", "RollbackPlan", "Spared", "Step", "StreamAdvice", "TablePlan"]


class Step(StrEnum):
    """What is done to one table. `none`: its head is clean, or it is left as it is."""

    NONE = "none"
    RESTORE = "restore"
    REMOVE_FILES = "remove_files"
    DROP = "drop"
    QUARANTINE = "quarantine"


class Blocked(StrEnum):
    """Why a table keeps a plan from being applied."""

    COLLATERAL = "collateral"
    UNKNOWN = "unknown"
    UNREACHABLE = "unreachable"
    UNREADABLE = "unreadable"
    BORN_TAINTED = "born_tainted"
    APPEND_ONLY = "append_only"
    OWNER = "owner"
    HOLD = "hold"
    PAUSED = "paused"
    NOT_UNDOABLE = "not_undoable"
    SYSTEM = "system"


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocker:
    """One reason, as a sentence; `consents` are those that would lift it (for `owner`: naming the table),
    `versions` what they are asked for."""

    why: Blocked
    message: str
    consents: tuple[Consent, ...] = ()
    versions: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """A commit that the table's head would no longer have, though nobody has called it bad. Rows and files it
    added, None where not recorded. `unknown`: it counts as clean because somebody agreed to that;
    `touch` tells a change of columns.

    `reapplied`: a blind append whose files are all there, which is added again afterwards.
    """

    version: int
    operation: str
    touch: Touch
    rows: int | None = None
    files: int | None = None
    run_id: str | None = None
    user: str | None = None
    can_reapply: bool = False
    reapplied: bool = False
    unknown: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamAdvice:
    """A streaming query that reads or writes the table, and what its owner has to do, in sentences.

    `query_id` is the application id of its transactions; `sink` the name of the table it writes.
    """

    query_id: str
    reads: bool
    sink: str
    what_to_do: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TablePlan:
    """What happens to one table, and why.

    `from_version` is its head, `to_version` the newest version without taint that the head goes back to, None
    if there is none; equal if nothing is to be done. `tainted` are seeds and commits that read what depends
    on one; `collateral` clean commits standing on these; `unknown` commits that may depend on a seed. `wave`
    0 is done first. `trigger` is what the dependency says, None for a table that was asked for; `waits`: it
    says `plan`, so the owner decides later. `upstream` are the tables of the plan that it read taint from.
    `appends` are lost blind appends, whose files a second plan wants to know about; `undoable` the versions
    whose files could be removed instead, without collateral, and `undone_after` the one that the first of them
    was made from (-1: from nothing; None: a plan from before it was told). `transactions` are (application id,
    version) of lost commits; `streams` say what that means (jobs/rollback/plan/stream_advice.py). `stays_tainted`:
    nothing is done to it although its head is tainted.
    """

    table_id: str
    name: str
    location: str | None
    from_version: int
    to_version: int | None
    step: Step
    wave: int = 0
    trigger: OnRollback | None = None
    waits: bool = False
    tainted: tuple[int, ...] = ()
    collateral: tuple[Lost, ...] = ()
    unknown: tuple[int, ...] = ()
    blocked_by: tuple[Blocker, ...] = ()
    upstream: tuple[str, ...] = ()
    appends: tuple[int, ...] = ()
    undoable: tuple[int, ...] = ()
    undone_after: int | None = None
    transactions: tuple[tuple[str, int], ...] = ()
    streams: tuple[StreamAdvice, ...] = ()
    consumers: tuple[str, ...] = ()
    properties: tuple[PropertyChange, ...] = ()
    stays_tainted: bool = False

    @property
    def acts(self) -> bool:
        """Whether applying the plan changes this table."""
        return self.step is not Step.NONE and not self.waits

    @property
    def stays_bad(self) -> bool:
        """Whether its head holds, or may hold, something bad when the plan is done: it waits for its owner, or nothing
        can be done to it."""
        holds = self.step is not Step.NONE or self.stays_tainted or bool(self.blocked_by)
        return holds and not self.acts

    @property
    def can_reapply(self) -> bool:
        """Whether everything clean that would be lost can be added again afterwards."""
        return bool(self.collateral) and all(one.can_reapply for one in self.collateral)


@dataclass(frozen=True, kw_only=True, slots=True)
class Spared:
    """A version that an owner marked clean and that would have been tainted without the mark."""

    table_id: str
    name: str
    version: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackPlan:
    """The whole plan, tables in the order of execution: by wave, then by name. `hash` covers all that is decided.

    `spared` are the marks that made a difference."""

    request: RollbackRequest
    tables: tuple[TablePlan, ...]
    hash: str
    spared: tuple[Spared, ...] = ()

    @property
    def applicable(self) -> bool:
        """Whether it could be applied as it is."""
        return not any(self.blockers())

    def left(self) -> Iterator[TablePlan]:
        """The tables that stay bad, or may be, once it is applied."""
        return (table for table in self.tables if table.stays_bad)

    def blockers(self) -> Iterator[tuple[TablePlan, Blocker]]:
        """What keeps it from being applied; tables that wait for their owner hold up nobody."""
        return ((table, one) for table in self.tables if not table.waits for one in table.blocked_by)

    def waves(self) -> tuple[tuple[TablePlan, ...], ...]:
        """The tables to change, roots first; those of one wave do not depend on one another."""
        acting = [table for table in self.tables if table.acts]
        numbers = sorted({table.wave for table in acting})
        return tuple(tuple(one for one in acting if one.wave == number) for number in numbers)
