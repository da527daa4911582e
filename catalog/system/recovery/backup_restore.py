"""Putting whole system tables back from a backup, so that a kill at any step leaves either the damage or the
whole table.

The copy is made beside the store, from files that were checked before, reconciled there
(catalog/system/recovery/restored_rows.py) and given a leader's token above any that a frozen daemon could still
hold. Only then it takes the damaged table's place: data files first, the log last and from its newest entry
down, so that the table cannot be opened before it is complete. What lay there is moved into `_broken-...`,
the log's oldest entries first, so that it never looks like a sound older version.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import orjson

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.log_names import FOLDER, whole_version
from lakewarden.catalog.storage.file_store import FileStore, StorageOptions, open_store
from lakewarden.catalog.system.commits import Note, leader_token
from lakewarden.catalog.system.handles import files_of, open_at
from lakewarden.catalog.system.migrate import upgrade
from lakewarden.catalog.system.port import ROLLBACKS, TABLES, Fence, SystemStore, SystemTable
from lakewarden.catalog.system.recovery.backup import BackupSource, Copied, data_first, root_of
from lakewarden.catalog.system.recovery.restored_rows import (
    everything_paused,
    restored_rollbacks,
    restored_tables,
)
from lakewarden.catalog.system.recovery.set_aside import keep_aside, log_paths, move_aside, note_going_back
from lakewarden.catalog.system.schema import LEADER
from lakewarden.catalog.system.store import DeltaSystemStore

__all__ = ["pause_everything", "put_back", "put_files", "staged", "take_as_it_is", "take_place"]


def put_back(
    store: SystemStore,
    table: SystemTable[Any],
    files: Sequence[Copied],
    source: BackupSource,
    *,
    now: datetime,
    note: Note,
) -> None:
    """Put a whole table back as the backup has it. The files were checked before (`BackupSource.check`)."""
    home = files_of(store, table)
    origin = source.store()
    copy = staged(store, table, files, origin, because=source.said, now=now, note=note)
    note_going_back(home, now)
    move_aside(home, log_paths(home), now)
    reach("system.restore.aside")
    take_place(home, copy, now)


def take_place(home: FileStore, copy: FileStore, now: datetime) -> None:
    """Bring a staged copy into a table's place: data first, then the log from its newest entry down.
    The copy is gone then."""
    for path in sorted(_paths(copy), key=_in_order):
        if whole_version(path) is None and path.startswith(FOLDER):
            continue  # a pointer to the newest checkpoint is a hint, nothing more
        _install(home, path, copy.read(path), now)
        reach("system.restore.file")
    _clear(copy)


def put_files(
    store: SystemStore,
    table: SystemTable[Any],
    files: Sequence[Copied],
    source: BackupSource,
    *,
    now: datetime,
) -> None:
    """Copy single files back: data first, then the log in order. What lies in their place is kept aside."""
    origin = source.store()
    home = files_of(store, table)
    for file in data_first(files):
        _install(home, file.in_table, origin.read(file.path), now)
        reach("system.restore.single")


def staged(
    store: SystemStore,
    table: SystemTable[Any],
    files: Sequence[Copied],
    origin: FileStore,
    *,
    because: str,
    now: datetime,
    note: Note,
) -> FileStore:
    """The table, copied, brought to today's schema, reconciled and fenced, in a folder beside the store's tables."""
    root = f"{root_of(store)}/_restoring"
    copy = open_store(f"{root}/{table.name}", store.storage())
    _clear(copy)  # what a killed attempt had copied
    for file in data_first(files):
        copy.write(file.in_table, origin.read(file.path))
    upgrade(table, copy.root, store.storage(), note)
    home = files_of(store, table)
    _reconcile(table, root, store.storage(), above=_tokens(home), because=because, now=now, note=note)
    reach("system.restore.staged")
    return copy


def take_as_it_is(
    store: SystemStore, table: SystemTable[Any], *, because: str, now: datetime, note: Note
) -> None:
    """Go on with an older table that somebody has put in its place. Interrupted, it is simply done again."""
    note_going_back(files_of(store, table), now)
    _reconcile(table, root_of(store), store.storage(), above=(), because=because, now=now, note=note)


def _reconcile(
    table: SystemTable[Any],
    root: str,
    options: StorageOptions,
    *,
    above: Iterable[int],
    because: str,
    now: datetime,
    note: Note,
) -> None:
    """Nothing in a table of the past acts by itself, and no leader of before commits to it: its token is above those of
    `above` and of its own."""
    store = DeltaSystemStore(root, options, actor=note.actor)
    if table is TABLES:
        restored = restored_tables(store.rows(TABLES).all(), because=because, now=now, actor=note.actor)
        store.edit(TABLES, lambda _: restored.changed, delete=lambda _: restored.gone, because=because)
    elif table is ROLLBACKS:
        rollbacks = restored_rollbacks(store.rows(ROLLBACKS).all(), because=because, now=now)
        store.edit(ROLLBACKS, lambda _: rollbacks, because=because)
    own = leader_token(open_at(store.location(table), options, name=table.name), table.name)
    # Leaders' tokens count up from 1: a time in seconds is above all that were ever given, known or forgotten.
    token = max(max((*above, own), default=0) + 1, int(now.timestamp()))
    if not store.fence_off(table, Fence(token=token, incarnation=f"restore-{uuid.uuid4().hex}")):
        raise ConflictError(f"lakewarden.{table.name} was changed while it was put back.")


def pause_everything(store: SystemStore, *, because: str, now: datetime, actor: str) -> None:
    """Pause all work in a store whose `lakewarden.tables` is sound, before another of its tables goes back in time."""
    store.edit(
        TABLES,
        lambda rows: everything_paused(rows.all(), because=because, now=now, actor=actor),
        because=because,
    )


def _tokens(files: FileStore) -> Iterator[int]:
    """Leaders' tokens that the readable lines of a damaged log speak of."""
    for path in log_paths(files):
        if not path.endswith(".json"):
            continue
        for line in files.read(path).splitlines():
            try:
                action = orjson.loads(line)
            except ValueError:
                continue
            entry = action.get("txn") if isinstance(action, dict) else None
            if (
                isinstance(entry, dict)
                and entry.get("appId") == LEADER
                and isinstance(entry.get("version"), int)
            ):
                yield entry["version"]


def _install(home: FileStore, path: str, content: bytes, now: datetime) -> None:
    if home.exists(path):
        there = home.read(path)
        if sha256(there).digest() == sha256(content).digest():
            return
        keep_aside(home, path, there, now)
    home.write(path, content)


def _paths(files: FileStore) -> list[str]:
    return [entry.path for entry in files.list("", recursive=True) if not entry.is_dir]


def _clear(files: FileStore) -> None:
    """Delete a copy of our own, its log first."""
    for path in sorted(_paths(files), key=lambda one: (not one.startswith(FOLDER), one)):
        files.delete(path)


def _in_order(path: str) -> tuple[bool, int, bool, str]:
    """Data files, then the log from its newest version down, each checkpoint after the commit of its version."""
    number = whole_version(path)
    return (number is not None, -(number or 0), ".checkpoint" in path, path)
