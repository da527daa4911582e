"""A repair keeps removed files in folders `_broken-TIME` of the table, with a note if the log went back in time.
`_begun-TIME` says when a log began that `init` has made."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.log_names import FOLDER, entry_version
from lakewarden.catalog.storage.file_store import FileStore

__all__ = [
    "keep_aside",
    "log_paths",
    "move_aside",
    "note_beginning",
    "note_going_back",
    "went_back_since",
]

_FOLDER: Final = "_broken-"
_BEGUN: Final = "_begun-"
_TIME: Final = "%Y%m%dT%H%M%S"
_WENT_BACK: Final = "went-back"
_ATTEMPTS: Final = 1_000


def note_going_back(files: FileStore, now: datetime) -> None:
    """To be called before a log loses its newest entries:
    what was backed up until now may be another history than what follows."""
    files.write(f"{_folder(now)}/{_WENT_BACK}", b"")


def note_beginning(files: FileStore, now: datetime) -> None:
    """To be called before a log is begun where, for all that can be seen, there never was one:
    what was backed up until now is of a table that was lost there."""
    files.write(f"{_BEGUN}{now:{_TIME}}", b"")


def went_back_since(files: FileStore, at: datetime) -> bool:
    """Whether a repair has cut the end of this log at that time (UTC, to the second) or later, or the log began only
    after that time."""
    entries = tuple(files.list(""))
    folders = (entry.path for entry in entries if entry.is_dir and entry.path.startswith(_FOLDER))
    begun = (entry.path for entry in entries if entry.path.startswith(_BEGUN))
    return any(path > f"{_BEGUN}{at:{_TIME}}" for path in begun) or any(
        path >= _folder(at) and files.exists(f"{path}/{_WENT_BACK}") for path in folders
    )


def move_aside(files: FileStore, paths: Sequence[str], now: datetime, *, newest_first: bool = False) -> None:
    """Move files of a table into its folder `_broken-...`. A log goes oldest entry first: what is left of it cannot be
    opened, or only at its newest version. `newest_first` is for cutting a log's end off."""
    for path in sorted(paths, key=_age, reverse=newest_first):
        keep_aside(files, path, files.read(path), now)
        files.delete(path)
        reach("system.aside")


def keep_aside(files: FileStore, path: str, content: bytes, now: datetime) -> None:
    """Keep a file that is about to be replaced; never over something else that an earlier attempt has put there."""
    folder, name = _folder(now), path.rpartition("/")[2]
    places = (f"{folder}/{name}", *(f"{folder}/{name}.{number}" for number in range(2, _ATTEMPTS)))
    files.write(next(one for one in places if not files.exists(one) or files.read(one) == content), content)


def _folder(at: datetime) -> str:
    return f"{_FOLDER}{at:{_TIME}}"


def log_paths(files: FileStore) -> list[str]:
    """The files in the log folder of a table."""
    return [entry.path for entry in files.list(FOLDER) if not entry.is_dir]


def _age(path: str) -> tuple[int, bool, str]:
    """Log entries by version, a checkpoint before the commit of its version; pointers and the like first."""
    version = entry_version(path)
    return (-1 if version is None else version, ".checkpoint" not in path, path)
