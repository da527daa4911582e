"""Ports of the operational database: the leader, hints, queued runs, and how far a log was read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf
from typing import Final, Protocol

from lakewarden.catalog.model.rows import Action, Outcome, TableRow
from lakewarden.catalog.model.system_head import SystemHead

__all__ = [
    "CANCELLED",
    "DELTA_RUNTIME",
    "SUPERSEDED",
    "Bookmarks",
    "Hint",
    "HintKind",
    "HintSink",
    "Inbox",
    "Lease",
    "Leases",
    "Queue",
    "Result",
    "Run",
    "RunLine",
    "RunLog",
    "RunRequest",
    "RunState",
    "SystemHeads",
    "runtime_of",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """A held lease."""

    name: str
    holder: str
    token: int
    """The token grows with every change of holder; no value comes back."""
    expires_at: datetime


class Leases(Protocol):
    """Leader election on one row. Expiry is judged by the database's clock alone."""

    def acquire(self, name: str, holder: str, ttl: timedelta) -> Lease | None:
        """Take or renew the lease; None while someone else holds it. Raises `UnavailableError`."""

    def advance(self, name: str, holder: str, token: int) -> Lease | None:
        """Lift the token to at least `token` if `holder` still holds the lease; None if not. Never lowers it."""

    def release(self, name: str, holder: str) -> None:
        """Give it up at once (the row and its token stay)."""

    def current(self, name: str) -> Lease | None:
        """Whoever holds it now, None if it expired or never was."""

    def incarnation(self) -> str:
        """An id that this database was given when it was created; a new database has a new one."""

    def now(self) -> datetime:
        """What the database's clock says. Raises `UnavailableError`."""


class Bookmarks(Protocol):
    """How far something has been read, by name. Whoever loses a bookmark starts anew: see where it is used."""

    def get(self, name: str) -> int | None:
        """The position, None if it was never put. Raises `UnavailableError`."""

    def put(self, name: str, value: int) -> None:
        """Move it, forward or back. Raises `UnavailableError`."""


class SystemHeads(Protocol):
    """The newest commits of the system tables at one location that this database has heard of, by table name."""

    def get(self) -> Mapping[str, SystemHead]:
        """None of a table that it never heard of. Raises `UnavailableError`."""

    def put(self, heads: Mapping[str, SystemHead]) -> None:
        """Remember these instead of what it knew of the same tables. Raises `UnavailableError`."""


class HintKind(StrEnum):
    """Where a hint came from."""

    CREATED = "created"
    DROPPED = "dropped"
    ALTERED = "altered"
    REQUESTED = "requested"
    WRITTEN = "written"


@dataclass(frozen=True, kw_only=True, slots=True)
class Hint:
    """A nudge to look at a table again: never a fact."""

    hint_id: str
    subject: str
    """A table name (`db.t`), all tables of a database (`db.*`) or a location."""
    kind: HintKind
    at: datetime


class HintSink(Protocol):
    """Where hints can be put: the inbox, or a spool folder where the database is out of reach."""

    def put(self, hints: Iterable[Hint]) -> None:
        """Store hints. Raises `UnavailableError`; some of them may have been stored then."""


class Inbox(HintSink, Protocol):
    """Hints waiting for the next cycle. Delivery is at least once; duplicates are harmless. One with a known id is
    stored once."""

    def claim(self, limit: int) -> tuple[Hint, ...]:
        """The hints that arrived first, left in place until `done`."""

    def done(self, hint_ids: Iterable[str]) -> None:
        """Forget these hints."""


class RunState(StrEnum):
    """queued -> claimed -> running -> finished (with an `Outcome`) -> recorded in `lakewarden.runs`, then forgotten."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    RUNNING = "running"
    FINISHED = "finished"


DELTA_RUNTIME: Final = "delta"
"""The runtime of Delta tables: Spark with Delta's jars, and delta-rs."""


def runtime_of(row: TableRow) -> str:
    """The runtime that work on a table needs: its format's, Delta's while it has none yet."""
    return row.format or DELTA_RUNTIME


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRequest:
    """A run to be queued. What is predicted is the planner's estimate, None when unknown."""

    run_id: str
    table_id: str
    name: str
    location: str
    action: Action
    payload: str
    """The action as JSON (jobs/actions/registry.py)."""
    because: str
    requires_version: int | None = None
    rank: float = 0.0
    """Higher first."""
    attempt: int = 1
    not_before: datetime | None = None
    predicted_files: int | None = None
    predicted_bytes: int | None = None
    predicted_seconds: float | None = None
    runtime: str = DELTA_RUNTIME
    """The format whose engine a worker has to have for it: one Spark cannot do the work of another."""

    @property
    def is_ordered(self) -> bool:
        """Whether a person asked for it: that outranks whatever is planned."""
        return self.rank == inf


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """How a run ended."""

    outcome: Outcome
    message: str | None = None
    hint: str | None = None
    """What a person can do about it."""
    error_class: str | None = None
    """The name of the `LakewardenError` subclass, which decides the exit code of whoever waits."""
    retry: bool = False
    """Whether trying again helps."""
    committed_version: int | None = None
    actual_files: int | None = None
    actual_bytes: int | None = None
    actual_seconds: float | None = None
    details: str | None = None


CANCELLED: Final = Result(outcome=Outcome.CANCELLED, message="It was cancelled.")
"""How a run ends that was cancelled while nobody worked on it."""

SUPERSEDED: Final = Result(
    outcome=Outcome.SKIPPED, message="Another run of this table was under way already.", retry=True
)
"""How a queued run ends whose table turns out to have a run under way: see `Queue.heartbeat`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A run in the queue with everything known about it."""

    request: RunRequest
    state: RunState
    queued_at: datetime
    worker: str | None = None
    lease_until: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    result: Result | None = None
    cancel_requested: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLine:
    """One line that was said during a run, by the clock of who said it."""

    at: datetime
    level: str
    message: str
    seq: int = 0
    """Its place, given by the database."""


class RunLog(Protocol):
    """What was said during runs. Lines go a week after they were said, when the queue next forgets a run."""

    def write(self, run_id: str, lines: Sequence[RunLine]) -> None:
        """Add lines of a run. Raises `UnavailableError`."""

    def read(self, run_id: str, *, after: int = 0) -> tuple[RunLine, ...]:
        """The lines of a run beyond place `after`, in order. Raises `UnavailableError`."""


class Queue(Protocol):
    """Runs between plan and record. At most one unfinished run per table: the database holds that, not memory."""

    def enqueue(self, requests: Iterable[RunRequest]) -> tuple[str, ...]:
        """Queue runs; a table that has an unfinished run keeps that one, and a run that the queue has, or had
        and was told to forget, is not queued again. Returns the run ids really queued."""

    def claim(
        self, worker: str, lease: timedelta, *, actions: Sequence[Action] = (), runtimes: Sequence[str] = ()
    ) -> Run | None:
        """Take the highest-ranked due run (of these actions, for these runtimes, any when empty); no two
        workers get the same one."""

    def start(self, run_id: str, worker: str, lease: timedelta) -> bool:
        """claimed -> running; False if the run is no longer this worker's, or was cancelled."""

    def heartbeat(self, run: Run, worker: str, lease: timedelta) -> bool:
        """Extend the lease. False: stop, it was cancelled or taken away (also: given to the same worker again). A run
        the database does not know (it was deleted and made anew) is put back as running, so that nobody starts it
        twice, and a run queued for its table meanwhile is finished as skipped; False if that one was begun."""

    def finish(self, run: Run, worker: str, result: Result) -> bool:
        """claimed or running -> finished; a run the database does not know (it was deleted and made anew) is stored as
        finished, at the moment that the run names, else now. False if it is no longer ours: closed, given away, or
        finished already."""

    def expired(self) -> tuple[Run, ...]:
        """Claimed or running runs whose lease ran out by the database's clock: their worker is gone."""

    def give_back(self, run_id: str, worker: str) -> bool:
        """Put a run that this worker has claimed and not started back as queued, for another one. False if it is not
        that (any more)."""

    def requeue(self, run_id: str, *, attempt: int, not_before: datetime | None = None) -> bool:
        """Put an expired run back as queued, as attempt `attempt`. False if it is not expired (any more); one that was
        asked to stop is finished as cancelled instead."""

    def close(self, run_id: str, result: Result) -> bool:
        """Finish an expired or queued run from outside, with what the table's log says about it. False if a worker
        holds it, or it is finished or unknown."""

    def cancel(self, run_id: str) -> bool:
        """Cancel: a queued or claimed run is finished as cancelled at once, a running one is asked to stop (its next
        heartbeat is False). False if it is finished or unknown."""

    def finished(self, limit: int) -> tuple[Run, ...]:
        """Finished runs not yet recorded in `lakewarden.runs`, oldest first."""

    def forget(self, run_ids: Iterable[str]) -> None:
        """Remove finished runs after they were recorded. Their ids are kept for a week, for workers that come late."""

    def unfinished(self) -> tuple[Run, ...]:
        """Everything queued, claimed or running."""

    def get(self, run_id: str) -> Run | None:
        """One run, finished or not, None if unknown here."""

    def forgot(self, run_id: str) -> bool:
        """Whether it had this run, was told to forget it, and keeps its id: such a run is not queued again, whether or
        not `lakewarden.runs` has it still."""
