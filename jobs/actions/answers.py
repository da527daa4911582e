"""What a rule answers about one action on one table: due with a reason, or not due with one of a closed set. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from lakewarden.catalog.model.rows import Action

__all__ = ["Answer", "AnyAction", "Due", "NotDue", "WhyNot"]


class AnyAction(Protocol):
    """One unit of work on one table, with the version it was decided on: a frozen value that JSON can hold."""

    @property
    def kind(self) -> str:
        """The word of `Action` for it."""


class WhyNot(StrEnum):
    """Why an action is not due. The values appear in `jobs plan --explain -o json`: a contract."""

    NOTHING_TO_DO = "nothing to do"
    BELOW_THRESHOLD = "below threshold"
    RECENTLY_DONE = "recently done"
    QUIET_HOURS = "quiet hours"
    WRITERS_ACTIVE = "writers active"
    BUDGET = "budget"
    QUARANTINED = "quarantined"
    PAUSED = "paused"
    ON_HOLD = "on hold"
    OBSERVE_ONLY = "observe only"
    DISABLED = "disabled"
    CONFLICT_BACKOFF = "conflict back-off"
    FAILURE_BACKOFF = "failure back-off"
    UNSUPPORTED = "unsupported feature"
    CONSENT = "waiting for consent"
    QUEUED = "already queued"
    AFTER_OTHER = "after another action"
    PROPERTIES_FIRST = "properties first"
    NOT_OBSERVED = "not observed yet"
    NOT_ACTIVE = "not active"
    GRACE_PERIOD = "grace period"
    NO_METASTORE = "no metastore"
    ROLLBACK = "held by a rollback"
    NOT_JUDGED = "cannot be judged"


@dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """The action to run and the sentence that says why."""

    action: AnyAction
    because: str

    @property
    def kind(self) -> Action:
        return Action(self.action.kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class NotDue:
    """Why an action is not run now, in one word of the contract and one sentence."""

    action: Action
    why: WhyNot
    because: str
    until: datetime | None = None
    """When the answer may change."""


Answer = Due | NotDue
