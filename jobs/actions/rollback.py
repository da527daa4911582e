"""Going on with a rollback: its journal says what is next."""

from datetime import datetime
from typing import Final, Literal

from pydantic.dataclasses import dataclass

from lakewarden.catalog.model.pending_quarantine import Quarantine
from lakewarden.catalog.model.rows import GONE, Action, Source, TableRow, TableState
from lakewarden.jobs.actions.answers import Answer, Due, NotDue, WhyNot
from lakewarden.jobs.actions.common_rules import nothing
from lakewarden.jobs.actions.costs import Estimate
from lakewarden.jobs.actions.spec import Deletes, Spec, retry, state_of
from lakewarden.jobs.actions.world import TableView, World

__all__ = ["ROLLBACK", "RollBack"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RollBack:
    """Go on with a rollback, forwards or back: its journal in `lakewarden.rollbacks` says what is next."""

    kind: Literal["rollback"] = "rollback"
    rollback_id: str


def _due(view: TableView, world: World, now: datetime) -> Answer:
    """A rollback that was begun goes on by itself, also after a crash, unless a person has to decide."""
    hold = view.rollback
    if hold is None:
        return nothing(Action.ROLLBACK, "no rollback of it is under way")
    if not hold.leads:
        return nothing(Action.ROLLBACK, f"rollback {hold.rollback_id} is run once, for all of its tables")
    if hold.waits:
        because = f"rollback {hold.rollback_id} stopped; `lakewarden rollback show` says why"
        return NotDue(action=Action.ROLLBACK, why=WhyNot.CONSENT, because=because)
    if hold.session_until is not None and now < hold.session_until:
        because = f"a session is at statement {hold.rollback_id}"
        return NotDue(
            action=Action.ROLLBACK, why=WhyNot.WRITERS_ACTIVE, because=because, until=hold.session_until
        )
    way = "is to be undone" if hold.undo else "is not done yet"
    return Due(action=RollBack(rollback_id=hold.rollback_id), because=f"rollback {hold.rollback_id} {way}")


def _allowed_in(row: TableRow, action: RollBack, now: datetime) -> str | None:
    if row.source is Source.SELF:
        return "is a system table"
    aside = Quarantine.of(row)
    ours = aside is not None and aside.rollback_id == action.rollback_id
    gone = row.state in GONE and not (ours and row.state is TableState.DROPPED)
    return state_of(row) if gone else None


ROLLBACK: Final = Spec(
    action=Action.ROLLBACK,
    value=RollBack,
    urgency=7,  # tables that are half-way back keep everybody waiting
    rule=_due,
    estimate=lambda action, health: Estimate(benefit=1.0),
    requires=lambda action: None,  # its journal has the versions of all its tables
    recover=retry,
    asked_for=True,
    deletes=Deletes.ALWAYS,
    needs_features=False,
    of_all_formats=True,
    amid_rollbacks=True,
    on_any_head=True,
    of_state=None,
    allowed_in=_allowed_in,
)
