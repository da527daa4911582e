"""What the planner sees: rows of the system tables and of the queue, never a log. Pure values.

A daemon that has just started knows the same as one that has run for a year, because all of this is stored.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lakewarden.catalog.model.rollbacks import RollbackLock
from lakewarden.catalog.model.rows import Action, HealthRow, Outcome
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.state.port import Run
from lakewarden.jobs.actions.budget import Budget

__all__ = ["Budget", "Past", "Standing", "TableView", "World"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Past:
    """What the finished runs of one action on one table have come to."""

    outcome: Outcome
    at: datetime
    error_class: str | None = None
    message: str | None = None
    failures: int = 0
    """Runs that failed since the last one that did not."""
    done_at: datetime | None = None
    """When the last run ended that succeeded or found nothing to do."""
    done_version: int | None = None
    """The version that it was on."""
    left_version: int | None = None
    """The version that it left behind."""
    done_bytes: int | None = None
    """So many the table had then."""
    thorough_at: datetime | None = None
    """The last time it did the rarer, wider form: a full vacuum, a log cleanup."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What in the system tables may stand against an action on one table."""

    governed: Governed
    """Its row under its scopes, with what derived tables make it keep."""
    rollback: RollbackLock | None = None
    """The rollback that holds it, if one does."""
    at_another: str | None = None
    """The managed table to whose folder its place leads by now; None: to none, or nobody has looked."""
    unread: str | None = None
    """Another table of which nobody knows what it was made from, since lineage went back in time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableView(Standing):
    """One managed table, with all that rules ask of it."""

    health: HealthRow | None = None
    past: Mapping[Action, Past] = field(default_factory=dict)
    """What its finished runs have come to."""
    unfinished: Run | None = None
    """The run it has now."""
    taken_back: tuple[tuple[int, int], ...] = ()
    """The ranges (first, last) of versions that were taken back."""
    unable: Mapping[Action, str] = field(default_factory=dict)
    """What is never done to tables of its format here, and why."""
    lacking: frozenset[Action] = frozenset()
    """The actions that care for what its format does not have: nobody is told of them."""
    no_spark: str | None = None
    """Why Spark may not work on it where it lies; None: it may."""

    @property
    def table_id(self) -> str:
        return self.governed.row.table_id

    @property
    def name(self) -> str:
        return self.governed.row.name

    @property
    def location(self) -> str:
        return self.governed.row.location or ""


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """Everything a plan is made of."""

    tables: tuple[TableView, ...]
    locations: tuple[str, ...] = ()
    """The locations of all managed tables, sorted."""
    unfinished: int = 0
    """So many runs are."""
    budget: Budget = field(default_factory=Budget)
    has_metastore: bool = False
    unlooked: tuple[str, ...] = ()
    """The sorted names of tables of which the next sweep finds out whether they read others' files."""
    unread: tuple[str, ...] = ()
    """The sorted names of tables whose logs have to be read again for what they were made from."""

    def inside(self, location: str) -> tuple[str, ...]:
        """Locations of managed tables strictly below `location`."""
        prefix = location.rstrip("/") + "/"
        start = bisect_left(self.locations, prefix)
        # "0" is the character after "/": everything that starts with the prefix sorts before it.
        end = bisect_left(self.locations, prefix[:-1] + "0")
        return self.locations[start:end]
