"""A process that goes on with a rollback until it is done, or dies at a failpoint: `python rollback_process.py LAKE ENGINE`."""

import sys
from pathlib import Path

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.storage import StorageOptions
from lakewarden.jobs.engine.delta import DeltaEngine
from lakewarden.jobs.engine.session import start_session
from lakewarden.jobs.engine.settings import SparkSettings
from support.rollbacks import Lake


def main(folder: str, engine: str) -> int:
    """Go on; ENGINE is `fake` or `spark`."""
    lake = Lake(Path(folder))
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
