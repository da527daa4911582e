"""A daemon process whose workers need no Spark: `python daemon_process.py HOME [key=value ...]`.

The same `Services` and the same `build_daemon` as `lakewarden daemon`; only the program of the workers is another. At
the failpoint that the variable `HANGS_AT` names, it waits for ever.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lakewarden.catalog import failpoints
from lakewarden.daemon.control.assembly import build_daemon
from lakewarden.daemon.control.main_loop import Until
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.telemetry.log import configure
from lakewarden.daemon.workers.pool import WorkerPool, worker_config, worker_launcher
from support.processes import fake_worker

__all__ = ["FakeWorkerServices"]


class FakeWorkerServices(Services):
    """Services whose workers run the fake engine on delta-rs."""

    def worker_pool(
        self, count: int, *, on_failure: Callable[[], None] = lambda: None, logs: bool = True
    ) -> WorkerPool:
        launch = worker_launcher(
            config=partial(worker_config, self.settings),
            logs=self.settings.home / "logs" if logs else None,
            environment={
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "LAKEWARDEN_FAILPOINT": os.environ.get("WORKER_FAILPOINT", ""),
            },
            command=(sys.executable, os.environ.get("WORKER_PROGRAM", fake_worker.__file__)),
        )
        return WorkerPool(
            launch,
            count=count,
            prefix=f"worker-{os.getpid()}",
            on_failure=on_failure,
            recorded=self.recorded_run,
        )


def main() -> int:
    home, until, *pairs = sys.argv[1:]
    flags = dict(pair.split("=", 1) for pair in pairs)
    settings = load_settings(home=Path(home), flags={"http.port": "0", "log.format": "json", **flags})
    configure(level=settings.log_level, format=settings.log_format)
    if "HANGS_AT" in os.environ:
        failpoints.listener = _hang
    return build_daemon(FakeWorkerServices(settings)).run(Until(until))


def _hang(point: str) -> None:
    while point == os.environ["HANGS_AT"]:
        time.sleep(60)


if __name__ == "__main__":
    sys.exit(main())
