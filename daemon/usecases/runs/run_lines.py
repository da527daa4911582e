"""What was said during one run: as it is kept, or followed until the run has ended."""

import time
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Final

from lakewarden.catalog.model.rows import RunRow
from lakewarden.catalog.state.port import Run, RunLine
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.runs.waiting import has_ended

__all__ = ["followed", "id_of", "lines_of", "whole_log"]

_POLL_SECONDS: Final = 0.5
_GRACE_SECONDS: Final = 1.5
"""A worker's last lines arrive so much later than the run's end."""


def id_of(run: Run | RunRow) -> str:
    """The id of a run, whoever has it."""
    return run.run_id if isinstance(run, RunRow) else run.request.run_id


def lines_of(services: Services, run: Run | RunRow) -> tuple[RunLine, ...]:
    """The run's lines so far."""
    return services.run_log.read(id_of(run))


def followed(services: Services, run: Run | RunRow) -> Iterator[RunLine]:
    """The run's lines so far, then each new one until the run has ended. Raises `UnavailableError` where the queue lost
    the run (its database was made anew): nothing more comes."""
    if isinstance(run, RunRow):
        yield from lines_of(services, run)
        return
    run_id, last, until = id_of(run), 0, inf
    while True:
        if until == inf and has_ended(services, run.request):
            until = time.monotonic() + _GRACE_SECONDS
        at_end = time.monotonic() >= until
        for line in services.run_log.read(run_id, after=last):
            last = line.seq
            yield line
        if at_end:
            return
        time.sleep(_POLL_SECONDS)


def whole_log(services: Services, run: Run | RunRow) -> str | None:
    """Where the worker's own log is, with what Spark says, as a sentence; None for a run that no worker has begun."""
    worker = run.worker
    if worker is None:
        return None
    file: Path = services.settings.home / "logs" / f"{worker}.log"
    if file.is_file():
        return f"All that its worker and Spark said: {file}."
    return (
        f"All that its worker and Spark said is where {worker} ran: in logs/ of the home there, "
        "or in what its host printed."
    )
