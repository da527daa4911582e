"""Named points at which a test can end this process: how "killed at every step" is shown on the real thing.

`LAKEWARDEN_FAILPOINT=run.executed` makes the process die by SIGKILL when it reaches that point,
`run.executed:3` at the third time. Unset, a point costs one dictionary look-up. A test in the same process may listen
instead, and freeze who comes by.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable

__all__ = ["listener", "reach"]

listener: Callable[[str], None] | None = None
"""Told of every point that is reached; None outside of tests."""
_reached: Counter[str] = Counter()


def reach(point: str) -> None:
    """Die here, as by `kill -9`, if the environment names this point."""
    if listener is not None:
        listener(point)
    wanted = os.environ.get("LAKEWARDEN_FAILPOINT")
    if not wanted:
        return
    name, _, count = wanted.partition(":")
    if name == point:
        _reached[point] += 1
        if _reached[point] >= int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)
