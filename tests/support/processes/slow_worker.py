"""A worker process whose compactions and restores take as long as a file `hold` lies in its working folder:
a run in flight."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lakewarden.catalog.formats.port import Head
from lakewarden.jobs.runs.port import FileChange, Partition
from support.fakes.engine import FakeEngine
from support.processes import fake_worker


def held() -> None:
    """Wait until the file is gone."""
    hold = Path(os.environ["HOLD"])
    hold.with_suffix(".begun").touch()
    while hold.exists():
        time.sleep(0.05)


class SlowEngine(FakeEngine):
    def compact(
        self,
        location: str,
        *,
        requires: Head,
        partitions: Sequence[Partition] | None,
        target_bytes: int,
        run_id: str,
        beside_writers: bool = False,
    ) -> FileChange:
        held()
        return super().compact(
            location,
            requires=requires,
            partitions=partitions,
            target_bytes=target_bytes,
            run_id=run_id,
            beside_writers=beside_writers,
        )

    def restore(self, location: str, *, requires: Head, to: int, apps: Sequence[str], run_id: str) -> int:
        held()
        return super().restore(location, requires=requires, to=to, apps=apps, run_id=run_id)


if __name__ == "__main__":
    sys.exit(fake_worker.main(SlowEngine))
