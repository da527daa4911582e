"""What keeps the daemon from a table whatever the rules say: what stands against the action (`refusals`), the run that
the table has, features, back-off, quiet hours. Pure."""

from datetime import datetime, timedelta
from typing import Any

from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.policy.original_properties import is_leaving
from lakewarden.catalog.units import count_of
from lakewarden.jobs.actions.action_refusals import ActionRefusal, Planning, refusals
from lakewarden.jobs.actions.answers import NotDue, WhyNot
from lakewarden.jobs.actions.common_rules import quiet_hours_end
from lakewarden.jobs.actions.registry import SPECS
from lakewarden.jobs.actions.spec import Spec, state_of
from lakewarden.jobs.actions.world import Budget, Past, TableView

__all__ = ["CONSENT_RECHECK", "closed", "forbidden", "held_back"]

CONSENT_RECHECK = timedelta(days=1)
"""How long a vacuum beyond its size breaker waits before it is counted anew."""
CANCELLED_REST = timedelta(hours=1)
"""How long the daemon leaves an action alone that somebody cancelled."""


def closed(view: TableView, action: Action) -> NotDue | None:
    """Why no rule needs to be asked about this action; None if one does. The most final reason comes first."""
    spec = SPECS[action]
    against = next(refusals(view, spec, Planning()), None)
    return (
        _engine(view, spec)
        or (against and NotDue(action=action, why=against.why, because=against.planned))
        or _unfinished(view, action)
        or _features(view, spec)
    )


def forbidden(view: TableView, action: Action) -> ActionRefusal | None:
    """Why nobody may order this action by hand, either: what is a person's to decide (mode, switches, the
    hour) does not matter then, all else does. `view.health` has to be of now."""
    row, spec = view.governed.row, SPECS[action]
    if is_leaving(row):
        return ActionRefusal(why=WhyNot.NOT_ACTIVE, said=state_of(row), planned=f"the table is {row.state}")
    against = next(refusals(view, spec, Planning(ordered=True)), None)
    if against is not None:
        return against
    unable = _engine(view, spec)
    if unable is not None:
        said = f"gets no {action}: {unable.because}"
        return ActionRefusal(why=unable.why, said=said, planned=unable.because)
    unable = _features(view, spec)
    return (
        None if unable is None else ActionRefusal(why=unable.why, said=unable.because, planned=unable.because)
    )


def held_back(view: TableView, action: Action, budget: Budget, now: datetime) -> NotDue | None:
    """Why a due action has to wait all the same: what its last run came to, or the hour."""
    past, spec = view.past.get(action), SPECS[action]
    return (past and _after(view, spec, past, budget, now)) or _quiet_hours(view, spec, now)


def _engine(view: TableView, spec: Spec[Any]) -> NotDue | None:
    because = view.unable.get(spec.action)
    return None if because is None else NotDue(action=spec.action, why=WhyNot.UNSUPPORTED, because=because)


def _unfinished(view: TableView, action: Action) -> NotDue | None:
    run = view.unfinished
    if run is None:
        return None
    if run.request.action is action:
        return NotDue(action=action, why=WhyNot.QUEUED, because=f"run {run.request.run_id} is {run.state}")
    because = f"the {run.request.action} of this table is {run.state}; one run at a time"
    return NotDue(action=action, why=WhyNot.AFTER_OTHER, because=because)


def _features(view: TableView, spec: Spec[Any]) -> NotDue | None:
    if spec.by_spark and view.no_spark is not None:
        return NotDue(action=spec.action, why=WhyNot.UNSUPPORTED, because=view.no_spark)
    if spec.asked_for or is_leaving(view.governed.row):
        return None
    health, action = view.health, spec.action
    if health is None or health.version is None:
        return NotDue(action=action, why=WhyNot.NOT_OBSERVED, because="the next sweep will read it")
    if health.unsupported and spec.needs_features:
        because = f"uses {', '.join(health.unsupported)}, which lakewarden does not act on"
        return NotDue(action=action, why=WhyNot.UNSUPPORTED, because=because)
    return None


def _after(view: TableView, spec: Spec[Any], past: Past, budget: Budget, now: datetime) -> NotDue | None:
    action = spec.action
    if past.outcome is Outcome.CANCELLED:
        until = past.at + CANCELLED_REST
        because = "its last run was cancelled"
        return (
            NotDue(action=action, why=WhyNot.FAILURE_BACKOFF, because=because, until=until)
            if now < until
            else None
        )
    if past.failures == 0:
        return None
    # A changed row may be the answer to what went wrong (a raised share, another policy): then look again at once.
    if past.error_class == "ConsentError":
        until = past.at + CONSENT_RECHECK
        waits = now < until and view.governed.row.updated_at <= past.at
        because = past.message or "it would delete more than vacuum.max_share allows"
        return NotDue(action=action, why=WhyNot.CONSENT, because=because, until=until) if waits else None
    # The exponent is bounded: 2 to the number of failures of a year would overflow a timedelta.
    until = past.at + min(budget.backoff * 2 ** min(past.failures - 1, 20), budget.backoff_cap)
    if now >= until:
        return None
    conflict = past.error_class in ("ConflictError", "RevokedError")
    why = WhyNot.CONFLICT_BACKOFF if conflict else WhyNot.FAILURE_BACKOFF
    because = f"{count_of(past.failures, 'run')} in a row {'lost to writers' if conflict else 'failed'}"
    if spec.failure_message is not None:
        because = spec.failure_message(view.governed.row, past)
    return NotDue(action=action, why=why, because=because, until=until)


def _quiet_hours(view: TableView, spec: Spec[Any], now: datetime) -> NotDue | None:
    hours = view.governed.policy.settings.quiet_hours
    asked_for = spec.asked_for or is_leaving(view.governed.row)
    end = quiet_hours_end(hours, now) if hours and not asked_for else None
    if end is None:
        return None
    return NotDue(
        action=spec.action, why=WhyNot.QUIET_HOURS, because=f"no maintenance {hours} UTC", until=end
    )
