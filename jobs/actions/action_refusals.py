"""What stands against an action on a table, whoever asks: its state, a pause, a hold, a rollback, its policy. Pure.

The planner asks while it decides (`Planning`), a run right before it acts (`Acting`): a decision is old when it acts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakewarden.catalog.model.rows import Mode, Source, TableRow, TableState
from lakewarden.catalog.policy.original_properties import is_leaving
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.jobs.actions.answers import AnyAction, WhyNot
from lakewarden.jobs.actions.common_rules import quiet_hours_end
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.actions.spec import Deletes, Spec, state_of
from lakewarden.jobs.actions.world import Standing

__all__ = ["Acting", "ActionRefusal", "Planning", "refusals"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Planning:
    """The action is being decided on."""

    ordered: bool = False
    """A person asks for it: the table's mode and switches, which are a person's to decide, do not matter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Acting:
    """The action is about to be done."""

    action: AnyAction
    now: datetime
    ordered: bool = True
    """A person asked for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionRefusal:
    """One thing that stands against an action."""

    why: WhyNot
    said: str
    """What is said of the table to whoever wants to act: `is paused (db.t: month end)`."""
    planned: str
    """The same in the words of plans."""


def refusals(standing: Standing, spec: Spec[Any], at: Planning | Acting) -> Iterator[ActionRefusal]:
    """Everything that stands against an action on a table, the most final first."""
    governed = standing.governed
    yield from _state(governed.row, spec, at)
    if governed.paused is not None:
        said = f"is paused ({governed.paused})"
        yield ActionRefusal(why=WhyNot.PAUSED, said=said, planned=f"paused by {governed.paused}")
    if governed.hold is not None and _is_forbidden_by_holds(governed.row, spec, at):
        said = f"is under legal hold ({governed.hold})"
        yield ActionRefusal(why=WhyNot.ON_HOLD, said=said, planned=f"held by {governed.hold}")
    if standing.rollback is not None and not _is_part_of(standing.rollback.rollback_id, spec, at):
        rollback = f"rollback {standing.rollback.rollback_id}"
        yield ActionRefusal(
            why=WhyNot.ROLLBACK,
            said=f"is held by {rollback}, which is not finished",
            planned=f"{rollback} of it is not finished",
        )
    if not (at.ordered or spec.asked_for or is_leaving(governed.row)):
        yield from _wishes(governed, spec, at)


def _state(row: TableRow, spec: Spec[Any], at: Planning | Acting) -> Iterator[ActionRefusal]:
    fits = spec.of_state in (None, row.state) or (spec.of_leaving_tables and is_leaving(row))
    stands_for_others = fits and (isinstance(at, Acting) or spec.amid_rollbacks)
    if row.state is TableState.QUARANTINED and not stands_for_others:
        reason = row.state_reason or "its validation failed"
        yield ActionRefusal(why=WhyNot.QUARANTINED, said=state_of(row), planned=f"quarantined: {reason}")
    elif not fits and spec.asked_for:
        yield ActionRefusal(why=WhyNot.NOTHING_TO_DO, said=state_of(row), planned=spec.not_asked_for)
    elif not fits:
        yield ActionRefusal(why=WhyNot.NOT_ACTIVE, said=state_of(row), planned=f"the table is {row.state}")
    elif row.source is Source.SELF and not spec.of_system_tables:
        theirs = "system tables are made with theirs"
        yield ActionRefusal(why=WhyNot.NOTHING_TO_DO, said="is a system table", planned=theirs)
    elif isinstance(at, Acting) and (because := spec.allowed_in(row, at.action, at.now)) is not None:
        yield ActionRefusal(why=WhyNot.NOT_ACTIVE, said=because, planned=because)


def _is_forbidden_by_holds(row: TableRow, spec: Spec[Any], at: Planning | Acting) -> bool:
    """What deletes or rewinds; also giving a table that leaves its properties back, with what kept its log."""
    if spec.deletes is Deletes.SOMETIMES:
        return isinstance(at, Acting) and spec.deletes_now(at.action)
    return spec.deletes is Deletes.ALWAYS or is_leaving(row)


def _is_part_of(rollback_id: str, spec: Spec[Any], at: Planning | Acting) -> bool:
    if isinstance(at, Acting):
        return isinstance(at.action, RollBack) and at.action.rollback_id == rollback_id
    return spec.amid_rollbacks


def _wishes(governed: Governed, spec: Spec[Any], at: Planning | Acting) -> Iterator[ActionRefusal]:
    """What its owner does not want, or does not want any more."""
    if governed.policy.mode is Mode.OBSERVE:
        because = "mode is observe: the table is looked at, never changed"
        yield ActionRefusal(why=WhyNot.OBSERVE_ONLY, said="is observed only by now", planned=because)
    if spec.switch is not None and spec.is_switched_off(governed.policy):
        off = f"is not to be touched by now: its policy switched the {spec.action} off"
        yield ActionRefusal(why=WhyNot.DISABLED, said=off, planned=f"{spec.switch.key} = no")
    hours = governed.policy.settings.quiet_hours
    if hours and isinstance(at, Acting) and quiet_hours_end(hours, at.now) is not None:
        said = f"is in its quiet hours by now ({hours} UTC)"
        yield ActionRefusal(why=WhyNot.QUIET_HOURS, said=said, planned=said)
