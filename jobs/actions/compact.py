"""Rewriting small files, and files with many deleted rows, into good ones."""

from datetime import datetime, timedelta
from typing import Final, Literal

from pydantic.dataclasses import dataclass

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.bucket_layout import LAYOUT_CHECK
from lakewarden.catalog.model.rows import Action, HealthRow, Source
from lakewarden.catalog.units import count_of
from lakewarden.jobs.actions.answers import Answer, Due
from lakewarden.jobs.actions.common_rules import (
    SHORTEST_REST,
    below,
    head_of,
    health_of,
    recent,
    same_version,
    share_of,
    writers,
)
from lakewarden.jobs.actions.costs import (
    OPEN_COST,
    REWRITE_RATE,
    SCANS_A_DAY,
    WARM_START,
    WORTHWHILE,
    Estimate,
)
from lakewarden.jobs.actions.delete_costs import DeletesBeside
from lakewarden.jobs.actions.spec import Ordered, Spec, Switch
from lakewarden.jobs.actions.world import TableView, World

__all__ = ["COMPACT", "Compact"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Compact:
    """Rewrite small files of cold partitions."""

    kind: Literal["compact"] = "compact"
    requires: Head
    """That head or a later one: files and partitions are chosen on the head that the run finds."""
    target_bytes: int
    """About the size of the files that are written."""
    min_small_files: int
    quiet_seconds: int
    """A partition is cold when nobody wrote to it for so long."""
    beside_writers: bool = False
    """The compaction may commit after commits made while it ran."""
    purge: bool = False
    """Files of which rows are deleted beside them are rewritten without these rows."""
    join_deletes: bool = False
    """Delete files by position are rewritten into few."""
    dry_run: bool = False


def _due(view: TableView, world: World, now: datetime) -> Answer:
    """Small files above the policy's number, files of a bucketed table in no bucket, or deletes beside the data files
    that are many or cost readers more than taking them out, where nobody writes."""
    governed, health = view.governed, health_of(view)
    settings = governed.policy.settings
    small, least = health.small_files or 0, settings.compaction_min_small_files or 2
    beside = DeletesBeside.of(health)
    many = beside.files - beside.by_position >= least
    purge_due = beside.files > 0 and (
        (many and beside.pays) or beside.share >= share_of(settings.compaction_deleted_share)
    )
    join_due = not purge_due and beside.by_position >= least
    astray = next((one.message for one in health.findings if one.check == LAYOUT_CHECK), None)
    words = f"{count_of(small, 'small file')}, policy allows {least}"
    told = f"{count_of(beside.files, beside.named)} with {count_of(beside.rows, 'deleted row')}"
    if many and not purge_due:
        words = f"{words}; {told}: {beside}"
    if small < least and not purge_due and not join_due and astray is None:
        return below(Action.COMPACT, words)
    if (
        not purge_due
        and not join_due
        and astray is None
        and small < WORTHWHILE
        and (health.bytes or 0) < (settings.compaction_target_bytes or 0) // 2
    ):
        return below(Action.COMPACT, f"{count_of(small, 'small file')} would only become another small file")
    if purge_due:
        words = f"{told}, {words}"
    elif join_due:
        words = f"{count_of(beside.by_position, 'delete file')} by position, {words}"
    elif astray is not None:
        words = astray.removesuffix(".")
    quiet = timedelta(seconds=settings.compaction_quiet_seconds or 0)
    waits = same_version(view, Action.COMPACT) or recent(view, Action.COMPACT, max(quiet, SHORTEST_REST), now)
    if waits is None and (health.partitions or 0) <= 1 and governed.row.source is not Source.SELF:
        # Of a partitioned table the executor takes the cold partitions; of any other, all or nothing.
        waits = writers(view, Action.COMPACT, quiet, now)
    if waits is not None:
        return waits
    action = Compact(
        requires=head_of(view),
        target_bytes=settings.compaction_target_bytes or 0,
        min_small_files=least,
        quiet_seconds=settings.compaction_quiet_seconds or 0,
        beside_writers=settings.compaction_beside_writers or False,
        purge=purge_due,
        join_deletes=join_due,
    )
    return Due(action=action, because=words)


def _ordered(ordered: Ordered) -> Compact:
    settings, seen = ordered.governed.policy.settings, ordered.seen
    return Compact(
        requires=seen.at,
        target_bytes=settings.compaction_target_bytes or 0,
        min_small_files=2,
        quiet_seconds=0,
        beside_writers=settings.compaction_beside_writers or False,
        dry_run=ordered.order.dry_run,
    )


def _estimate(action: Compact, health: HealthRow) -> Estimate:
    small, beside = health.small_files or 0, DeletesBeside.of(health)
    size = round(small * min(beside.data_bytes / beside.data_files, action.target_bytes / 2))
    if action.purge:
        size += beside.written
    benefit = SCANS_A_DAY * OPEN_COST * small + beside.saved
    return Estimate(files=small, bytes=size, seconds=WARM_START + size / REWRITE_RATE, benefit=benefit)


COMPACT: Final = Spec(
    action=Action.COMPACT,
    value=Compact,
    urgency=1,
    of_all_formats=True,
    by_spark=True,
    rule=_due,
    estimate=_estimate,
    requires=lambda action: action.requires,
    order=_ordered,
    switch=Switch(key="compaction.enabled", value=lambda settings: settings.compaction_enabled),
    on_any_head=True,  # it decides on the head that it finds
    is_dry_run=lambda action: action.dry_run,
    moves_bytes=True,
    by_caretaker=True,
)
