"""Files that can be read to their end: a pipe, a socket or a device may never have one."""

import os
from errno import EISDIR
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from lakewarden.catalog.errors import UnreadableError

__all__ = ["opened", "whole"]


def opened(place: Path) -> int:
    """A descriptor to read a file by. Raises `UnreadableError` for what is no file, `OSError`."""
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if S_ISDIR(mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(place))
    raise UnreadableError(f"{place} is no file: it is a pipe, a socket or a device.", hint="Remove it.")


def whole(place: Path) -> bytes:
    """The content of a file. Raises like `opened`, also for what calls itself a file and would have its reader wait."""
    with open(opened(place), "rb") as file:
        data: bytes | None = file.read()
    if data is None:
        raise UnreadableError(f"{place} is no file: it is a device.", hint="Remove it.")
    return data
