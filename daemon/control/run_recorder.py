"""Finished runs become rows of `lakewarden.runs`, and what follows from them happens, before the queue forgets them.

Every step can be repeated: an append leaves known keys alone, what follows is a compare-and-set, a message may be sent
twice. So a crash between any two steps costs nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Final, assert_never

from lakewarden.catalog.errors import LakewardenError, NotFoundError, UnavailableError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.model.rows import Outcome, RunRow, TableRow
from lakewarden.catalog.policy.access import DAEMON_NAME, Actor, Caller, Role
from lakewarden.catalog.registry.convert import conversion_failed, converted
from lakewarden.catalog.registry.owed_properties import given_back
from lakewarden.catalog.registry.removal import purged
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.state.port import Queue
from lakewarden.catalog.state.run_record import run_row
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import RUNS, Fence, SystemStore
from lakewarden.catalog.units import count_of
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.questions import Questions
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.daemon.telemetry.webhook import Event, EventKind, Notifier
from lakewarden.jobs.actions.registry import SPECS, decode
from lakewarden.jobs.actions.spec import Settlement

__all__ = ["DAEMON", "Attempt", "Ended", "RunRecorder"]

DAEMON: Final = Actor(Caller(name=DAEMON_NAME, roles=frozenset({Role.ADMIN}), origin="daemon"))
"""Who acts when nobody else does: what it does is on record in `lakewarden.runs`."""
_BATCH: Final = 500


class Ended(Enum):
    """How an attempt ended: it got through, it may another time, it never will."""

    DONE = "done"
    LATER = "later"
    NEVER = "never"


Attempt = Callable[[str, Callable[[], object]], Ended]
"""Does what concerns one table, in the way of the cycle:
whatever goes wrong is logged under its name and stops no other."""


def _storable(rows: list[RunRow], attempt: Attempt) -> list[RunRow]:
    """The rows, each of them without what cannot be stored."""
    if attempt("finished runs", partial(codec(RUNS).encode, rows)) is Ended.DONE:
        return rows
    return [
        row if attempt(row.name, partial(codec(RUNS).encode, [row])) is Ended.DONE else _bare(row)
        for row in rows
    ]


def _moved_bytes(row: RunRow) -> int:
    """What a run rewrote or deleted; nothing if it only said what it would do."""
    spec = SPECS[row.action]
    if not spec.moves_bytes or row.outcome is not Outcome.SUCCEEDED or row.payload is None:
        return 0
    try:
        action = decode(row.payload)
    except UnreadableError:
        return 0
    return 0 if spec.changed_nothing(action) else row.actual_bytes or 0


def _is_for(run: RunRow, table: TableRow) -> bool:
    """Whether the table still waits for what this run was queued for. One that cannot be told settles nothing: another
    run finds that there is nothing left to do."""
    if run.payload is None:
        return False
    try:
        return SPECS[run.action].is_for(table, decode(run.payload))
    except UnreadableError:
        return False


def _bare(row: RunRow) -> RunRow:
    """A run's row without anything that its worker or its planner wrote."""
    return replace(
        row,
        because="not recorded: it could not be stored",
        requires_version=None,
        committed_version=None,
        error_class=None,
        message="What it came to could not be stored.",
        hint="The daemon's log has more.",
        predicted_files=None,
        predicted_bytes=None,
        predicted_seconds=None,
        actual_files=None,
        actual_bytes=None,
        actual_seconds=None,
        payload=None,
        details=None,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecorder:
    """Empties the queue of finished runs."""

    store: SystemStore
    queue: Queue
    cache: FleetCache
    registry: Registry
    notifier: Notifier
    metrics: Metrics
    questions: Questions = field(default_factory=Questions)
    """Asks disks in time."""
    entries: TakenEntries | None = None
    """The entries of tables that are purged; None: no catalog keeps any."""

    def record(self, fence: Fence, attempt: Attempt) -> tuple[RunRow, ...]:
        """Record every finished run. Returns their rows.

        A run that cannot be stored as it is, is stored without what it says of itself; what follows from one run stops
        no other: it is tried again in the next cycle where that may help.
        """
        recorded: list[RunRow] = []
        while finished := self.queue.finished(_BATCH):
            rows = _storable([run_row(run, now=self.registry.clock.now()) for run in finished], attempt)
            self.append(rows, fence)
            reach("cycle.recorded")
            done: list[str] = []
            for run, row in zip(finished, rows, strict=True):
                follow = partial(self._follow, row, retry=run.result is not None and run.result.retry)
                if attempt(row.name, follow) is not Ended.LATER:
                    self.metrics.count_run(row.action, row.outcome, moved_bytes=_moved_bytes(row))
                    done.append(row.run_id)
            self.queue.forget(done)
            reach("cycle.forgotten")
            recorded.extend(rows)
            if len(done) < len(rows):
                break
        return tuple(recorded)

    def append(self, rows: Iterable[RunRow], fence: Fence) -> None:
        """Append rows to `lakewarden.runs` and remember them."""
        kept = tuple(rows)
        names = sorted({row.action.value for row in kept})
        because = f"{count_of(len(kept), 'finished run')} ({', '.join(names)})"
        self.cache.recorded(kept, self.store.append(RUNS, kept, fence=fence, because=because))

    def _follow(self, row: RunRow, *, retry: bool) -> None:
        settlement = SPECS[row.action].settles(row, retry)
        try:
            if settlement is not None:
                self._finish(settlement, row)
        except NotFoundError:
            pass  # its row is gone: there is nothing left to finish
        self._tell(row, retry=retry)

    def _finish(self, settlement: Settlement, row: RunRow) -> None:
        message = row.message or row.outcome
        match settlement:
            case Settlement.CONVERTED:
                self.questions.require([self.registry.get(row.table_id).location or ""])
                converted(self.registry, row.table_id)
            case Settlement.NOT_CONVERTED:
                conversion_failed(self.registry, row.table_id, message, is_for=partial(_is_for, row))
            case Settlement.GIVEN_BACK:
                given_back(self.registry, row.table_id, message, is_for=partial(_is_for, row))
            case Settlement.PURGED:
                purged(self.registry, row.table_id, actor=DAEMON, is_for=partial(_is_for, row))
            case Settlement.NOT_PURGED:
                self._give_back(self.registry.get(row.table_id))
            case _:
                assert_never(settlement)

    def _give_back(self, table: TableRow) -> None:
        """Whoever stopped the deletion looked for the entry maybe before its worker, which was killed since, took it
        away. Raises `UnavailableError`."""
        if self.entries is None or (keeper := self.entries.keeper(table)) is None:
            return
        try:
            self.questions.of_server(keeper, partial(self.entries.give_back, table))
        except UnavailableError:
            raise
        except LakewardenError as error:
            get_log("cycle").warning(
                "the entry in its catalog is still called by a name of ours",
                table=table.name,
                because=str(error),
            )

    def _tell(self, row: RunRow, *, retry: bool) -> None:
        if row.error_class == "ConsentError":
            kind = EventKind.CONSENT_NEEDED
        elif row.outcome in (Outcome.FAILED, Outcome.ABANDONED) and not retry:
            kind = EventKind.RUN_FAILED
        else:
            return
        known = self.cache.row(row.table_id)
        self.notifier.tell(
            Event(
                kind=kind,
                table_id=row.table_id,
                name=row.name,
                owner=known.owner if known is not None else None,
                message=f"{row.action} of {row.name}: {row.message or row.outcome}",
                at=row.finished_at,
                run_id=row.run_id,
                hint=row.hint,
            )
        )
