"""One rule per action: due or not due, with the reason. Pure; each rule reads one table's view and the clock.

Rules assume that `gates.closed` let the action through: the table is active, managed, observed, and has no run.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from lakewarden.catalog.formats.heads import head_on_record
from lakewarden.catalog.model.pending_conversion import Conversion
from lakewarden.catalog.model.pending_purge import Purging
from lakewarden.catalog.model.rows import Action, HealthRow, Source
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.policy.original_properties import is_leaving
from lakewarden.catalog.policy.retention_properties import lowered, retention_properties
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.units import about_bytes, about_seconds, count_of
from lakewarden.jobs.actions.values import (
    Compact,
    Convert,
    LogCare,
    Purge,
    RefreshStatistics,
    RollBack,
    SetProperties,
    SyncMetastore,
    Vacuum,
)
from lakewarden.jobs.planning.answers import Answer, Due, NotDue, WhyNot
from lakewarden.jobs.planning.costs import WORTHWHILE
from lakewarden.jobs.planning.gates import stuck
from lakewarden.jobs.planning.world import TableView, World

__all__ = ["RULES", "Rule", "conversion_action", "properties_action"]

Rule = Callable[[TableView, World, datetime], Answer]

RETENTION_CHECK: Final = "retention_properties"
READABLE_CHECK: Final = "retention_readable"
METASTORE_CHECKS: Final = ("schema_matches_metastore", "metastore_entry")

SHORTEST_REST: Final = timedelta(minutes=1)
STATISTICS_REST: Final = timedelta(minutes=10)
CLEANING_REST: Final = timedelta(days=1)
PURGE_DELETED_SHARE: Final = 0.1
"""Share of rows that deletion vectors hide from which rewriting the files pays."""
QUEUEING_TIME: Final = timedelta(seconds=10)
"""Between writing the row of a conversion and queueing its run, an asker that has not crashed needs less than this."""
_OUTDATED: Final = (
    "its policy or its row changed since the last sweep; the next one checks the retention properties by it"
)
PROPERTIES_GAP: Final = 5
"""Setting properties takes milliseconds: a fifth of the quiet time that a compaction needs is enough."""


def properties_action(policy: EffectivePolicy, version: int, *, decided_on: str | None) -> SetProperties:
    """The commit that makes a table's properties carry a policy's retention."""
    return SetProperties(
        requires=version,
        decided_on=decided_on,
        properties=retention_properties(policy),
        lowers=lowered(policy),
    )


def conversion_action(governed: Governed) -> Convert:
    """The conversion that a row in state `converting` waits for, with the retention its policy asks for."""
    wanted = Conversion.of(governed.row)
    return Convert(
        name=wanted.name,
        location=wanted.location,
        partitioned_by=wanted.partitioned_by,
        statistics=wanted.statistics,
        properties=retention_properties(governed.policy),
        lowers=lowered(governed.policy),
    )


def convert(view: TableView, world: World, now: datetime) -> Answer:
    """A row that waits for its conversion and has no run: the run was lost, or never queued."""
    asked_at = view.governed.row.registered_at
    if now - asked_at < QUEUEING_TIME:
        because = "it was asked for just now; whoever asked queues it"
        return NotDue(
            action=Action.CONVERT, why=WhyNot.QUEUED, because=because, until=asked_at + QUEUEING_TIME
        )
    because = f"{view.governed.row.registered_by} asked to convert it and no run is doing so"
    return Due(action=conversion_action(view.governed), because=because)


def purge(view: TableView, world: World, now: datetime) -> Answer:
    """Delete a dropped table's files when its grace period is over."""
    wanted, health = Purging.of(view.governed.row), view.health
    if now < wanted.after:
        because = "the grace period in which undrop works is not over"
        return NotDue(action=Action.PURGE, why=WhyNot.GRACE_PERIOD, because=because, until=wanted.after)
    files, size = (health.files or 0, health.bytes or 0) if health else (0, 0)
    action = Purge(
        requires=wanted.version, decided_on=wanted.head, unknown=wanted.unknown, files=files, bytes=size
    )
    because = f"its grace period ended {_about(now - wanted.after)} ago"
    past = view.past.get(Action.PURGE)
    if past is not None and past.failures:
        because += f"; {stuck(view.governed.row, past)}"
    return Due(action=action, because=because)


def properties(view: TableView, world: World, now: datetime) -> Answer:
    """Retention properties that do not carry the policy are set, all together, in a quiet gap."""
    if is_leaving(view.governed.row):
        because = "it was dropped: its properties go back to what they were before"
        return Due(action=SetProperties(gives_back=True), because=because)
    found = _findings(view, (RETENTION_CHECK,))
    if _is_outdated(view):
        return NotDue(action=Action.PROPERTIES, why=WhyNot.NOT_OBSERVED, because=_OUTDATED)
    if not found:
        return _nothing(Action.PROPERTIES, "the retention properties carry the policy")
    policy = view.governed.policy
    gap = timedelta(seconds=(policy.settings.compaction_quiet_seconds or 0) / PROPERTIES_GAP)
    waits = _recent(view, Action.PROPERTIES, SHORTEST_REST, now) or _writers(
        view, Action.PROPERTIES, gap, now
    )
    if waits is not None:
        return waits
    return Due(action=properties_action(policy, _version(view), decided_on=_head(view)), because=found)


def vacuum(view: TableView, world: World, now: datetime) -> Answer:
    """Removed files older than the retention, or a full listing that policy asks for from time to time."""
    if _is_outdated(view):
        return NotDue(action=Action.VACUUM, why=WhyNot.NOT_OBSERVED, because=_OUTDATED)
    if _findings(view, (RETENTION_CHECK,)):
        because = "the table's retention properties have to carry the policy first"
        return NotDue(action=Action.VACUUM, why=WhyNot.PROPERTIES_FIRST, because=because)
    unclear = _findings(view, (READABLE_CHECK,))
    if unclear:
        return NotDue(action=Action.VACUUM, why=WhyNot.PROPERTIES_FIRST, because=unclear)
    governed, health = view.governed, _health(view)
    retention = timedelta(seconds=governed.policy.vacuum_retention_seconds)
    full_every = timedelta(seconds=governed.policy.settings.vacuum_full_every_seconds or 0)
    past = view.past.get(Action.VACUUM)
    full_from = (past.thorough_at if past else None) or governed.row.registered_at
    rest = min(max(retention / 24, SHORTEST_REST), timedelta(days=1))
    waits = _recent(view, Action.VACUUM, rest, now)
    if waits is not None:
        return waits
    if now - full_from >= full_every:
        because = (
            f"no full listing for {_about(now - full_from)}, policy asks for one every {_about(full_every)}"
        )
        return Due(action=_vacuum_action(view, world, full=True), because=because)
    oldest, count = health.oldest_tombstone_at, health.tombstones or 0
    if oldest is None or count == 0:
        return _nothing(Action.VACUUM, "no removed files are left", until=full_from + full_every)
    words = f"{count_of(count, 'removed file')} ({about_bytes(health.tombstone_bytes or 0)})"
    since = f"the oldest removed {_about(now - oldest)} ago, retention is {_about(retention)}"
    if governed.policy.held_by is not None:
        since = f"{since} ({governed.policy.held_by})"
    if now - oldest < retention:
        return _below(Action.VACUUM, f"{words}, {since}", until=oldest + retention)
    return Due(action=_vacuum_action(view, world, full=False), because=f"{words}, {since}")


def _vacuum_action(view: TableView, world: World, *, full: bool) -> Vacuum:
    policy = view.governed.policy
    return Vacuum(
        requires=_version(view),
        decided_on=_head(view),
        retention_seconds=policy.vacuum_retention_seconds,
        full=full,
        max_share=_share(policy.settings.vacuum_max_share),
        excluded=world.inside(view.location) if full else (),
        held_by=policy.held_by,
    )


def compact(view: TableView, world: World, now: datetime) -> Answer:
    """Small files above the policy's number, or deletion vectors that hide enough rows, where nobody writes."""
    governed, health = view.governed, _health(view)
    settings = governed.policy.settings
    small, least = health.small_files or 0, settings.compaction_min_small_files or 2
    vectors, deleted = health.deletion_vectors or 0, health.deleted_rows or 0
    purge_due = vectors > 0 and (
        vectors >= least or deleted >= PURGE_DELETED_SHARE * max(health.rows or 0, 1)
    )
    words = f"{count_of(small, 'small file')}, policy allows {least}"
    if small < least and not purge_due:
        return _below(Action.COMPACT, words)
    if (
        not purge_due
        and small < WORTHWHILE
        and (health.bytes or 0) < (settings.compaction_target_bytes or 0) // 2
    ):
        return _below(Action.COMPACT, f"{count_of(small, 'small file')} would only become another small file")
    if purge_due:
        words = f"{count_of(vectors, 'file')} with {count_of(deleted, 'deleted row')}, {words}"
    quiet = timedelta(seconds=settings.compaction_quiet_seconds or 0)
    waits = _same_version(view, Action.COMPACT) or _recent(
        view, Action.COMPACT, max(quiet, SHORTEST_REST), now
    )
    if waits is None and (health.partitions or 0) <= 1 and governed.row.source is not Source.SELF:
        # Of a partitioned table the executor takes the cold partitions; of any other, all or nothing.
        waits = _writers(view, Action.COMPACT, quiet, now)
    if waits is not None:
        return waits
    action = Compact(
        requires=_version(view),
        decided_on=_head(view),
        target_bytes=settings.compaction_target_bytes or 0,
        min_small_files=least,
        quiet_seconds=settings.compaction_quiet_seconds or 0,
        beside_writers=settings.compaction_beside_writers or False,
        purge=purge_due,
    )
    return Due(action=action, because=words)


def statistics(view: TableView, world: World, now: datetime) -> Answer:
    """Files without statistics, or a table that changed by more than the policy's share since the last refresh."""
    health, past = _health(view), view.past.get(Action.STATISTICS)
    bare = health.files_without_statistics or 0
    because = _bare_because(bare, past.done_version if past else None, health) or (
        _stale_because(view, now) if world.has_metastore else None
    )
    if because is None:
        calm = "every file has statistics" if not bare else "the files left cannot be given statistics"
        return _nothing(Action.STATISTICS, f"{calm} and the table changed little since the last refresh")
    quiet = timedelta(seconds=view.governed.policy.settings.compaction_quiet_seconds or 0)
    waits = _recent(view, Action.STATISTICS, STATISTICS_REST, now)
    if waits is None and bare:
        waits = _writers(view, Action.STATISTICS, quiet, now)
    if waits is not None:
        return waits
    name = view.name if world.has_metastore else None
    action = RefreshStatistics(
        requires=_version(view), decided_on=_head(view), name=name, fill_files=bare > 0
    )
    return Due(action=action, because=because)


def _bare_because(bare: int, done_version: int | None, health: HealthRow) -> str | None:
    # A refresh commits: the version after the one it was decided on is its own, and holds nothing new to try.
    tried = done_version is not None and health.version is not None and health.version <= done_version + 1
    return f"{count_of(bare, 'file')} without statistics" if bare and not tried else None


def _stale_because(view: TableView, now: datetime) -> str | None:
    health, past = _health(view), view.past.get(Action.STATISTICS)
    if past is None or past.done_at is None:
        return "never refreshed" if health.files else None
    made_of = past.done_version
    if made_of is not None and any(first <= made_of <= last for first, last in view.taken_back):
        return f"a rollback took version {made_of} back, which they were made of"
    before, size = past.done_bytes or 0, health.bytes or 0
    share = abs(size - before) / before if before else (1.0 if size else 0.0)
    allowed = _share(view.governed.policy.settings.statistics_stale_share)
    if share > allowed:
        grown = f"from {about_bytes(before)} to {about_bytes(size)}"
        return f"the table went {grown} since the last refresh, policy allows {allowed:.0%}"
    return None


def log_care(view: TableView, world: World, now: datetime) -> Answer:
    """A checkpoint where writers make none, and once a day a look at what can leave the log behind the promise."""
    governed, health = view.governed, _health(view)
    since = health.commits_since_checkpoint or 0
    allowed = governed.policy.settings.log_checkpoint_commits or 2
    past = view.past.get(Action.LOG_CARE)
    checkpoint = since >= allowed
    kept = (health.version or 0) - (health.first_version or 0)
    cleaned_at = (past.thorough_at if past else None) or governed.row.registered_at
    rest = max(CLEANING_REST, timedelta(seconds=governed.policy.log_retention_seconds / 30))
    unclear = _findings(view, (READABLE_CHECK,))
    clean = governed.hold is None and not unclear and kept > allowed and now - cleaned_at >= rest
    words = f"{count_of(since, 'commit')} since the last checkpoint, policy allows {allowed}"
    if not checkpoint and not clean:
        return _below(Action.LOG_CARE, words)
    waits = _recent(view, Action.LOG_CARE, SHORTEST_REST, now)
    if waits is not None:
        return waits
    if clean:
        words += f"; {count_of(kept, 'older commit')} not looked at for {_about(now - cleaned_at)}"
    action = LogCare(
        requires=_version(view),
        decided_on=_head(view),
        retention_seconds=governed.policy.log_retention_seconds,
        checkpoint=checkpoint,
        clean_before_version=health.version if clean else None,
    )
    return Due(action=action, because=words)


def sync(view: TableView, world: World, now: datetime) -> Answer:
    """The metastore entry differs from the table."""
    if not world.has_metastore:
        return NotDue(action=Action.SYNC, why=WhyNot.NO_METASTORE, because="no metastore is configured")
    found = _findings(view, METASTORE_CHECKS)
    if not found:
        return _nothing(Action.SYNC, "the metastore agrees")
    waits = _recent(view, Action.SYNC, SHORTEST_REST, now)
    share = _share(view.governed.policy.settings.statistics_stale_share)
    action = SyncMetastore(requires=_version(view), decided_on=_head(view), name=view.name, stale_share=share)
    return waits or Due(action=action, because=found)


def rollback(view: TableView, world: World, now: datetime) -> Answer:
    """A rollback that was begun goes on by itself, also after a crash, unless a person has to decide."""
    hold = view.rollback
    if hold is None or not hold.leads:
        return _nothing(Action.ROLLBACK, "no rollback of it is under way")
    if hold.waits:
        because = f"rollback {hold.rollback_id} stopped; `lakewarden rollback show` says why"
        return NotDue(action=Action.ROLLBACK, why=WhyNot.CONSENT, because=because)
    way = "is to be undone" if hold.undo else "is not done yet"
    return Due(action=RollBack(rollback_id=hold.rollback_id), because=f"rollback {hold.rollback_id} {way}")


RULES: Final[Mapping[Action, Rule]] = {
    Action.ROLLBACK: rollback,
    Action.CONVERT: convert,
    Action.PROPERTIES: properties,
    Action.SYNC: sync,
    Action.VACUUM: vacuum,
    Action.COMPACT: compact,
    Action.STATISTICS: statistics,
    Action.LOG_CARE: log_care,
    Action.PURGE: purge,
}


def _health(view: TableView) -> HealthRow:
    assert view.health is not None, "gates.closed lets no unobserved table through"
    return view.health


def _version(view: TableView) -> int:
    version = _health(view).version
    assert version is not None, "gates.closed lets no unobserved table through"
    return version


def _head(view: TableView) -> str | None:
    return head_on_record(view.governed.row, _health(view))


def _findings(view: TableView, checks: tuple[str, ...]) -> str:
    health = view.health
    return " ".join(found.message for found in health.findings if found.check in checks) if health else ""


def _is_outdated(view: TableView) -> bool:
    """Whether the table's findings are older than what they would have to be judged by."""
    return _health(view).observed_at < view.governed.changed_at


def _recent(view: TableView, action: Action, rest: timedelta, now: datetime) -> NotDue | None:
    past = view.past.get(action)
    if past is None or past.done_at is None or now >= past.done_at + rest:
        return None
    because = f"done {_about(now - past.done_at)} ago"
    return NotDue(action=action, why=WhyNot.RECENTLY_DONE, because=because, until=past.done_at + rest)


def _same_version(view: TableView, action: Action) -> NotDue | None:
    past = view.past.get(action)
    if past is None or past.done_version is None or past.done_version != _version(view):
        return None
    return _nothing(action, f"version {past.done_version} was looked at already and left as it is")


def _writers(view: TableView, action: Action, quiet: timedelta, now: datetime) -> NotDue | None:
    written = _health(view).last_write_at
    if written is None or now >= written + quiet:
        return None
    because = f"written {_about(now - written)} ago, policy asks for {_about(quiet)} of quiet"
    return NotDue(action=action, why=WhyNot.WRITERS_ACTIVE, because=because, until=written + quiet)


def _nothing(action: Action, because: str, *, until: datetime | None = None) -> NotDue:
    return NotDue(action=action, why=WhyNot.NOTHING_TO_DO, because=because, until=until)


def _below(action: Action, because: str, *, until: datetime | None = None) -> NotDue:
    return NotDue(action=action, why=WhyNot.BELOW_THRESHOLD, because=because, until=until)


def _seconds(span: timedelta) -> float:
    return max(span.total_seconds(), 0.0)


def _about(span: timedelta) -> str:
    return about_seconds(_seconds(span))


def _share(value: float | None) -> float:
    return 1.0 if value is None else value
