"""A worker process whose engine cannot set properties: what a daemon makes of runs that fail."""

import sys
from collections.abc import Sequence

from lakewarden.catalog.errors import ExecutionError
from lakewarden.catalog.formats.port import Head
from support.fakes.engine import FakeEngine
from support.processes import fake_worker


class FailingEngine(FakeEngine):
    def set_properties(
        self, location: str, *, requires: Head, properties: Sequence[tuple[str, str]], run_id: str
    ) -> int:
        raise ExecutionError("This engine fails, as the test wants it.")


if __name__ == "__main__":
    sys.exit(fake_worker.main(FailingEngine))
