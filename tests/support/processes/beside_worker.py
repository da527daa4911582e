"""A worker process without Spark. Right after the first restore it makes, somebody begins to write to a table
of the next wave: the folder that BESIDE names."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from deltalake import DeltaTable

from lakewarden.catalog.formats.port import Head
from support.fakes.engine import FakeEngine
from support.processes import fake_worker, writer_beside

_FIRST, _COUNT = 1_000, 6


class BesideEngine(FakeEngine):
    """The fake engine with a writer beside it."""

    writes = False

    def restore(self, location: str, *, requires: Head, to: int, apps: Sequence[str], run_id: str) -> int:
        version = super().restore(location, requires=requires, to=to, apps=apps, run_id=run_id)
        if not self.writes:
            self.writes = True
            place = os.environ["BESIDE"]
            before = DeltaTable(place).version()
            subprocess.Popen(
                [sys.executable, writer_beside.__file__, place, str(_FIRST), str(_COUNT)],
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # it lives longer than this worker and its process group
            )
            while DeltaTable(place).version() == before:
                time.sleep(0.02)
        return version


if __name__ == "__main__":
    sys.exit(fake_worker.main(BesideEngine))
