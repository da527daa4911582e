"""A worker process without Spark. Right after the first restore it makes, somebody begins to write to a table of the next
wave: the folder that BESIDE names."""

import os
import subprocess
import sys
from collections.abc import Sequence

from lakewarden.jobs.engine.fake import FakeEngine
from support import fake_worker, writer_beside

_FIRST, _COUNT = 1_000, 6


class BesideEngine(FakeEngine):
    """The fake engine with a writer beside it."""

    writes = False

    def restore(self, location: str, *, requires: int, to: int, apps: Sequence[str], run_id: str) -> int:
        version = super().restore(location, requires=requires, to=to, apps=apps, run_id=run_id)
        if not self.writes:
            self.writes = True
            writer = subprocess.Popen(
                [sys.executable, writer_beside.__file__, os.environ["BESIDE"], str(_FIRST), str(_COUNT)],
                stdout=subprocess.PIPE,
            )
            assert writer.stdout is not None
            writer.stdout.readline()  # its first commit is there
        return version


if __name__ == "__main__":
    sys.exit(fake_worker.main(BesideEngine))
