"""Filling in missing statistics of files, and refreshing those of the table in the metastore."""

from datetime import datetime, timedelta
from typing import Final, Literal

from pydantic.dataclasses import dataclass

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.formats.registry import spec_of
from lakewarden.catalog.model.rows import Action, HealthRow
from lakewarden.catalog.model.table_deletes import OwnStatistics
from lakewarden.catalog.units import about_bytes, count_of
from lakewarden.jobs.actions.answers import Answer, Due
from lakewarden.jobs.actions.common_rules import (
    head_of,
    health_of,
    nothing,
    recent,
    share_of,
    writers,
)
from lakewarden.jobs.actions.costs import SCAN_RATE, SCANS_A_DAY, SKIP_COST, WARM_START, Estimate
from lakewarden.jobs.actions.spec import Foreseeable, Ordered, Spec, Switch
from lakewarden.jobs.actions.world import TableView, World

__all__ = ["STATISTICS", "RefreshStatistics", "named_columns"]

STATISTICS_REST: Final = timedelta(minutes=10)
_NAMED: Final = 5
"""So many columns are named in a sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshStatistics:
    """Fill missing per-file statistics and refresh table and column statistics in the metastore."""

    kind: Literal["statistics"] = "statistics"
    requires: Head
    name: str | None
    """The metastore's entry; None where none is written: there is no metastore, or the table keeps statistics of its
    columns itself."""
    fill_files: bool = True


def _due(view: TableView, world: World, now: datetime) -> Answer:
    """Files without statistics, or a table that changed by more than the policy's share since the last refresh."""
    health, past = health_of(view), view.past.get(Action.STATISTICS)
    bare = health.files_without_statistics or 0
    keeps = spec_of(view.governed.row.format).keeps_statistics
    because = _bare_because(bare, past.left_version if past else None, health) or (
        _stale_because(view, now) if keeps or world.has_metastore else None
    )
    if because is None:
        calm = "every file has statistics" if not bare else "the files left cannot be given statistics"
        return nothing(Action.STATISTICS, f"{calm} and the table changed little since the last refresh")
    quiet = timedelta(seconds=view.governed.policy.settings.compaction_quiet_seconds or 0)
    waits = recent(view, Action.STATISTICS, STATISTICS_REST, now)
    if waits is None and (bare or keeps):
        waits = writers(view, Action.STATISTICS, quiet, now)
    if waits is not None:
        return waits
    name = view.name if world.has_metastore and not keeps else None
    action = RefreshStatistics(requires=head_of(view), name=name, fill_files=bare > 0)
    return Due(action=action, because=because)


def _bare_because(bare: int, tried_upto: int | None, health: HealthRow) -> str | None:
    """`tried_upto` is the version that the last refresh left: its own commit holds nothing new to try."""
    tried = tried_upto is not None and health.version is not None and health.version <= tried_upto
    return f"{count_of(bare, 'file')} without statistics" if bare and not tried else None


def _stale_because(view: TableView, now: datetime) -> str | None:
    health, past = health_of(view), view.past.get(Action.STATISTICS)
    if past is None or past.done_at is None:
        return "never refreshed" if health.files else None
    made_of = past.done_version
    if made_of is not None and any(first <= made_of <= last for first, last in view.taken_back):
        return f"a rollback took version {made_of} back, which they were made of"
    before, size = past.done_bytes or 0, health.bytes or 0
    change = abs(size - before) / before if before else (1.0 if size else 0.0)
    allowed = share_of(view.governed.policy.settings.statistics_stale_share)
    if change > allowed:
        grown = f"from {about_bytes(before)} to {about_bytes(size)}"
        return f"the table went {grown} since the last refresh, policy allows {allowed:.0%}"
    return None


def _ordered(ordered: Ordered) -> RefreshStatistics:
    seen = ordered.seen
    name = None if seen.own_statistics is not None else ordered.governed.row.name
    return RefreshStatistics(requires=seen.at, name=name)


def _foresees(action: RefreshStatistics, of: Foreseeable) -> list[tuple[str, str]]:
    seen, found = of.seen(), list[tuple[str, str]]()
    own, bare = seen.own_statistics, seen.files_without_statistics
    if own is not None and own.columns and seen.files and not own.recorded:
        found.append(("columns", f"would count the distinct values of {named_columns(own)}"))
    if action.name is not None:
        found.append(
            ("metastore", f"would describe the table in the metastore's entry {action.name}, if it has one")
        )
    if action.fill_files and bare:
        found.append(
            ("files", f"would give statistics to {count_of(bare, 'file')} as far as their footers tell")
        )
    return found


def named_columns(own: OwnStatistics) -> str:
    """`3 columns (a, b, c)`, and how many get none."""
    more = ", ..." if len(own.columns) > _NAMED else ""
    words = f"{count_of(len(own.columns), 'column')} ({', '.join(own.columns[:_NAMED])}{more})"
    return f"{words}; {count_of(len(own.left_out), 'column')} left out" if own.left_out else words


def _estimate(action: RefreshStatistics, health: HealthRow) -> Estimate:
    # `bytes` is what the table holds: the next decision compares its growth with it.
    bare = health.files_without_statistics or 0
    seconds = WARM_START + (health.bytes or 0) / SCAN_RATE
    return Estimate(
        files=health.files, bytes=health.bytes, seconds=seconds, benefit=SCANS_A_DAY * SKIP_COST * (1 + bare)
    )


STATISTICS: Final = Spec(
    action=Action.STATISTICS,
    value=RefreshStatistics,
    urgency=1,
    of_all_formats=True,
    by_spark=True,
    rule=_due,
    estimate=_estimate,
    requires=lambda action: action.requires,
    order=_ordered,
    of_system_tables=False,
    switch=Switch(key="statistics.enabled", value=lambda settings: settings.statistics_enabled),
    foresees=_foresees,
)
