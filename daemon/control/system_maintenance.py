"""System tables are managed like any table: the same rules plan for them. Their runs are done here, by delta-rs and
under the fence, because no worker may write them. What may be done is asked anew right before it, as of any run."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import FencedError, LakewardenError
from lakewarden.catalog.model.rows import Outcome, RunRow, Source
from lakewarden.catalog.state.port import Result, Run, RunRequest, RunState
from lakewarden.catalog.state.run_record import run_row
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.maintenance import Cared, compact, tend_log, vacuum
from lakewarden.catalog.system.port import SYSTEM_TABLES, Fence, SystemStore, SystemTable
from lakewarden.catalog.units import about_bytes, count_of
from lakewarden.daemon.control.run_recorder import DAEMON, RunRecorder
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.actions.registry import SPECS
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.planning.planner import PlannedRun, request_for
from lakewarden.jobs.runs.guard import RunGuard, Standings
from lakewarden.jobs.runs.host_clock import HostClock

__all__ = ["Caretaker"]

_NAME: Final = "daemon"
_LEAST_PER_BUCKET: Final = 2
"""The policy counts the small files of the whole table; within a bucket two are worth joining."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Caretaker:
    """Does planned runs on system tables and records them."""

    store: SystemStore
    cache: FleetCache
    recorder: RunRecorder
    clock: Clock
    standings: Standings
    clocks: HostClock
    """Compares this host's clock with the control database's: what is old is old by both."""
    beat: Callable[[], None] = lambda: None
    """Says that the main loop goes on."""

    def takes(self, run: PlannedRun) -> bool:
        """Whether a planned run is done here and not by a worker."""
        row = self.cache.row(run.table_id)
        return row is not None and row.source is Source.SELF and SPECS[run.due.kind].by_caretaker

    def take(self, run: PlannedRun, fence: Fence) -> RunRow:
        """Do it and record how it ended. Raises `FencedError` if this daemon leads no more."""
        request, began = request_for(run, new_id=lambda: uuid.uuid4().hex), self.clock.now()
        try:
            result = _result(self._tend(run.due.action, request, fence), run.due.action)
        except FencedError:
            raise
        except LakewardenError as error:
            result = Result(
                outcome=Outcome.FAILED,
                message=str(error),
                hint=error.hint or None,
                error_class=type(error).__name__,
                retry=error.retry,
            )
        ended = self.clock.now()
        done = Run(
            request=request,
            state=RunState.FINISHED,
            queued_at=began,
            worker=_NAME,
            started_at=began,
            finished_at=ended,
            result=result,
        )
        row = run_row(done, now=ended)
        self.recorder.append([row], fence)
        return row

    def _tend(self, action: AnyAction, request: RunRequest, fence: Fence) -> Cared:
        clock = self.clocks.earlier() if SPECS[request.action].by_age else self.clock
        guard = RunGuard(
            action=action,
            standings=self.standings,
            claim=_nothing,  # that nobody else leads the fence tells
            clock=clock,
            clocks=self.clocks.require_agreeing,
            ordered=request.is_ordered,
        )
        table = self._table(request.location)

        def proceed() -> None:
            self.beat()
            guard.ask(request.table_id, request.name, request.location)

        proceed()
        note = Note(actor=DAEMON.name, because=request.because, run_id=request.run_id, fence=fence)
        match action:
            case Compact():
                target = action.target_bytes
                return compact(
                    self.store,
                    table,
                    target_bytes=target,
                    min_small_files=_LEAST_PER_BUCKET,
                    note=note,
                    proceed=proceed,
                )
            case Vacuum():
                keep = timedelta(seconds=action.retention_seconds)
                return vacuum(self.store, table, retention=keep, now=clock.now(), note=note, proceed=proceed)
            case LogCare():
                return tend_log(
                    self.store,
                    table,
                    checkpoint=action.checkpoint,
                    keep=timedelta(seconds=action.retention_seconds),
                    now=clock.now(),
                    note=note,
                    proceed=proceed,
                )
            case _:
                raise AssertionError(f"takes() lets no {request.action} through")

    def _table(self, location: str) -> SystemTable[Any]:
        return next(table for table in SYSTEM_TABLES if self.store.location(table) == location)


def _nothing() -> None:
    """No queue knows of such a run."""


def _result(cared: Cared, action: AnyAction) -> Result:
    checkpoint = isinstance(action, LogCare) and action.checkpoint
    if cared.version is None and cared.files_removed == 0 and not checkpoint:
        return Result(outcome=Outcome.SKIPPED, message="There was nothing to gain.")
    words = f"{count_of(cared.files_removed, 'file')} ({about_bytes(cared.bytes_removed)}) went"
    return Result(
        outcome=Outcome.SUCCEEDED,
        message=f"{words}, {cared.files_added} came{', checkpoint written' if checkpoint else ''}.",
        committed_version=cared.version,
        actual_files=cared.files_removed,
        actual_bytes=cared.bytes_removed,
    )
