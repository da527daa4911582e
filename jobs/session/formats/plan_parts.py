"""What a table format knows of parts of Spark's plans: what a leaf reads, and where a table lies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakewarden.catalog.model.rows import TableFormat
from lakewarden.jobs.session.plans import JavaPlan, Plans
from lakewarden.jobs.session.writes import Read

__all__ = ["Affected", "PinnedLeaf", "Pinning", "PlanParts", "QueriedTable", "WitnessedTarget"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pinning:
    """What the leaves of one query are pinned by."""

    target: str | None
    """The canonical location that the query will be written to."""
    snapshots: dict[str, Any]
    """The state of each table that the statement reads, by what tells it from others; what is new is added."""
    own: frozenset[str] = frozenset()
    """What tells the target from others, where its state is among those: what the write is made on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PinnedLeaf:
    """A leaf of a plan, settled."""

    leaf: JavaPlan | None = None
    """The leaf at one version, to be put in its place; None: it stays as it is."""
    read: Read | None = None
    """What is read by it; None for the target itself, which the write sees to."""
    is_fixed: bool = False
    """It had a version before it was pinned."""
    is_own: bool = False
    """It reads the target as of before the write."""


@dataclass(frozen=True, slots=True)
class QueriedTable:
    """A table that a query reads: `db.t`, its canonical location and its format (`delta`), None where the catalog does
    not tell it."""

    name: str
    location: str | None
    format: str | None
    format_id: str | None = None
    """Its UUID, of a format whose tables may say that they lie elsewhere."""


@dataclass(frozen=True, slots=True)
class Affected:
    """What a command is about: a table or a folder, by its canonical location; of a table in its own format also its
    UUID."""

    location: str
    format_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WitnessedTarget:
    """What a command that plain Spark has run writes to."""

    location: str
    runs_its_plan: bool
    """Whether Spark runs the very plan that it tells of, and not another one of the same query."""


class PlanParts(Protocol):
    """Those of one format. Holds no state: threads and applications share it. `name` is the kind of the node that is
    given."""

    @property
    def format(self) -> TableFormat:
        """Which one."""

    @property
    def hidden_plans(self) -> Sequence[tuple[str, str]]:
        """Plans of the format's that hold another one which Spark counts neither among their children nor among what is
        inside them: their kinds, and what the other is called there."""

    def reads(self, plans: Plans, leaf: Any, name: str) -> Sequence[Read] | None:
        """What a leaf of a plan reads, with versions where these are fixed; None for one that is not this format's."""

    def pinned(self, plans: Plans, leaf: Any, name: str, by: Pinning) -> PinnedLeaf | None:
        """A leaf of an analysed query at one version; None where it is not this format's, or has a version already."""

    def unmoved_read(self, plans: Plans, leaf: Any, name: str) -> Read | None:
        """What a leaf of a plan that has run has read, where the plan does not tell it and nothing else can have been
        read; None for any other."""

    def place(self, plans: Plans, leaf: Any, name: str) -> str | None:
        """Where the table lies that a leaf of an analysed query reads, at whichever version; None for one that is not
        this format's."""

    def queried(self, leaf: Any, name: str) -> QueriedTable | None:
        """The table that a leaf of an analysed query reads, where not Spark's catalog tells of it, but the format."""

    def about(self, part: Any, name: str) -> Affected | None:
        """The table that a part of an analysed command is; None for one that is not this format's."""

    def named_by(self, plans: Plans, session: Any, command: JavaPlan) -> Any | None:
        """The table, as its catalog has it, of a command that holds no more than its name; None for any other."""

    def procedures_of(self, catalog: Any) -> bool:
        """Whether the procedures of a catalog (CALL) are this format's."""

    def found(self, plans: Plans, session: Any, catalog: Any, text: str) -> Any | None:
        """The table of such a catalog that an argument of a procedure names; None for an argument that names none."""

    def witnessed(self, table: Any, command: str) -> WitnessedTarget | None:
        """The target of a command of this kind which plain Spark has run, by the command's table of Spark's second API;
        None where it is not this format's, or is not told of so."""

    def committed_by(self, write: Any) -> int | None:
        """The version that a write of Spark's plans has made, by its own report; None where it has none."""
