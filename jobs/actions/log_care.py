"""Writing checkpoints where writers make none, and cleaning the log behind what is promised."""

from datetime import datetime
from typing import Final, Literal

from pydantic.dataclasses import dataclass

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Action, HealthRow
from lakewarden.catalog.units import count_of
from lakewarden.jobs.actions.answers import Answer, Due
from lakewarden.jobs.actions.common_rules import (
    LOST_CHECKPOINT_CHECK,
    READABLE_CHECK,
    SHORTEST_REST,
    about,
    below,
    cleaning_rest,
    findings_of,
    head_of,
    health_of,
    not_read,
    recent,
    thorough_from,
)
from lakewarden.jobs.actions.costs import REPLAY_COST, SCANS_A_DAY, Estimate
from lakewarden.jobs.actions.spec import Deletes, Foreseeable, Ordered, Spec, Switch, retry
from lakewarden.jobs.actions.world import TableView, World

__all__ = ["LOG_CARE", "LogCare"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LogCare:
    """Write a checkpoint and remove log entries that nothing promised needs."""

    kind: Literal["log_care"] = "log_care"
    requires: Head
    """The version of the checkpoint."""
    retention_seconds: int
    """By policy and promise; what commits younger than this need to be undone stays."""
    checkpoint: bool = True
    clean_before_version: int | None = None
    """Log entries older than this one are removed; None: none."""


def _due(view: TableView, world: World, now: datetime) -> Answer:
    """A checkpoint where writers make none, and once a day a look at what can leave the log behind the promise."""
    governed, health = view.governed, health_of(view)
    since = health.commits_since_checkpoint or 0
    allowed = governed.policy.settings.log_checkpoint_commits or 2
    lost = findings_of(view, (LOST_CHECKPOINT_CHECK,))
    checkpoint = since >= allowed or (since > 0 and lost != "")
    kept = (health.version or 0) - (health.first_version or 0)
    cleaned_at, rest = thorough_from(view, Action.LOG_CARE), cleaning_rest(view)
    unclear = findings_of(view, (READABLE_CHECK,))
    cleanable = governed.hold is None and not unclear and kept > allowed
    clean = cleanable and now - cleaned_at >= rest
    unread = not_read(view, world, Action.LOG_CARE) if clean else None
    clean = clean and unread is None
    words = f"{count_of(since, 'commit')} since the last checkpoint, policy allows {allowed}"
    if lost:
        words += f"; {lost}"
    if not checkpoint and not clean:
        return unread or below(Action.LOG_CARE, words, until=cleaned_at + rest if cleanable else None)
    waits = recent(view, Action.LOG_CARE, SHORTEST_REST, now)
    if waits is not None:
        return waits
    if clean:
        words += f"; {count_of(kept, 'older commit')} not looked at for {about(now - cleaned_at)}"
    action = LogCare(
        requires=head_of(view),
        retention_seconds=governed.policy.log_retention_seconds,
        checkpoint=checkpoint,
        clean_before_version=health.version if clean else None,
    )
    return Due(action=action, because=words)


def _ordered(ordered: Ordered) -> LogCare:
    seen = ordered.seen
    return LogCare(
        requires=seen.at,
        retention_seconds=ordered.governed.policy.log_retention_seconds,
    )


def _estimate(action: LogCare, health: HealthRow) -> Estimate:
    commits = health.commits_since_checkpoint or 0
    benefit = SCANS_A_DAY * REPLAY_COST * max(commits, 1)
    return Estimate(files=health.files, bytes=health.bytes, benefit=benefit)


def _cleans(action: LogCare) -> bool:
    return action.clean_before_version is not None


def _foresees(action: LogCare, of: Foreseeable) -> list[tuple[str, str]]:
    last = of.seen().checkpoint_version
    if not action.checkpoint or (last is not None and last >= action.requires.version):
        return []
    before = "there is none" if last is None else f"the last one is of version {last}"
    return [("checkpoint", f"one of version {action.requires} would be written; {before}")]


LOG_CARE: Final = Spec(
    action=Action.LOG_CARE,
    value=LogCare,
    urgency=3,  # cheap, and every reader pays until it is done
    rule=_due,
    estimate=_estimate,
    requires=lambda action: action.requires,
    recover=retry,
    order=_ordered,
    deletes=Deletes.SOMETIMES,
    by_age=True,
    cares_for="checkpoints",
    switch=Switch(key="log.enabled", value=lambda settings: settings.log_enabled),
    on_any_head=True,  # what came after its version changes nothing about it
    retention=lambda action, policy: (action.retention_seconds, policy.log_retention_seconds),
    is_thorough=_cleans,
    foresees=_foresees,
    by_caretaker=True,
)
