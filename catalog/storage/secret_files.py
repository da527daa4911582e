"""Secrets that lie in files: read again whenever the file is another one, so that a new key needs no restart."""

import os
from typing import Final

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.storage.credentials import StorageOptions

__all__ = ["current", "known"]

_Stamp = tuple[int, int, int, int]
_seen: Final[dict[str, tuple[_Stamp, str]]] = {}
"""What each file said when it was read last. By its stamp as the link leads now: Kubernetes puts a link to a new
folder in place of the old one."""


def current(options: StorageOptions) -> dict[str, str]:
    """Options in the form the libraries take, with what files say now. Raises `UnavailableError` if one cannot be
    read."""
    return {**dict(options.pairs), **{name: _content(path, name) for name, path in options.files}}


def known(options: StorageOptions) -> dict[str, str]:
    """The same, without what lies in files while one of them cannot be read."""
    try:
        return current(options)
    except UnavailableError:
        return dict(options.pairs)


def _content(path: str, option: str) -> str:
    """What a file says now, without the line end that editors leave. No sentence holds what was read."""
    try:
        stamp = _stamp(path)
        known = _seen.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        with open(path, encoding="utf-8") as file:
            said = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise _unreadable(path, str(why), option) from error
    if not said:
        raise _unreadable(path, "it is empty", option)
    _seen[path] = (stamp, said)  # taken before the reading: what changes meanwhile is read once more
    return said


def _stamp(path: str) -> _Stamp:
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _unreadable(path: str, why: str, option: str) -> UnavailableError:
    return UnavailableError(
        f"The file {path} cannot be read: {why}.",
        hint=f"The option {option} names it: check that, and its permissions.",
    )
