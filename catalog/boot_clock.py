"""The clock by which leases are judged in a process: it passes while the machine sleeps, too."""

import time

__all__ = ["seconds_since_boot"]


def seconds_since_boot() -> float:
    """Seconds that never go back. They go on while the machine is suspended, where the system counts that time."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)
