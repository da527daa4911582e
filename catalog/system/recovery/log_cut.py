"""Cutting a damaged log off: the table ends before the first entry that cannot be read.

What decides about other tables (`lakewarden.tables`, `lakewarden.rollbacks`) goes back in time by that, and
is settled as a backup that is put back is (catalog/system/recovery/restored_rows.py): the last entry may have
been the one that called a deletion off. The settled end takes the place of the damaged entry as the very last
step, so that a kill leaves the damage or all of it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from lakewarden.catalog.formats.delta.log_names import HINT, commit_path, entry_version, whole_version
from lakewarden.catalog.storage.file_store import FileStore, open_store
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.port import ROLLBACKS, TABLES, SystemStore, SystemTable
from lakewarden.catalog.system.recovery.backup import Copied
from lakewarden.catalog.system.recovery.backup_restore import staged, take_place
from lakewarden.catalog.system.recovery.set_aside import log_paths, move_aside, note_going_back
from lakewarden.catalog.system.schema import BUCKET

__all__ = ["cut_log", "said_of_cut"]

_DAMAGE: Final = b"{"


def cut_log(store: SystemStore, table: SystemTable[Any], version: int, *, now: datetime, note: Note) -> None:
    """End the log before `version`; what follows is moved aside. What deletes or rewinds by this table is settled."""
    files = open_store(store.location(table), store.storage())
    copy: FileStore | None = None
    if table in (TABLES, ROLLBACKS):
        origin = open_store(store.location(table).removesuffix(f"/{table.name}"), store.storage())
        sound = tuple(_sound(table, files, version))
        copy = staged(store, table, sound, origin, because=said_of_cut(table, version), now=now, note=note)
    note_going_back(files, now)
    damaged = commit_path(version)
    if copy is not None and not files.exists(damaged):
        files.write(damaged, _DAMAGE)  # a gap: until all is in place, the log has to be known to be damaged
    paths = log_paths(files)
    late = [path for path in paths if (number := entry_version(path)) is not None and number >= version]
    move_aside(files, [one for one in paths if one == HINT], now)
    # Newest first: until the damaged entry itself is gone, the log is known to be damaged.
    move_aside(files, [one for one in late if copy is None or one != damaged], now, newest_first=True)
    if copy is not None:
        take_place(files, copy, now)


def said_of_cut(table: SystemTable[Any], version: int) -> str:
    """How rows that go back in time by a cut before `version` are marked."""
    return f"taken back to version {version - 1} of lakewarden.{table.name}"


def _sound(table: SystemTable[Any], files: FileStore, version: int) -> Iterator[Copied]:
    """The log before a version, and every data file that is there."""
    for entry in files.list("", recursive=True):
        number = whole_version(entry.path)
        wanted = entry.path.startswith(f"{BUCKET}=") if number is None else number < version
        if wanted and not entry.is_dir:
            yield Copied(path=f"{table.name}/{entry.path}", size_bytes=entry.size_bytes)
