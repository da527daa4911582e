"""A worker process without Spark that takes its time around every change of a table,
so that a random kill meets it there."""

import random
import sys
import time
from collections.abc import Callable, Sequence

from lakewarden.catalog.formats.port import Head
from lakewarden.jobs.runs.port import FileChange, Partition
from support.fakes.engine import FakeEngine
from support.processes import fake_worker

LONGEST_PAUSE = 0.8


def dawdle() -> None:
    time.sleep(random.uniform(0, LONGEST_PAUSE))


class DawdlingEngine(FakeEngine):
    def convert(
        self,
        *,
        name: str | None,
        location: str,
        partitioned_by: Sequence[tuple[str, str]],
        statistics: bool,
        run_id: str,
        proceed: Callable[[], None] = lambda: None,
    ) -> int:
        dawdle()
        version = super().convert(
            name=name,
            location=location,
            partitioned_by=partitioned_by,
            statistics=statistics,
            run_id=run_id,
            proceed=proceed,
        )
        dawdle()
        return version

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
        dawdle()
        change = super().compact(
            location,
            requires=requires,
            partitions=partitions,
            target_bytes=target_bytes,
            run_id=run_id,
            beside_writers=beside_writers,
        )
        dawdle()
        return change

    def set_properties(
        self, location: str, *, requires: Head, properties: Sequence[tuple[str, str]], run_id: str
    ) -> int:
        dawdle()
        version = super().set_properties(location, requires=requires, properties=properties, run_id=run_id)
        dawdle()
        return version


if __name__ == "__main__":
    sys.exit(fake_worker.main(DawdlingEngine))
