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

__all__ = ["Budget", "Past", "TableView", "World"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Past:
    """What the finished runs of one action on one table have come to.

    `failures` counts runs that failed since the last one that did not. `done_*` speak of the last run that
    succeeded or found nothing to do: when, on which version, how many bytes the table had; `left_version` is the one
    it left behind. `thorough_at` is the last time it did the rarer, wider form: a full vacuum, a log cleanup.
    """

    outcome: Outcome
    at: datetime
    error_class: str | None = None
    message: str | None = None
    failures: int = 0
    done_at: datetime | None = None
    done_version: int | None = None
    left_version: int | None = None
    done_bytes: int | None = None
    thorough_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableView:
    """One managed table: its row under its scopes, its health, its finished runs, the run it has now, the rollback that
    holds it, and the ranges (first, last) of versions that rollbacks took back. `no_engine`: why tables of its format
    are never changed here (None: they are); `no_spark`: why Spark may not work on it where it lies (None: it may)."""

    governed: Governed
    health: HealthRow | None = None
    past: Mapping[Action, Past] = field(default_factory=dict)
    unfinished: Run | None = None
    rollback: RollbackLock | None = None
    taken_back: tuple[tuple[int, int], ...] = ()
    no_engine: str | None = None
    no_spark: str | None = None

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
    """Everything a plan is made of. `locations` are those of all managed tables, sorted; `unfinished` counts runs.
    `unlooked` are the sorted names of tables of which the next sweep finds out whether they read others' files."""

    tables: tuple[TableView, ...]
    locations: tuple[str, ...] = ()
    unfinished: int = 0
    budget: Budget = field(default_factory=Budget)
    has_metastore: bool = False
    unlooked: tuple[str, ...] = ()

    def inside(self, location: str) -> tuple[str, ...]:
        """Locations of managed tables strictly below `location`."""
        prefix = location.rstrip("/") + "/"
        start = bisect_left(self.locations, prefix)
        # "0" is the character after "/": everything that starts with the prefix sorts before it.
        end = bisect_left(self.locations, prefix[:-1] + "0")
        return self.locations[start:end]
