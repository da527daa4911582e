"""A worker process that freezes itself (SIGSTOP) among its deletions: `python frozen_vacuum.py HOME WHEN`.

It freezes right before it looks, for the WHEN-th time, at whether its claim still lasts: as late as a process
can be frozen and still not know. Whoever wakes it sees what it does then.
"""

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from lakewarden.jobs.worker.heartbeat import Heartbeat
from support.builders.estate import AHEAD, Estate


class SleepyPulse(Heartbeat):
    """The pulse of a run in a process that goes to sleep."""

    looks = 0
    when = 0

    def still_ours(self) -> None:
        type(self).looks += 1
        if self.looks == self.when:
            os.kill(os.getpid(), signal.SIGSTOP)
        super().still_ours()


def main(home: str, when: str) -> int:
    SleepyPulse.when = int(when)
    runner = sys.modules["lakewarden.jobs.worker.runner"]
    runner.Heartbeat = SleepyPulse  # type: ignore[attr-defined]  # the one thing that differs from a real worker
    estate = Estate(Path(home), said=None, ahead=AHEAD)
    done = estate.work(lease=timedelta(seconds=2), heartbeat=timedelta(milliseconds=200))
    assert done is not None
    print(f"{done.result.outcome}: {done.result.message}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
