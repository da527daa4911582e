"""Python's cycle collector, put off while very many small values are made."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Let the cycle collector rest. For work that makes hundreds of thousands of values without cycles: it would walk
    all of them again and again, for a third of the time, and find nothing."""
    resting = not gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not resting:
            gc.enable()
