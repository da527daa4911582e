"""`lakewarden` as somebody else: `python as_user.py NAME ARGUMENTS...`. For tests: the product takes the real user.

`acting` does the same within this process.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lakewarden.daemon.cli.app import run

__all__ = ["acting"]


@contextmanager
def acting(name: str) -> Iterator[None]:
    """Whoever calls in the block is `name`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lakewarden.daemon.callers.real_user", lambda: name)
        yield


if __name__ == "__main__":
    with acting(sys.argv.pop(1)):
        run()
