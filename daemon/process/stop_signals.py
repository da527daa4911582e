"""SIGTERM and SIGINT: the first one asks a process to stop in an orderly way, the second one ends it at once."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["asking"]


@contextmanager
def asking(ask: Callable[[], None]) -> Iterator[None]:
    """In the block (of the main thread) the first of these signals calls `ask`. Afterwards they are as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        asked = True
        ask()

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
