"""Keep a process small that sleeps most of its life and runs for months.

delta-rs has dozens of threads, and malloc an arena for each;
with pandas and numpy, 50 MB are gone before the first sweep.
"""

import ctypes
import sys

import pyarrow as pa

from lakewarden.daemon.process.spared_libraries import spare_unused_libraries

__all__ = ["keep_small"]

_M_ARENA_MAX = -8
_M_TRIM_THRESHOLD = -1
_KEEP_BYTES = 128 * 1024


def keep_small() -> None:
    """Tune this process's allocators. Call it before anything is read: an arena, once made, stays. Elsewhere
    than on glibc it does little."""
    spare_unused_libraries()
    pa.set_memory_pool(pa.system_memory_pool())
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # absent on musl
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_TRIM_THRESHOLD, _KEEP_BYTES)
