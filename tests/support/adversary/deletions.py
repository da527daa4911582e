"""Every file that this process deletes or opens for writing, seen before it happens, by whichever code.

Python tells its audit hooks of `os.remove`, `os.rmdir`, `os.rename` and `open`. A hook cannot be taken away
again, so there is one, and it tells whoever listens.
"""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["listen"]

_hint_source: list[tuple[Callable[[Path], None], Callable[[Path], bool]]] = []
_hooked: list[bool] = []


def listen(deleted: Callable[[Path], None] | None, full: Callable[[Path], bool] = lambda path: False) -> None:
    """Tell `deleted` of every file before it is deleted, and let a write fail for want of space where `full` says so.
    None: no more."""
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_hook)
    _hint_source[:] = [] if deleted is None else [(deleted, full)]


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _hint_source or event not in ("os.remove", "open"):
        return
    deleted, full = _hint_source[0]
    if event == "os.remove":
        path, folder = arguments[0], arguments[1]
        if folder is not None and folder >= 0:
            path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), os.fsdecode(path))
        deleted(Path(os.fsdecode(path)))
        return
    path, flags = arguments[0], arguments[2]
    writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
    if writes and isinstance(path, str | bytes | os.PathLike) and full(Path(os.fsdecode(path))):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fsdecode(path))
