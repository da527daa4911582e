"""Run something now and wait for it: on the daemon's workers if one leads, else on a worker of our own."""

import time
from collections.abc import Callable, Container
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Final

from lakewarden.catalog import errors
from lakewarden.catalog.errors import (
    ConflictError,
    ExecutionError,
    LakewardenError,
    UnavailableError,
    UnfinishedError,
)
from lakewarden.catalog.model.rows import Outcome, RunRow
from lakewarden.catalog.state.port import Result, Run, RunRequest, RunState
from lakewarden.catalog.system.port import RUNS
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.workers.lost_runs import Reaper

__all__ = [
    "by_whom",
    "has_ended",
    "raise_for",
    "reap_lost",
    "run_and_wait",
    "run_is_over",
    "wait_for",
    "working",
]

_POLL_SECONDS: Final = 0.1
_REAP_SECONDS: Final = 1.0


def _nothing() -> None:
    """Nobody looks on."""


def run_and_wait(
    services: Services,
    request: RunRequest,
    *,
    tell: Callable[[str], None],
    look: Callable[[], None] = _nothing,
    has_worker: bool = False,
) -> Result:
    """Queue a run and wait until it is finished; if the daemon queued the very same work first, wait for that, or take
    what it has come to.

    Raises `ConflictError` if the table has another unfinished run. Interrupted, it cancels what only it would do;
    likewise if no worker can be started (`ExecutionError`). `look` is called all the while; it may give the waiting up
    by `UnfinishedError`, which is like being interrupted. `has_worker`: the caller has seen to it that somebody works
    (`working`).
    """
    queued = services.queue.enqueue([request])
    followed = request if queued or _is_known(services, request.run_id) else _twin(services, request)
    led = _is_led(services)
    tell(f"{request.action} of {request.name}: {by_whom(services, led=led)}...")
    with nullcontext() if has_worker else working(services):
        try:
            return _awaited(services, followed, look, tell)
        except (KeyboardInterrupt, UnfinishedError, ExecutionError):
            # Without a daemon nobody goes on with it: left in the queue it would surprise the next command.
            told = not led and services.queue.cancel(followed.run_id)
            tell(f"Run {followed.run_id} was told to end." if told else _goes_on(followed))
            raise


def by_whom(services: Services, *, led: bool) -> str:
    """The phrase in messages for where an ordered run is executed."""
    if led:
        return "queued for the daemon"
    return "queued for a worker elsewhere" if services.settings.workers_external else "starting a worker"


def wait_for(
    services: Services, run: Run | RunRow, *, timeout: timedelta | None, tell: Callable[[str], None]
) -> Result:
    """The result of a run that is somebody's already; at once if it has ended. Raises `UnfinishedError` after `timeout`
    (None: never): the run goes on, and so it does where the caller is interrupted."""
    if isinstance(run, RunRow):
        return _result_of(run)
    end = None if timeout is None else time.monotonic() + timeout.total_seconds()
    request = run.request

    def look() -> None:
        if end is not None and time.monotonic() >= end:
            raise UnfinishedError(
                f"{request.action} of {request.name} has not ended yet; it goes on.",
                hint=f"`lakewarden jobs wait {request.run_id}` waits again.",
            )

    try:
        if not _is_led(services):
            tell("No daemon leads: a queued run waits until one does.")
        return _awaited(services, request, look, tell)
    except KeyboardInterrupt:
        tell(_goes_on(request))
        raise


def _goes_on(request: RunRequest) -> str:
    return (
        f"Run {request.run_id} ({request.action} of {request.name}) goes on; "
        f"`lakewarden jobs cancel {request.run_id}` ends it."
    )


def working(services: Services) -> AbstractContextManager[object]:
    """While this is open somebody takes runs from the queue: the daemon's workers, or one of our own, which is a JVM
    beside that of whoever waits in a Spark session: that is said."""
    if _is_led(services):
        return nullcontext()
    if not services.settings.workers_external:
        get_log("workers").info(
            "no daemon leads: a worker with a Spark of its own is started",
            hint="With workers.external=yes the run waits for a worker elsewhere instead.",
        )
    return services.own_workers(1)


def _is_led(services: Services) -> bool:
    return services.leases.current(services.settings.lease_name) is not None


def _awaited(
    services: Services, request: RunRequest, look: Callable[[], None], tell: Callable[[str], None]
) -> Result:
    """Whoever waits, reaps: without a daemon nobody else finishes what a dead worker had claimed."""
    holder: str | None = None
    begun, next_reap = services.clock.now(), 0.0
    while True:
        look()
        services.require_workers()
        if time.monotonic() >= next_reap:
            next_reap = time.monotonic() + _REAP_SECONDS
            reap_lost(services, {request.table_id}, tell)
        run = services.queue.get(request.run_id)
        if run is None:
            return _recorded(services, request)
        if run.state is RunState.FINISHED and run.result is not None:
            return run.result
        if run.worker != holder:
            holder = run.worker
            _tell_holder(run, begun, tell)
        time.sleep(_POLL_SECONDS)


def reap_lost(services: Services, table_ids: Container[str], tell: Callable[[str], None]) -> None:
    """Settle what dead workers had claimed of these tables, and say so."""
    reaper = Reaper(
        queue=services.queue,
        run_log=services.run_log,
        registry=services.registry,
        clock=services.clock,
        attempts=services.settings.run_attempts,
        pause=services.settings.run_heartbeat,
    )
    for run in reaper.lost():
        if run.request.table_id in table_ids and reaper.finish(run):
            tell(f"{run.worker} is gone, which had run {run.request.run_id}; its log says how far it came.")


def _tell_holder(run: Run, begun: datetime, tell: Callable[[str], None]) -> None:
    """Say who has the run, if they had it before somebody began to wait."""
    if (
        run.worker is None
        or run.lease_until is None
        or (run.started_at is not None and run.started_at >= begun)
    ):
        return
    since = "" if run.started_at is None else f" since {run.started_at:%H:%M:%S} UTC"
    tell(
        f"Waiting for {run.worker}, which has run {run.request.run_id}{since}: "
        f"unless it says that it is alive, it loses it at {run.lease_until:%H:%M:%S} UTC."
    )


def run_is_over(services: Services, run_id: str) -> bool:
    """Whether a run is finished, recorded or not yet. One that the queue was told to forget is, though its record is
    gone: older system tables may have been put back."""
    queue = services.queue
    run = queue.get(run_id)
    if run is not None:
        return run.state is RunState.FINISHED
    return queue.forgot(run_id) or _row(services, run_id) is not None


def has_ended(services: Services, request: RunRequest) -> bool:
    """Whether a run that was in the queue is over. Raises `UnavailableError` if neither the queue nor
    `lakewarden.runs` knows it any more: nobody will ever say that it has ended."""
    run = services.queue.get(request.run_id)
    if run is not None:
        return run.state is RunState.FINISHED
    _recorded(services, request)
    return True


def _twin(services: Services, request: RunRequest) -> RunRequest:
    """The unfinished run that does what `request` asks for."""
    for run in services.queue.unfinished():
        if run.request.table_id == request.table_id:
            if (run.request.action, run.request.payload) == (request.action, request.payload):
                return run.request
            raise ConflictError(
                f"{request.name} has an unfinished run ({run.request.action}).",
                hint="See `lakewarden jobs list --unfinished`; wait, or cancel it.",
            )
    raise ConflictError(f"{request.name} had another run just now.", hint="Repeat the command.")


def _recorded(services: Services, request: RunRequest) -> Result:
    """The result of a run that was recorded and forgotten between two looks."""
    row = _row(services, request.run_id)
    if row is None:
        raise UnavailableError(
            f"The queue lost {request.action} of {request.name}; its table's log says whether it happened.",
            hint="The next sweep looks; `lakewarden tables history` shows the log.",
        )
    return _result_of(row)


def _result_of(row: RunRow) -> Result:
    return Result(
        outcome=row.outcome,
        message=row.message,
        hint=row.hint,
        error_class=row.error_class,
        committed_version=row.committed_version,
        actual_files=row.actual_files,
        actual_bytes=row.actual_bytes,
        actual_seconds=row.actual_seconds,
        details=row.details,
    )


def _is_known(services: Services, run_id: str) -> bool:
    return services.queue.get(run_id) is not None or _row(services, run_id) is not None


def _row(services: Services, run_id: str) -> RunRow | None:
    return services.store.rows(RUNS).get(run_id)


def raise_for(result: Result) -> None:
    """Turn a result that is no success into the error it stands for, with its hint; a skipped run is a success."""
    if result.outcome in (Outcome.SUCCEEDED, Outcome.SKIPPED):
        return
    kind = getattr(errors, result.error_class or "", ExecutionError)
    error: LakewardenError = kind(result.message or f"The run was {result.outcome}.", hint=result.hint)
    raise error
