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
    """One reason, as a sentence."""

    why: Blocked
    message: str
    consents: tuple[Consent, ...] = ()
    """The consents that would lift the blocker (for `owner`: naming the table)."""
    versions: tuple[int, ...] = ()
    """What the consents are asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """A commit that the table's head would no longer have, though nobody has called it bad. Rows and files it added,
    None where not recorded."""

    version: int
    operation: str
    touch: Touch
    """Tells a change of columns."""
    rows: int | None = None
    files: int | None = None
    run_id: str | None = None
    user: str | None = None
    can_reapply: bool = False
    reapplied: bool = False
    """A blind append whose files are all there, which is added again afterwards."""
    unknown: bool = False
    """The version counts as clean because somebody agreed to that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamAdvice:
    """A streaming query that reads or writes the table, and what its owner has to do, in sentences."""

    query_id: str
    """The application id of its transactions."""
    reads: bool
    sink: str
    """The name of the table it writes."""
    what_to_do: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TablePlan:
    """What happens to one table, and why."""

    table_id: str
    name: str
    location: str | None
    from_version: int
    """Its head."""
    to_version: int | None
    """The newest version without taint that the head goes back to, None if there is none; equal to the head if
    nothing is to be done."""
    step: Step
    wave: int = 0
    """0 is done first."""
    trigger: OnRollback | None = None
    """What the dependency says, None for a table that was asked for."""
    waits: bool = False
    """The dependency says `plan`, so the owner decides later."""
    tainted: tuple[int, ...] = ()
    """Seeds and commits that read what depends on one."""
    collateral: tuple[Lost, ...] = ()
    """Clean commits standing on tainted ones."""
    unknown: tuple[int, ...] = ()
    """Commits that may depend on a seed."""
    blocked_by: tuple[Blocker, ...] = ()
    upstream: tuple[str, ...] = ()
    """The tables of the plan that it read taint from."""
    appends: tuple[int, ...] = ()
    """Lost blind appends, whose files a second plan wants to know about."""
    undoable: tuple[int, ...] = ()
    """The versions whose files could be removed instead, without collateral."""
    undone_after: int | None = None
    """The one that the first of these was made from (-1: from nothing; None: a plan from before it was told)."""
    transactions: tuple[tuple[str, int], ...] = ()
    """(application id, version) of lost commits."""
    streams: tuple[StreamAdvice, ...] = ()
    """What lost transactions mean (jobs/rollback/plan/stream_advice.py)."""
    consumers: tuple[str, ...] = ()
    properties: tuple[PropertyChange, ...] = ()
    stays_tainted: bool = False
    """Nothing is done to it although its head is tainted."""

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
    """The whole plan, tables in the order of execution: by wave, then by name."""

    request: RollbackRequest
    tables: tuple[TablePlan, ...]
    hash: str
    """Covers all that is decided."""
    spared: tuple[Spared, ...] = ()
    """The marks that made a difference."""

    @property
    def applicable(self) -> bool:
        """Whether the plan could be applied as it is."""
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
