"""Deleting a dropped table's files after its grace period."""

from datetime import datetime
from typing import Final, Literal

from pydantic.dataclasses import dataclass

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.pending_purge import Purging, how_to_stop
from lakewarden.catalog.model.rows import Action, HealthRow, Outcome, RunRow, TableRow, TableState
from lakewarden.catalog.units import count_of
from lakewarden.jobs.actions.answers import Answer, Due, NotDue, WhyNot
from lakewarden.jobs.actions.common_rules import about, not_looked_at
from lakewarden.jobs.actions.costs import DELETE_RATE, KEEP_COST, METADATA, Estimate
from lakewarden.jobs.actions.spec import Deletes, Settlement, Spec, retry
from lakewarden.jobs.actions.world import Past, TableView, World

__all__ = ["PURGE", "Purge"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Purge:
    """Delete a dropped table's files after its grace period."""

    kind: Literal["purge"] = "purge"
    requires: Head
    unknown: str | None = None
    """The token of the files that its log does not name and that may go along."""
    others: str | None = None
    """The other installations that manage or hold it."""
    head_file: str | None = None
    """The metadata file that a catalog's entry named."""
    files: int
    """What the dry run counted."""
    bytes: int
    """Likewise."""


def _due(view: TableView, world: World, now: datetime) -> Answer:
    """Delete a dropped table's files when its grace period is over."""
    wanted, health = Purging.of(view.governed.row), view.health
    if now < wanted.after:
        because = "the grace period in which undrop works is not over"
        return NotDue(action=Action.PURGE, why=WhyNot.GRACE_PERIOD, because=because, until=wanted.after)
    waits = not_looked_at(view, world, Action.PURGE)
    if waits is not None:
        return waits
    files, size = (health.files or 0, health.bytes or 0) if health else (0, 0)
    action = Purge(
        requires=Head(wanted.version, wanted.head),
        unknown=wanted.unknown,
        others=wanted.others,
        head_file=wanted.head_file,
        files=files,
        bytes=size,
    )
    because = f"its grace period ended {about(now - wanted.after)} ago"
    past = view.past.get(Action.PURGE)
    if past is not None and past.failures and _is_another(wanted, health):
        because = f"another table lies at its place now, and stays. {how_to_stop(view.governed.row.table_id)}"
        return NotDue(action=Action.PURGE, why=WhyNot.CONSENT, because=because)
    if past is not None and past.failures:
        because += f"; {_stuck(view.governed.row, past)}"
    return Due(action=action, because=because)


def _is_another(wanted: Purging, health: HealthRow | None) -> bool:
    """Whether the last sweep saw another table there than the one that was agreed to. A run has looked itself before
    this counts: it ends by itself where nothing of the old table is left."""
    seen = None if health is None else health.head
    return None not in (wanted.head, seen) and _identity(wanted.head) != _identity(seen)


def _identity(head: str | None) -> str:
    return (head or "").partition("@")[0]


def _estimate(action: Purge, health: HealthRow) -> Estimate:
    return Estimate(
        files=action.files,
        bytes=action.bytes,
        seconds=METADATA + action.files / DELETE_RATE,
        benefit=action.bytes * KEEP_COST,
    )


def _allowed_in(row: TableRow, action: Purge, now: datetime) -> str | None:
    """A purge deletes nothing but the table that was agreed to."""
    wanted = Purging.of(row)
    if wanted.head is None:
        return (
            "was dropped by an older lakewarden, which did not note of which table; "
            "undrop it, then drop it again"
        )
    if now < wanted.after:
        return f"may not be deleted before {wanted.after:%Y-%m-%d %H:%M} UTC"
    return None if _is_for(row, action) else "was dropped again, by another dry run"


def _is_for(row: TableRow, action: Purge) -> bool:
    wanted = Purging.of(row)
    agreed = (action.requires, action.unknown, action.others, action.head_file)
    return (Head(wanted.version, wanted.head), wanted.unknown, wanted.others, wanted.head_file) == agreed


def _stuck(row: TableRow, past: Past) -> str:
    """Why the purge did not end, and what would end it."""
    said = (past.message or past.outcome).rstrip(".")
    return f"{count_of(past.failures, 'run')} in a row did not end it: {said}. {how_to_stop(row.table_id)}"


def _settles(run: RunRow, tried_again: bool) -> Settlement | None:
    return Settlement.PURGED if run.outcome is Outcome.SUCCEEDED else Settlement.NOT_PURGED


PURGE: Final = Spec(
    action=Action.PURGE,
    value=Purge,
    urgency=2,  # somebody asked for it
    rule=_due,
    estimate=_estimate,
    requires=lambda action: action.requires,
    recover=retry,
    asked_for=True,
    of_all_formats=True,
    deletes=Deletes.ALWAYS,
    by_age=True,
    needs_features=False,
    on_any_head=True,  # one that was interrupted has no log to ask and looks by itself
    of_state=TableState.PURGING,
    not_asked_for="nobody asked to delete it",
    allowed_in=_allowed_in,
    failure_message=_stuck,
    moves_bytes=True,
    settles=_settles,
    is_for=_is_for,
)
