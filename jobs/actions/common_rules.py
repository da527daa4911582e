"""What the rules of several actions ask of a table, and say in the same words. Pure.

Rules assume that `gates.closed` let the action through: the table is active, managed, observed, and has no run.
"""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Final

from lakewarden.catalog.formats.heads import head_on_record
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Action, HealthRow, Source
from lakewarden.catalog.units import about_seconds, count_of
from lakewarden.jobs.actions.answers import NotDue, WhyNot
from lakewarden.jobs.actions.world import TableView, World

__all__ = [
    "LOST_CHECKPOINT_CHECK",
    "READABLE_CHECK",
    "RETENTION_CHECK",
    "SHORTEST_REST",
    "about",
    "below",
    "cleaning_rest",
    "findings_of",
    "head_of",
    "health_of",
    "not_looked_at",
    "not_read",
    "not_swept",
    "nothing",
    "quiet_hours_end",
    "recent",
    "same_version",
    "share_of",
    "thorough_from",
    "writers",
]

RETENTION_CHECK: Final = "retention_properties"
READABLE_CHECK: Final = "retention_readable"
LOST_CHECKPOINT_CHECK: Final = "last_checkpoint"
SHORTEST_REST: Final = timedelta(minutes=1)
_CLEANING_REST: Final = timedelta(days=1)


def health_of(view: TableView) -> HealthRow:
    """The health row of a table that was observed."""
    assert view.health is not None, "gates.closed lets no unobserved table through"
    return view.health


def head_of(view: TableView) -> Head:
    """The head that was observed."""
    health = health_of(view)
    assert health.version is not None, "gates.closed lets no unobserved table through"
    return Head(health.version, head_on_record(view.governed.row, health))


def findings_of(view: TableView, checks: tuple[str, ...]) -> str:
    """The messages of what these checks found, as one text; empty where they found nothing."""
    health = view.health
    return " ".join(found.message for found in health.findings if found.check in checks) if health else ""


def not_swept(view: TableView, action: Action) -> NotDue | None:
    """Where the table's findings are older than the policy that they would have to be judged by."""
    if health_of(view).observed_at >= view.governed.changed_at:
        return None
    because = (
        "its policy or its row changed since the last sweep; "
        "the next one checks the retention properties by it"
    )
    return NotDue(action=action, why=WhyNot.NOT_OBSERVED, because=because)


def not_looked_at(view: TableView, world: World, action: Action) -> NotDue | None:
    """Another table may read this one's files, and has not been looked at yet: shallow clones do. Or its promise may
    need them."""
    return not_read(view, world, action) or _waits_for(world.unlooked, view, action)


def not_read(view: TableView, world: World, action: Action) -> NotDue | None:
    """Another table may have been made from this one: that may be lost, and its log has not been read for it again.
    Nothing is made from system tables."""
    return None if view.governed.row.source is Source.SELF else _waits_for(world.unread, view, action)


def _waits_for(names: Sequence[str], view: TableView, action: Action) -> NotDue | None:
    """The next sweep looks at another of these (sorted) tables."""
    place = bisect_left(names, view.name)
    mine = tuple(names[place : place + 1]) == (view.name,)
    others = len(names) - mine
    if not others:
        return None
    first = names[1] if mine and place == 0 else names[0]
    more = f" and {count_of(others - 1, 'more table')}" if others > 1 else ""
    because = f"not known yet whether {first}{more} can do without its files; the next sweep looks"
    return NotDue(action=action, why=WhyNot.NOT_OBSERVED, because=because)


def recent(view: TableView, action: Action, rest: timedelta, now: datetime) -> NotDue | None:
    """It was done less than `rest` ago."""
    past = view.past.get(action)
    if past is None or past.done_at is None or now >= past.done_at + rest:
        return None
    because = f"done {about(now - past.done_at)} ago"
    return NotDue(action=action, why=WhyNot.RECENTLY_DONE, because=because, until=past.done_at + rest)


def thorough_from(view: TableView, action: Action) -> datetime:
    """When it was last done thoroughly; if never, when the table was registered."""
    past = view.past.get(action)
    return (past.thorough_at if past else None) or view.governed.row.registered_at


def cleaning_rest(view: TableView) -> timedelta:
    """The time from one look at what metadata may go to the next: it grows with how long metadata is kept."""
    return max(_CLEANING_REST, timedelta(seconds=view.governed.policy.log_retention_seconds / 30))


def same_version(view: TableView, action: Action) -> NotDue | None:
    """It was done on this very version."""
    past = view.past.get(action)
    if past is None or past.done_version is None or past.done_version != health_of(view).version:
        return None
    return nothing(action, f"version {past.done_version} was looked at already and left as it is")


def writers(
    view: TableView, action: Action, quiet: timedelta, now: datetime, *, asks: str = "policy asks for"
) -> NotDue | None:
    """Somebody wrote less than `quiet` ago. `asks`: who wants that."""
    written = health_of(view).last_write_at
    if written is None or now >= written + quiet:
        return None
    because = f"written {about(now - written)} ago, {asks} {about(quiet)} of quiet"
    return NotDue(action=action, why=WhyNot.WRITERS_ACTIVE, because=because, until=written + quiet)


def nothing(action: Action, because: str, *, until: datetime | None = None) -> NotDue:
    """There is nothing to do."""
    return NotDue(action=action, why=WhyNot.NOTHING_TO_DO, because=because, until=until)


def below(action: Action, because: str, *, until: datetime | None = None) -> NotDue:
    """There is something, but less than the policy asks for."""
    return NotDue(action=action, why=WhyNot.BELOW_THRESHOLD, because=because, until=until)


def about(span: timedelta) -> str:
    """A span in rough words; nothing below zero."""
    return about_seconds(max(span.total_seconds(), 0.0))


def share_of(value: float | None) -> float:
    """A share of the policy; unset: all."""
    return 1.0 if value is None else value


def quiet_hours_end(hours: str, now: datetime) -> datetime | None:
    """When the quiet hours (`22:00-06:00`, UTC) that `now` lies in end; None outside of them. Equal ends: all day."""
    start, end = (time.fromisoformat(part) for part in hours.split("-"))
    clock = now.astimezone(UTC).time()
    inside = start <= clock < end if start < end else clock >= start or clock < end
    if not inside:
        return None
    finish = datetime.combine(now.astimezone(UTC).date(), end, UTC)
    return finish if finish > now else finish + timedelta(days=1)
