"""Rows compared for somebody who looks at a plan: by Spark, in a process of its own that ends with the command."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from lakewarden.catalog import errors
from lakewarden.catalog.errors import ExecutionError, LakewardenError
from lakewarden.catalog.private_files import private_folder, private_opener
from lakewarden.daemon.installation.lazily import later
from lakewarden.daemon.installation.services import Services
from lakewarden.jobs.runs.row_diff import DiffRequest, RowDiff, decode_diff

if TYPE_CHECKING:
    from lakewarden.daemon.workers import pool
else:
    pool = later("lakewarden.daemon.workers.pool")

__all__ = ["compare_rows"]

_COMMAND: Final = (sys.executable, "-P", "-m", "lakewarden.jobs.worker.diff_process")
_PATIENCE: Final = 10.0
"""Seconds that the process has to end after it was asked to."""


def compare_rows(
    services: Services,
    requests: Sequence[DiffRequest],
    *,
    tell: Callable[[str], None],
    command: Sequence[str] = _COMMAND,
) -> tuple[RowDiff, ...]:
    """Answer the requests in their order. Takes a Spark session: 10 seconds, and what it takes to read the
    files that the two versions do not share.

    Raises what Spark says, `PreconditionError` without Java or for a key column that is not there.
    """
    names = ", ".join(one.name for one in requests)
    tell(f"Comparing the rows of {names} by Spark...")
    log = services.settings.home / "logs" / "row-diff.log"
    private_folder(log.parent)
    config = pool.worker_config(services.settings, f"row-diff-{os.getpid()}")
    asked = f"{config}\n{json.dumps([asdict(one) for one in requests])}\n"
    with open(log, "wb", opener=private_opener) as said:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True
        )
        try:
            output, _ = process.communicate(asked.encode())
        finally:
            _end(process)
    return _answers(output.splitlines(), len(requests), str(log))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End it and the Java that it started, if somebody interrupted us; nothing if it has ended."""
    if process.poll() is not None:
        return
    for urgent in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, urgent)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
            return


def _answers(lines: Sequence[bytes], wanted: int, log: str) -> tuple[RowDiff, ...]:
    if lines and lines[-1].startswith(b'{"error"'):
        told = json.loads(lines[-1])
        kind = getattr(errors, told["error"], ExecutionError)
        error: LakewardenError = kind(told["message"], hint=told["hint"])
        raise error
    if len(lines) != wanted:
        raise ExecutionError("Spark ended before the rows were compared.", hint=f"{log} has the whole story.")
    return tuple(decode_diff(line) for line in lines)
