"""What keeps the daemon from a table whatever the rules say: state, pause, hold, mode, back-off, quiet hours. Pure."""

from datetime import UTC, datetime, time, timedelta

from lakewarden.catalog.model.pending_purge import how_to_stop
from lakewarden.catalog.model.rows import Action, Mode, Outcome, Source, TableRow, TableState
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.policy.original_properties import is_leaving
from lakewarden.catalog.units import count_of
from lakewarden.jobs.planning.answers import NotDue, WhyNot
from lakewarden.jobs.planning.world import Budget, Past, TableView

__all__ = ["CONSENT_RECHECK", "closed", "held_back", "quiet_hours_end", "stuck"]

CONSENT_RECHECK = timedelta(days=1)
"""How long a vacuum beyond its size breaker waits before it is counted anew."""
CANCELLED_REST = timedelta(hours=1)
"""How long the daemon leaves an action alone that somebody cancelled."""

_ASKED_FOR = (Action.CONVERT, Action.PURGE, Action.ROLLBACK)
"""Asked for by a person: neither mode nor quiet hours stand in the way."""
_DELETES = (Action.VACUUM, Action.PURGE, Action.ROLLBACK)
_NEEDS_FEATURES = (Action.VACUUM, Action.COMPACT, Action.STATISTICS, Action.LOG_CARE, Action.PROPERTIES)
_NOT_FOR_SYSTEM = (Action.PROPERTIES, Action.STATISTICS)


def closed(view: TableView, action: Action) -> NotDue | None:
    """Why no rule needs to be asked about this action; None if one does. The most final reason comes first."""
    return (
        _state(view, action)
        or _switches(view, action)
        or _unfinished(view, action)
        or _features(view, action)
    )


def held_back(view: TableView, action: Action, budget: Budget, now: datetime) -> NotDue | None:
    """Why a due action has to wait all the same: what its last run came to, or the hour."""
    past = view.past.get(action)
    return (past and _after(view, action, past, budget, now)) or _quiet_hours(view, action, now)


def _state(view: TableView, action: Action) -> NotDue | None:
    row = view.governed.row
    if is_leaving(row) and action is Action.PROPERTIES:
        return None
    if row.state is TableState.QUARANTINED:
        reason = row.state_reason or "its validation failed"
        return NotDue(action=action, why=WhyNot.QUARANTINED, because=f"quarantined: {reason}")
    if action is Action.CONVERT and row.state is not TableState.CONVERTING:
        return NotDue(action=action, why=WhyNot.NOTHING_TO_DO, because="it is a table already")
    if action is Action.PURGE and row.state is not TableState.PURGING:
        return NotDue(action=action, why=WhyNot.NOTHING_TO_DO, because="nobody asked to delete it")
    if action not in _ASKED_FOR and row.state is not TableState.ACTIVE:
        return NotDue(action=action, why=WhyNot.NOT_ACTIVE, because=f"the table is {row.state}")
    if action in _NOT_FOR_SYSTEM and row.source is Source.SELF:
        return NotDue(action=action, why=WhyNot.NOTHING_TO_DO, because="system tables are made with theirs")
    return None


def _switches(view: TableView, action: Action) -> NotDue | None:
    governed = view.governed
    if governed.paused is not None:
        return NotDue(action=action, why=WhyNot.PAUSED, because=f"paused by {governed.paused}")
    if view.rollback is not None and action is not Action.ROLLBACK:
        because = f"rollback {view.rollback.rollback_id} of it is not finished"
        return NotDue(action=action, why=WhyNot.ROLLBACK, because=because)
    if is_leaving(governed.row):
        held = governed.hold
        return None if held is None else NotDue(action=action, why=WhyNot.ON_HOLD, because=f"held by {held}")
    if governed.hold is not None and action in _DELETES:
        return NotDue(action=action, why=WhyNot.ON_HOLD, because=f"held by {governed.hold}")
    if action not in _ASKED_FOR and governed.policy.mode is Mode.OBSERVE:
        because = "mode is observe: the table is looked at, never changed"
        return NotDue(action=action, why=WhyNot.OBSERVE_ONLY, because=because)
    key = _switched_off(action, governed.policy)
    if key is not None:
        return NotDue(action=action, why=WhyNot.DISABLED, because=f"{key} = no")
    return None


def _switched_off(action: Action, policy: EffectivePolicy) -> str | None:
    settings = policy.settings
    switch = {
        Action.VACUUM: ("vacuum.enabled", settings.vacuum_enabled),
        Action.COMPACT: ("compaction.enabled", settings.compaction_enabled),
        Action.STATISTICS: ("statistics.enabled", settings.statistics_enabled),
        Action.LOG_CARE: ("log.enabled", settings.log_enabled),
        Action.SYNC: ("metastore.sync", settings.metastore_sync),
    }.get(action)
    return switch[0] if switch is not None and switch[1] is False else None


def _unfinished(view: TableView, action: Action) -> NotDue | None:
    run = view.unfinished
    if run is None:
        return None
    if run.request.action is action:
        return NotDue(action=action, why=WhyNot.QUEUED, because=f"run {run.request.run_id} is {run.state}")
    because = f"the {run.request.action} of this table is {run.state}; one run at a time"
    return NotDue(action=action, why=WhyNot.AFTER_OTHER, because=because)


def _features(view: TableView, action: Action) -> NotDue | None:
    if action in _ASKED_FOR or is_leaving(view.governed.row):
        return None
    health = view.health
    if health is None or health.version is None:
        return NotDue(action=action, why=WhyNot.NOT_OBSERVED, because="the next sweep will read it")
    if health.unsupported and action in _NEEDS_FEATURES:
        because = f"uses {', '.join(health.unsupported)}, which lakewarden does not act on"
        return NotDue(action=action, why=WhyNot.UNSUPPORTED, because=because)
    return None


def _after(view: TableView, action: Action, past: Past, budget: Budget, now: datetime) -> NotDue | None:
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
    if action is Action.PURGE:
        because = stuck(view.governed.row, past)
    return NotDue(action=action, why=why, because=because, until=until)


def stuck(row: TableRow, past: Past) -> str:
    """Why a purge did not come to its end, and what ends it else."""
    said = (past.message or past.outcome).rstrip(".")
    return f"{count_of(past.failures, 'run')} in a row did not end it: {said}. {how_to_stop(row.table_id)}"


def _quiet_hours(view: TableView, action: Action, now: datetime) -> NotDue | None:
    hours = view.governed.policy.settings.quiet_hours
    asked_for = action in _ASKED_FOR or is_leaving(view.governed.row)
    end = quiet_hours_end(hours, now) if hours and not asked_for else None
    if end is None:
        return None
    return NotDue(action=action, why=WhyNot.QUIET_HOURS, because=f"no maintenance {hours} UTC", until=end)


def quiet_hours_end(hours: str, now: datetime) -> datetime | None:
    """When the quiet hours (`22:00-06:00`, UTC) that `now` lies in end; None outside of them. Equal ends: all day."""
    start, end = (time.fromisoformat(part) for part in hours.split("-"))
    clock = now.astimezone(UTC).time()
    inside = start <= clock < end if start < end else clock >= start or clock < end
    if not inside:
        return None
    finish = datetime.combine(now.astimezone(UTC).date(), end, UTC)
    return finish if finish > now else finish + timedelta(days=1)
