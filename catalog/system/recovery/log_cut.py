"""Cutting a damaged log off: the table ends before the first entry that cannot be read.

Tables that decide about other tables (`lakewarden.tables`, `lakewarden.rollbacks`) go back in time by that. They are
reconciled like a restored backup (catalog/system/recovery/restored_rows.py): the lost entry may have called a deletion
off. The reconciled end replaces the damaged entry in the last step: a kill leaves the damage or the whole cut.
"""

from datetime import datetime
from typing import Any, Final

from lakewarden.catalog.formats.delta.log_names import HINT, commit_path, entry_version
from lakewarden.catalog.storage.file_store import FileStore, open_store
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.handles import files_of
from lakewarden.catalog.system.port import ROLLBACKS, TABLES, SystemStore, SystemTable
from lakewarden.catalog.system.recovery.backup import copied_of, root_of
from lakewarden.catalog.system.recovery.backup_restore import staged, take_place
from lakewarden.catalog.system.recovery.set_aside import log_paths, move_aside, note_going_back

__all__ = ["cut_log", "said_of_cut"]

_DAMAGE: Final = b"{"


def cut_log(store: SystemStore, table: SystemTable[Any], version: int, *, now: datetime, note: Note) -> None:
    """End the log before `version`; what follows is moved aside. Deletions and rewinds by this table are called off."""
    files = files_of(store, table)
    copy: FileStore | None = None
    if table in (TABLES, ROLLBACKS):
        origin = open_store(root_of(store), store.storage())
        sound = tuple(copied_of(table, files, version - 1))
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
