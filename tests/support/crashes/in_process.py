"""A kill at a failpoint without a process to kill: what runs stops there and nothing of it goes on.

The work runs on objects of its own, as in a process of its own; the caller goes on with others. Unlike SIGKILL,
`finally` is run on the way out, so one test for each kind of process kills a real one (`support.processes`).
"""

from collections.abc import Callable
from typing import Any

import pytest

from lakewarden.catalog import failpoints
from support.crashes.killed import Killed

__all__ = ["amid", "killed_here"]


def killed_here(point: str, work: Callable[[], Any]) -> None:
    """Do the work until it reaches `point`, or `point:3` for the third time. It has to get there."""
    name, _, count = point.partition(":")
    left = int(count or 1)

    def listener(reached: str) -> None:
        nonlocal left
        if reached == name:
            left -= 1
        if left <= 0:  # the dead reach nothing else
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "listener", listener)
        with pytest.raises(Killed):
            work()


def amid(point: str, do: Callable[[], object], reached: list[str]) -> Callable[[str], None]:
    """A listener that does something when `point` is first reached; it counts in `reached` how often it was."""

    def listener(told: str) -> None:
        if told == point:
            reached.append(told)
            if len(reached) == 1:
                do()

    return listener
