"""A process that goes on with a rollback until it is done, or dies at a failpoint:
`python rollback_process.py LAKE ENGINE`.

ENGINE `sleepy` is one that freezes itself (SIGSTOP) where it is about to commit what FROZEN_AT names, once.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.engines.spark.session import start_session
from lakewarden.jobs.runs.spark_settings import SparkSettings
from support.builders.rollbacks import Lake
from support.fakes.engine import FakeEngine


def killed_at(lake: Lake, point: str, engine: str = "fake") -> None:
    """Go on in a process of its own that dies by SIGKILL at a failpoint."""
    process = subprocess.run(
        [sys.executable, __file__, str(lake.folder), engine],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "LAKEWARDEN_FAILPOINT": point,
        },
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL, (point, process.stderr.decode())


class SleepyEngine(FakeEngine):
    """Everything is decided and allowed; then the process sleeps, and whoever wakes it sees it commit."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return _asleep_first(found) if name == os.environ.get("FROZEN_AT") else found


def _asleep_first(deed: Callable[..., Any]) -> Callable[..., Any]:
    def after_sleep(*args: Any, **kwargs: Any) -> Any:
        del os.environ["FROZEN_AT"]
        os.kill(os.getpid(), signal.SIGSTOP)
        return deed(*args, **kwargs)

    return after_sleep


def main(folder: str, engine: str) -> int:
    """Go on; ENGINE is `fake`, `sleepy` or `spark`."""
    lake = Lake(Path(folder))
    if engine == "sleepy":
        lake.engine = SleepyEngine(lake.clock)
    if engine == "spark":
        lake.engine = DeltaEngine(
            lambda: start_session(SparkSettings(master="local[2]")),
            storage=lambda _: StorageOptions(),
            clock=SystemClock(),
        )
    print(lake.go_on().head.state)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
