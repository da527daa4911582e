"""What an action is, beside its value: all that planner, gates, guard, runner and recovery have to know of it. Pure.

Each action is one module here, with its value, its rule, its cost and a `Spec`; `registry.py` lists them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from typing import Generic, TypeVar

from lakewarden.catalog.formats.port import Commit, Observation
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
    """It was done: its commit is version `version`."""

    version: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry:
    """It left nothing behind, or all of its steps can be done again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GiveUp:
    """It was interrupted half-way, on a version that is no longer head; what is left will be planned anew."""

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
    """What a person wants done. `full`, `retain_seconds` (None: as policy says), `consented` and `dry_run` speak of a
    vacuum; `dry_run` of a compaction too."""

    action: Action
    full: bool = False
    retain_seconds: int | None = None
    consented: bool = False
    dry_run: bool = False


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
    """What a finished run settles in the row of its table."""

    CONVERTED = "it is a Delta table"
    NOT_CONVERTED = "it could not be converted"
    GIVEN_BACK = "a dropped table has its properties back"
    PURGED = "its files are gone"


Rule = Callable[[TableView, World, datetime], Answer]


def state_of(row: TableRow) -> str:
    """`is dropped: by bea`."""
    return f"is {row.state}" + (f": {row.state_reason}" if row.state_reason else "")


def last_commit(run: Run, ours: Sequence[Commit]) -> Verdict:
    """Its only or last step is a commit: then it was done."""
    return Recovered(version=ours[-1].version)


def retry(run: Run, ours: Sequence[Commit]) -> Verdict:
    """All of its steps can be done again."""
    return Retry()


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec(Generic[A]):
    """An action as the rest of lakewarden sees it.

    What it is: `action` is the word in `lakewarden.runs`, `value` the type of its values.
    When: `rule` says whether it is due; `urgency` ranks it among the others, higher first; `estimate` predicts its cost
    and benefit; `order` makes its value for a person who orders it (None: it is not ordered by `jobs run`).
    What stands against it: `asked_for` actions were wanted by a person, so that neither
    mode nor quiet hours matter (`not_asked_for` is said where nobody wants it); `needs_features`: it acts on the
    table's files or log, so all protocol features must be known to us; `by_spark`: Spark does it, so it has to be safe
    where the table lies; `of_state`: its tables are in that state (None: in any); `of_system_tables`,
    `of_leaving_tables`, `amid_rollbacks`: it is done to them, and there, too; `switch` may be off; `deletes` says
    whether a legal hold forbids it.
    And when it acts: `allowed_in` says why a table of the right state forbids it all the same, `retention` the seconds
    it was decided on and those in force.
    When its worker is gone: `recover` judges it by its own commits after the version it was decided on, oldest first.
    `requires` is that version (None: it has none); a run that is right `on_any_head` goes on where the table has moved.
    What its finished runs tell: `is_thorough` marks its rarer, wider form, `is_dry_run` one that did nothing;
    `failure_message` says what they mean where there is more to say than how many failed; `moves_bytes`: they rewrite
    or delete files; `settles` says what one settles in the row of its table, given whether it is tried again.
    What a dry run says: `foresees`, as (what, sentence); an action with `is_dry_run` has a run for that.
    `by_caretaker`: a leading daemon does it to system tables by itself, because no worker may.
    """

    action: Action
    value: type[A]
    urgency: int
    rule: Rule
    estimate: Callable[[A, HealthRow], Estimate]
    requires: Callable[[A], int | None]
    recover: Callable[[Run, Sequence[Commit]], Verdict] = last_commit
    order: Callable[[Ordered], A] | None = None
    asked_for: bool = False
    deletes: Deletes = Deletes.NEVER
    needs_features: bool = True
    by_spark: bool = False
    of_system_tables: bool = True
    of_leaving_tables: bool = False
    amid_rollbacks: bool = False
    switch: Switch | None = None
    on_any_head: bool = False
    of_state: TableState | None = TableState.ACTIVE
    not_asked_for: str = ""
    allowed_in: Callable[[TableRow, A, datetime], str | None] = field(default=lambda row, action, now: None)
    retention: Callable[[A, EffectivePolicy], tuple[int, int]] | None = None
    failure_message: Callable[[TableRow, Past], str] | None = None
    is_thorough: Callable[[A], bool] = field(default=lambda action: False)
    is_dry_run: Callable[[A], bool] | None = None
    foresees: Callable[[A, Foreseeable], list[tuple[str, str]]] | None = None
    moves_bytes: bool = False
    by_caretaker: bool = False
    settles: Callable[[RunRow, bool], Settlement | None] = field(default=lambda run, tried_again: None)

    def changed_nothing(self, action: A) -> bool:
        """Whether it only said what it would do."""
        return self.is_dry_run is not None and self.is_dry_run(action)

    def is_switched_off(self, policy: EffectivePolicy) -> bool:
        """Whether the policy says no to it."""
        return self.switch is not None and self.switch.value(policy.settings) is False
