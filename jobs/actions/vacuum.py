"""Deleting the files that no protected version can reach."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from pydantic.dataclasses import dataclass

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import Commit, Head
from lakewarden.catalog.model.rows import Action, HealthRow
from lakewarden.catalog.state.port import Run
from lakewarden.catalog.units import about_bytes, count_of, format_seconds
from lakewarden.jobs.actions.answers import Answer, Due, NotDue, WhyNot
from lakewarden.jobs.actions.common_rules import (
    READABLE_CHECK,
    RETENTION_CHECK,
    SHORTEST_REST,
    about,
    below,
    findings_of,
    head_of,
    health_of,
    not_looked_at,
    not_swept,
    nothing,
    recent,
    share_of,
    thorough_from,
)
from lakewarden.jobs.actions.costs import DELETE_RATE, KEEP_COST, LIST_RATE, WARM_START, Estimate
from lakewarden.jobs.actions.spec import Deletes, GiveUp, Ordered, Recovered, Spec, Switch, Verdict
from lakewarden.jobs.actions.world import TableView, World

__all__ = ["VACUUM", "Vacuum"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Vacuum:
    """Delete files no protected version can reach."""

    kind: Literal["vacuum"] = "vacuum"
    requires: Head
    retention_seconds: int
    """The effective retention: policy, promise, floors."""
    full: bool = False
    """The directory is listed, else only the log is asked."""
    max_share: float = 0.5
    """The size breaker."""
    consented: bool = False
    """An owner or admin agreed to go beyond the size breaker."""
    dry_run: bool = False
    excluded: tuple[str, ...] = ()
    """Locations of other managed tables (canonical URIs) that must never be entered."""
    held_by: str | None = None
    """Whose promise made the retention longer, if not its own."""


def _due(view: TableView, world: World, now: datetime) -> Answer:
    """Removed files older than the retention, or a full listing that policy asks for from time to time: that one waits
    for retention properties that carry the policy, because Spark lists by them."""
    waits = not_swept(view, Action.VACUUM) or not_looked_at(view, world, Action.VACUUM)
    if waits is not None:
        return waits
    unclear = findings_of(view, (READABLE_CHECK,))
    if unclear:
        return NotDue(action=Action.VACUUM, why=WhyNot.PROPERTIES_FIRST, because=unclear)
    governed, health = view.governed, health_of(view)
    retention = timedelta(seconds=governed.policy.vacuum_retention_seconds)
    full_every = timedelta(seconds=governed.policy.settings.vacuum_full_every_seconds or 0)
    full_from = thorough_from(view, Action.VACUUM)
    rest = min(max(retention / 24, SHORTEST_REST), timedelta(days=1))
    waits = recent(view, Action.VACUUM, rest, now)
    if waits is not None:
        return waits
    lists = now - full_from >= full_every
    oldest, count = health.oldest_tombstone_at, health.tombstones or 0
    has_old = oldest is not None and count > 0 and now - oldest >= retention
    # A folder that cannot be listed keeps back nothing of what the log tells: every other attempt goes by the log.
    past = view.past.get(Action.VACUUM)
    failed = past is not None and past.failures % 2 == 1
    if lists and not (failed and has_old) and not findings_of(view, (RETENTION_CHECK,)):
        because = (
            f"no full listing for {about(now - full_from)}, policy asks for one every {about(full_every)}"
        )
        return Due(action=_vacuum_action(view, world, full=True), because=because)
    if lists and not has_old:
        because = "a full listing is due, and the table's retention properties have to carry the policy first"
        return NotDue(action=Action.VACUUM, why=WhyNot.PROPERTIES_FIRST, because=because)
    if oldest is None or count == 0:
        return nothing(Action.VACUUM, "no removed files are left", until=full_from + full_every)
    words = f"{count_of(count, 'removed file')} ({about_bytes(health.tombstone_bytes or 0)})"
    since = f"the oldest removed {about(now - oldest)} ago, retention is {about(retention)}"
    if governed.policy.held_by is not None:
        since = f"{since} ({governed.policy.held_by})"
    if now - oldest < retention:
        return below(
            Action.VACUUM, f"{words}, {since}", until=min(oldest + retention, full_from + full_every)
        )
    return Due(action=_vacuum_action(view, world, full=False), because=f"{words}, {since}")


def _vacuum_action(view: TableView, world: World, *, full: bool) -> Vacuum:
    policy = view.governed.policy
    return Vacuum(
        requires=head_of(view),
        retention_seconds=policy.vacuum_retention_seconds,
        full=full,
        max_share=share_of(policy.settings.vacuum_max_share),
        excluded=world.inside(view.location) if full else (),
        held_by=policy.held_by,
    )


def _ordered(ordered: Ordered) -> Vacuum:
    order, policy, seen = ordered.order, ordered.governed.policy, ordered.seen
    kept, wanted = policy.vacuum_retention_seconds, order.retain_seconds
    if wanted is not None and wanted < kept:
        because = "" if policy.held_by is None else f" ({policy.held_by})"
        name = ordered.governed.row.name
        raise PreconditionError(
            f"{name} has to keep removed files for {format_seconds(kept)}{because}, not only "
            f"for {format_seconds(wanted)}.",
            hint="What is promised is kept. The policies vacuum.retention "
            "and rollback.promise say for how long.",
        )
    return Vacuum(
        requires=seen.at,
        retention_seconds=kept if wanted is None else wanted,
        full=order.full,
        max_share=policy.settings.vacuum_max_share or 0.0,
        consented=order.consented,
        dry_run=order.dry_run,
        excluded=ordered.inside,
        held_by=policy.held_by,
    )


def _estimate(action: Vacuum, health: HealthRow) -> Estimate:
    files, size = health.tombstones or 0, health.tombstone_bytes or 0
    listed = (health.files or 0) + files if action.full else 0
    seconds = WARM_START + files / DELETE_RATE + listed / LIST_RATE
    return Estimate(files=files, bytes=size, seconds=seconds, benefit=size * KEEP_COST + files * 0.001)


def _recover(run: Run, ours: Sequence[Commit]) -> Verdict:
    if ours[-1].ends_vacuum:
        return Recovered(version=ours[-1].version)
    return GiveUp(because="It was interrupted while deleting; the next vacuum deletes the rest.")


VACUUM: Final = Spec(
    action=Action.VACUUM,
    value=Vacuum,
    urgency=1,
    of_all_formats=True,
    by_spark=True,
    rule=_due,
    estimate=_estimate,
    requires=lambda action: action.requires,
    on_any_head=True,  # it decides on the head that it finds, and looks at what comes before each batch
    recover=_recover,
    order=_ordered,
    deletes=Deletes.ALWAYS,
    by_age=True,
    switch=Switch(key="vacuum.enabled", value=lambda settings: settings.vacuum_enabled),
    retention=lambda action, policy: (action.retention_seconds, policy.vacuum_retention_seconds),
    is_thorough=lambda action: action.full,
    is_dry_run=lambda action: action.dry_run,
    moves_bytes=True,
    by_caretaker=True,
)
