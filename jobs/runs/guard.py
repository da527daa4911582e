"""What allows a run to delete, to rewind or to commit, asked anew right before it does: a decision is old when it acts.

`refusal` decides purely on what the system tables say at this moment (`Standing`); `RunGuard` is what an executor asks, at its
start and again before each bounded batch. docs/operations.md has the table of who asks what, and when.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, assert_never

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import RevokedError
from lakewarden.catalog.model.pending_purge import Purging
from lakewarden.catalog.model.pending_quarantine import Aside
from lakewarden.catalog.model.rows import Mode, TableRow, TableState
from lakewarden.catalog.policy.original_properties import is_leaving
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.registry.service import GONE
from lakewarden.catalog.units import format_seconds
from lakewarden.jobs.actions.values import (
    AnyAction,
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

__all__ = ["RunGuard", "Standing", "Standings", "refusal"]

_DELETES: Final = (Vacuum, Purge, RollBack)
"""What a legal hold forbids, besides cleaning a log."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What the system tables say of a table now: its row under its scopes, with what derived tables make it keep (None: it
    has no row), and the rollback that holds it, if one does."""

    governed: Governed | None
    rollback_id: str | None = None


class Standings(Protocol):
    """Where a table's standing is read."""

    def of(self, table_id: str) -> Standing:
        """Read anew each time. Raises `UnavailableError` when the system tables do not answer."""

    def readers_of(self, location: str) -> tuple[TableRow, ...]:
        """The managed tables that are known to name files in this folder although they lie elsewhere: shallow clones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunGuard:
    """`Guard` for one run. `claim` asks the queue itself whether the run is still this worker's, and raises if not;
    `standings` is None for a worker that was not told of system tables. `ordered`: a person asked for the run, so the
    table's mode and switches do not matter."""

    action: AnyAction
    standings: Standings | None
    claim: Callable[[], None]
    clock: Clock
    ordered: bool = True

    def confirm(self) -> None:
        self.claim()

    def ask(self, table_id: str, name: str, location: str) -> None:
        self.claim()
        if self.standings is None:
            return
        standing = self.standings.of(table_id)
        because = refusal(
            standing, self.action, location=location, now=self.clock.now(), ordered=self.ordered
        )
        if because is not None:
            raise RevokedError(f"{name} {because}; the {self.action.kind} stopped there.")

    def readers_of(self, location: str) -> tuple[TableRow, ...]:
        return () if self.standings is None else self.standings.readers_of(location)


def refusal(
    standing: Standing, action: AnyAction, *, location: str, now: datetime, ordered: bool = True
) -> str | None:
    """Why the action may not touch the table now, said of the table; None if it may. The most final reason comes first."""
    if standing.governed is None:
        return "is not managed any more"
    governed = standing.governed
    if governed.row.location != location:
        return f"has moved to {governed.row.location}"
    return (
        _state(governed.row, action, now)
        or _switches(governed, action)
        or _rollback(standing, action)
        or _retention(governed, action)
        or (None if ordered else _policy(governed, action))
    )


def _state(row: TableRow, action: AnyAction, now: datetime) -> str | None:
    said = f"is {row.state}" + (f": {row.state_reason}" if row.state_reason else "")
    match action:
        case Convert():
            return None if row.state is TableState.CONVERTING else said
        case Purge():
            return said if row.state is not TableState.PURGING else _agreed(row, action, now)
        case RollBack(rollback_id=rollback_id):
            aside = Aside.of(row)
            ours = aside is not None and aside.rollback_id == rollback_id
            gone = row.state in GONE and not (ours and row.state is TableState.DROPPED)
            return said if gone else None
        case SetProperties(gives_back=True):
            return None if is_leaving(row) else said
        case Vacuum() | Compact() | RefreshStatistics() | LogCare() | SetProperties() | SyncMetastore():
            return None if row.state is TableState.ACTIVE else said
        case _:
            assert_never(action)


def _agreed(row: TableRow, action: Purge, now: datetime) -> str | None:
    wanted = Purging.of(row)
    if wanted.head is None:
        return "was dropped by an older lakewarden, which did not note of which table; undrop it, then drop it again"
    if now < wanted.after:
        return f"may not be deleted before {wanted.after:%Y-%m-%d %H:%M} UTC"
    if (wanted.version, wanted.head, wanted.unknown) != (action.requires, action.decided_on, action.unknown):
        return "was dropped again, by another dry run"
    return None


def _switches(governed: Governed, action: AnyAction) -> str | None:
    if governed.paused is not None:
        return f"is paused ({governed.paused})"
    cleans = isinstance(action, LogCare) and action.clean_before_version is not None
    leaves = isinstance(action, SetProperties) and action.gives_back  # and with that, its log may be cleaned
    if governed.hold is not None and (cleans or leaves or isinstance(action, _DELETES)):
        return f"is under legal hold ({governed.hold})"
    return None


def _rollback(standing: Standing, action: AnyAction) -> str | None:
    own = action.rollback_id if isinstance(action, RollBack) else None
    if standing.rollback_id is None or standing.rollback_id == own:
        return None
    return f"is held by rollback {standing.rollback_id}"


def _retention(governed: Governed, action: AnyAction) -> str | None:
    match action:
        case Vacuum(retention_seconds=decided):
            now = governed.policy.vacuum_retention_seconds
        case LogCare(retention_seconds=decided):
            now = governed.policy.log_retention_seconds
        case _:
            return None
    return f"has to keep more by now: {format_seconds(now)}" if now > decided else None


def _policy(governed: Governed, action: AnyAction) -> str | None:
    """What its owner has switched off since the planner decided."""
    settings = governed.policy.settings
    match action:
        case Convert() | Purge() | RollBack() | SetProperties(gives_back=True):
            return None
        case Vacuum():
            enabled = settings.vacuum_enabled
        case Compact():
            enabled = settings.compaction_enabled
        case RefreshStatistics():
            enabled = settings.statistics_enabled
        case LogCare():
            enabled = settings.log_enabled
        case SyncMetastore():
            enabled = settings.metastore_sync
        case SetProperties():
            enabled = True
        case _:
            assert_never(action)
    if governed.policy.mode is Mode.OBSERVE:
        return "is observed only by now"
    return (
        f"is not to be touched by now: its policy switched the {action.kind} off"
        if enabled is False
        else None
    )
