"""Joining small manifests, and taking away branches and metadata files that nobody needs."""

from datetime import datetime, timedelta
from typing import Final, Literal

from pydantic.dataclasses import dataclass

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Action, HealthRow
from lakewarden.catalog.units import count_of
from lakewarden.jobs.actions.answers import Answer, Due
from lakewarden.jobs.actions.common_rules import (
    SHORTEST_REST,
    about,
    below,
    cleaning_rest,
    head_of,
    health_of,
    not_read,
    recent,
    same_version,
    thorough_from,
    writers,
)
from lakewarden.jobs.actions.costs import METADATA, OPEN_COST, SCANS_A_DAY, WARM_START, Estimate
from lakewarden.jobs.actions.spec import Deletes, Ordered, Spec, Switch, retry
from lakewarden.jobs.actions.world import TableView, World

__all__ = ["METADATA_CARE", "MetadataCare"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MetadataCare:
    """Join manifests, drop branches of ours, delete metadata files that nothing names any more."""

    kind: Literal["metadata_care"] = "metadata_care"
    requires: Head
    """Manifests are joined on that head; the rest is right on any."""
    retention_seconds: int
    """Metadata files that were head within this time stay."""
    join: bool = False
    """Small manifests are joined."""
    clean: bool = False
    """Metadata files are deleted."""
    dry_run: bool = False


def _due(view: TableView, world: World, now: datetime) -> Answer:
    """Small manifests above the policy's number where nobody writes, a branch that a run of ours left, and once a day a
    look at what metadata files can go."""
    governed, health = view.governed, health_of(view)
    policy, backlog = governed.policy, health.backlog
    small, allowed = backlog.small_manifests or 0, policy.settings.log_checkpoint_commits or 2
    looked_at, rest = thorough_from(view, Action.METADATA_CARE), cleaning_rest(view)
    cleanable = governed.hold is None and (backlog.metadata_files or 0) > 1
    clean = cleanable and now - looked_at >= rest
    unread = not_read(view, world, Action.METADATA_CARE) if clean else None
    clean = clean and unread is None
    quiet = timedelta(seconds=policy.settings.compaction_quiet_seconds or 0)
    waits = None
    if small >= allowed:
        waits = same_version(view, Action.METADATA_CARE) or writers(view, Action.METADATA_CARE, quiet, now)
    join, branches = small >= allowed and waits is None, _left_branches(view)
    words = f"{count_of(small, 'small manifest')}, policy allows {allowed}"
    if branches:
        words += f"; branches left by runs of lakewarden: {branches}"
    if not (join or branches or clean):
        return (
            waits
            or unread
            or below(Action.METADATA_CARE, words, until=looked_at + rest if cleanable else None)
        )
    if (rested := recent(view, Action.METADATA_CARE, SHORTEST_REST, now)) is not None:
        return rested
    if clean:
        words += f"; metadata files not looked at for {about(now - looked_at)}"
    action = MetadataCare(
        requires=head_of(view), retention_seconds=policy.log_retention_seconds, join=join, clean=clean
    )
    return Due(action=action, because=words)


def _left_branches(view: TableView) -> int:
    """Branches that a run left: what was seen before the last compaction ended, that one worked on."""
    health, past = health_of(view), view.past.get(Action.COMPACT)
    return 0 if past is not None and past.at >= health.observed_at else health.backlog.own_branches or 0


def _ordered(ordered: Ordered) -> MetadataCare:
    retention = ordered.governed.policy.log_retention_seconds
    is_held = ordered.governed.hold is not None
    return MetadataCare(
        requires=ordered.seen.at,
        retention_seconds=retention,
        join=True,
        clean=not is_held,
        dry_run=ordered.order.dry_run,
    )


def _estimate(action: MetadataCare, health: HealthRow) -> Estimate:
    small = (health.backlog.small_manifests or 0) if action.join else 0
    return Estimate(
        files=small,
        seconds=WARM_START if small else METADATA,
        benefit=SCANS_A_DAY * OPEN_COST * (small + (health.backlog.own_branches or 0)),
    )


def _cleans(action: MetadataCare) -> bool:
    return action.clean


METADATA_CARE: Final = Spec(
    action=Action.METADATA_CARE,
    value=MetadataCare,
    urgency=3,  # cheap, and every reader pays until it is done
    rule=_due,
    estimate=_estimate,
    requires=lambda action: action.requires,
    recover=retry,
    order=_ordered,
    deletes=Deletes.SOMETIMES,
    by_age=True,
    cares_for="manifests",
    of_all_formats=True,
    by_spark=True,
    of_system_tables=False,
    switch=Switch(key="log.enabled", value=lambda settings: settings.log_enabled),
    on_any_head=True,  # manifests are joined on exactly one, the rest is right on any
    retention=lambda action, policy: (action.retention_seconds, policy.log_retention_seconds),
    is_thorough=_cleans,
    is_dry_run=lambda action: action.dry_run,
)
