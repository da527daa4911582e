"""Files and folders that are their owner's alone, whatever the umask: results, what runs said, who may connect."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["private_folder", "private_opener", "tighten"]

_FOLDER: Final = 0o700
_FILE: Final = 0o600
_OTHERS: Final = 0o077


def private_folder(folder: Path) -> None:
    """Make a folder, and those above it, which are as the umask says. One that is there is tightened."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=_FOLDER)
    tighten(folder)


def private_opener(path: str, flags: int) -> int:
    """For `open`: a file that it makes, or finds, is its owner's alone."""
    descriptor = os.open(path, flags, _FILE)
    _take(descriptor, os.fstat(descriptor))
    return descriptor


def tighten(path: Path) -> None:
    """Take from others what they may do with a file or folder. What is not there, is not ours to change, or is a
    folder for everybody (`/tmp`), stays as it is."""
    with suppress(FileNotFoundError):
        _take(path, path.stat())


def _take(of: int | Path, status: os.stat_result) -> None:
    if status.st_mode & _OTHERS and not status.st_mode & stat.S_ISVTX:
        with suppress(OSError):  # somebody else's, or on a disk that is read only
            os.chmod(of, stat.S_IMODE(status.st_mode) & ~_OTHERS)
