"""What an action is, beside its value: all that planner, gates, guard, runner and recovery have to know of it. Pure.

Each action is one module here, with its value, its rule, its cost and a `Spec`; `registry.py` lists them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from typing import Generic, TypeVar

from lakewarden.catalog.formats.port import Commit, Head, Observation
from lakewarden.catalog.model.rows import Action, HealthRow, PolicySettings, RunRow, TableRow, TableState
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.state.port import Run
from lakewarden.jobs.actions.answers import Answer, AnyAction
from lakewarden.jobs.actions.costs import Estimate
from lakewarden.jobs.actions.world import Past, TableView, World

__all__ = [
    "Deletes",
    "Foreseeable",
    "GiveUp",
    "Order",
    "Ordered",
    "Recovered",
    "Retry",
    "Rule",
    "Settlement",
    "Spec",
    "Switch",
    "Verdict",
    "last_commit",
    "retry",
    "state_of",
]


A = TypeVar("A", bound=AnyAction)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered:
    """The run was carried out."""

    version: int
    """The version of its commit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry:
    """The run left nothing behind, or all of its steps can be repeated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GiveUp:
    """The run was interrupted half-way, on a version that is no longer head; what is left will be planned anew."""

    because: str


Verdict = Recovered | Retry | GiveUp


class Deletes(StrEnum):
    """What a legal hold has to forbid."""

    NEVER = "never"
    SOMETIMES = "sometimes"
    """In its thorough form."""
    ALWAYS = "always"


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """The policy key by which an owner switches an action off."""

    key: str
    value: Callable[[PolicySettings], bool | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What a person wants done."""

    action: Action
    full: bool = False
    """Of a vacuum."""
    retain_seconds: int | None = None
    """Of a vacuum; None: as policy says."""
    consented: bool = False
    """Of a vacuum."""
    dry_run: bool = False
    """Of a vacuum or a compaction."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ordered:
    """An order with the table it is for: its row under its scopes, what its log says now, and the locations of managed
    tables that lie in its folder."""

    order: Order
    governed: Governed
    seen: Observation
    inside: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreseeable:
    """What a dry run may look at: what the table's log says, and how its metastore entry differs: (what, sentence)."""

    seen: Callable[[], Observation]
    drifts: Callable[[], Iterable[tuple[str, str]]]


class Settlement(Enum):
    """What a finished run changes in its table's row, or in its entry."""

    CONVERTED = "it is a table with a log"
    NOT_CONVERTED = "it could not be converted"
    GIVEN_BACK = "a dropped table has its properties back"
    PURGED = "its files are gone"
    NOT_PURGED = "where its deletion was stopped, its entry in a catalog has its name back"


Rule = Callable[[TableView, World, datetime], Answer]


def state_of(row: TableRow) -> str:
    """`is dropped: by bea`."""
    return f"is {row.state}" + (f": {row.state_reason}" if row.state_reason else "")


def last_commit(run: Run, ours: Sequence[Commit]) -> Verdict:
    """Its only or last step is a commit: then it was done."""
    return Recovered(version=ours[-1].version)


def retry(run: Run, ours: Sequence[Commit]) -> Verdict:
    """All of the run's steps can be repeated."""
    return Retry()


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec(Generic[A]):
    """An action as the rest of lakewarden sees it."""

    action: Action
    """The word in `lakewarden.runs`."""
    value: type[A]
    """The type of its values."""
    urgency: int
    """Ranks it among others that are due, higher first."""
    rule: Rule
    """Whether the action is due."""
    estimate: Callable[[A, HealthRow], Estimate]
    """Its cost and benefit."""
    requires: Callable[[A], Head | None]
    """The head that it was decided on; None: it was on none."""
    recover: Callable[[Run, Sequence[Commit]], Verdict] = last_commit
    """A run whose worker is gone is judged by its own commits after that version, oldest first."""
    order: Callable[[Ordered], A] | None = None
    """Makes its value for a person who orders it; None: it is not ordered by `jobs run`."""
    asked_for: bool = False
    """A person wanted it, so that neither mode nor quiet hours matter."""
    deletes: Deletes = Deletes.NEVER
    """Whether a legal hold forbids it."""
    needs_features: bool = True
    """The action works on the table's files or log: all protocol features must be known to us."""
    of_all_formats: bool = False
    """Engines that do not do everything to their tables do this."""
    cares_for: str | None = None
    """What of a format's own metadata it cares for; only formats whose `upkeep` names the action have such. None: it is
    no such action."""
    by_spark: bool = False
    """Spark does it, so it has to be safe where the table lies."""
    of_system_tables: bool = True
    """The action is for system tables, too."""
    of_leaving_tables: bool = False
    """The action is for tables that leave, too."""
    amid_rollbacks: bool = False
    """The action is for tables that a rollback holds, too."""
    switch: Switch | None = None
    """How an owner switches it off."""
    on_any_head: bool = False
    """A run is right on any head, and goes on where the table has moved."""
    of_state: TableState | None = TableState.ACTIVE
    """Its tables are in that state; None: in any."""
    not_asked_for: str = ""
    """Said where an action that has to be asked for was not."""
    allowed_in: Callable[[TableRow, A, datetime], str | None] = field(default=lambda row, action, now: None)
    """Why a table of the right state forbids it all the same, right before it acts."""
    retention: Callable[[A, EffectivePolicy], tuple[int, int]] | None = None
    """The seconds it was decided on and those in force."""
    by_age: bool = False
    """It deletes what is older than something: whoever does it needs a clock that is right."""
    failure_message: Callable[[TableRow, Past], str] | None = None
    """What failed runs mean, where there is more to say than how many they are."""
    is_thorough: Callable[[A], bool] = field(default=lambda action: False)
    """Marks its rarer, wider form."""
    is_dry_run: Callable[[A], bool] | None = None
    """Marks a run that did nothing."""
    foresees: Callable[[A, Foreseeable], list[tuple[str, str]]] | None = None
    """What a dry run says, as (what, sentence); an action with dry runs has a run for that."""
    moves_bytes: bool = False
    """Its runs rewrite or delete files."""
    by_caretaker: bool = False
    """A leading daemon does it to system tables by itself, because no worker may."""
    settles: Callable[[RunRow, bool], Settlement | None] = field(default=lambda run, tried_again: None)
    """The settlement of a finished run, given whether it is tried again."""

    is_for: Callable[[TableRow, A], bool] = field(default=lambda row, action: True)
    """Whether a row is still as it was when a run was decided on, in what the run settles: otherwise it settles
    nothing, and another run does."""

    def changed_nothing(self, action: A) -> bool:
        """Whether the run was a dry run."""
        return self.is_dry_run is not None and self.is_dry_run(action)

    def deletes_now(self, action: A) -> bool:
        """Whether this very action deletes anything, or rewinds."""
        return self.deletes is Deletes.ALWAYS or (
            self.deletes is Deletes.SOMETIMES and self.is_thorough(action)
        )

    def is_switched_off(self, policy: EffectivePolicy) -> bool:
        """Whether the policy says no to it."""
        return self.switch is not None and self.switch.value(policy.settings) is False
