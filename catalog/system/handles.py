"""Warm delta-rs handles: opening a table costs milliseconds, refreshing one well under a millisecond.

A handle stands at one version and is used by one thread at a time, because a commit made from it is judged against the
version it stands at. A table that was put back from a backup goes on with numbers that it had before: so what is known
counts only as long as the commit file of its version is the one that was there then.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, TableNotFoundError

from lakewarden.catalog.errors import (
    ConflictError,
    LakewardenError,
    NotFoundError,
    UnavailableError,
    UnreadableError,
)
from lakewarden.catalog.formats.delta.log_names import FOLDER, commit_path, whole_version
from lakewarden.catalog.storage.file_store import FileStore, StorageOptions, open_store
from lakewarden.catalog.storage.secret_files import current
from lakewarden.catalog.storage.troubles import trouble_at
from lakewarden.catalog.system.port import SystemStore, SystemTable, SystemTableName
from lakewarden.catalog.system.snapshot import Snapshot, take_snapshot

__all__ = ["Handles", "answering", "files_of", "has_log", "no_version", "open_at", "opened"]


_CommitFile = tuple[int, datetime]
"""Size in bytes and time of the file of a commit."""


@dataclass(frozen=True, slots=True)
class _Warm:
    """A handle that is at a version."""

    handle: DeltaTable
    version: int
    commit: _CommitFile | None
    """Of that version, right after the handle came to it."""


class Handles:
    """Idle handles and the last snapshot per system table of one store. Thread-safe."""

    def __init__(self, location: str, options: StorageOptions) -> None:
        self._location = location
        self._options = options
        self._idle: dict[SystemTableName, list[_Warm]] = {}
        self._told = current(options)
        self._snapshots: dict[SystemTableName, tuple[Snapshot, _CommitFile | None]] = {}
        self._stores: dict[SystemTableName, FileStore] = {}
        self._lock = threading.Lock()
        self._generation = 0

    def location(self, table: SystemTable[Any]) -> str:
        """The canonical location of a table."""
        return f"{self._location}/{table.name}"

    def store(self, table: SystemTable[Any]) -> FileStore:
        """The files of a table."""
        with self._lock:
            if table.name not in self._stores:
                self._stores[table.name] = open_store(self.location(table), self._options)
            return self._stores[table.name]

    @contextmanager
    def head(self, table: SystemTable[Any]) -> Iterator[tuple[DeltaTable, Snapshot]]:
        """A handle at the head version, for this caller alone, and its snapshot.

        Raises `NotFoundError` if the table is not there, `UnavailableError`, `UnreadableError`, `OutdatedError`.
        """
        idle = self._idle_now()
        warm = self._refreshed(table, idle)
        snapshot = self._snapshot(table, warm)
        yield warm.handle, snapshot
        # Reached only without an exception: a handle that something went wrong with is not used again.
        if warm.handle.version() != warm.version:
            warm = self._warm(table, warm.handle)
        if warm.commit is not None:
            with self._lock:
                idle.setdefault(table.name, []).append(warm)

    def at(self, table: SystemTable[Any], version: int) -> Snapshot:
        """The snapshot of an older version. Raises `NotFoundError` if the log does not reach back to it."""
        with self._lock:
            held = self._snapshots.get(table.name)
        if (
            held is not None
            and held[0].version == version
            and held[1] == self._commit(table, version) is not None
        ):
            return held[0]
        handle = open_at(self.location(table), self._options, name=table.name, version=version)
        return take_snapshot(handle, table.name)

    def _idle_now(self) -> dict[SystemTableName, list[_Warm]]:
        """The idle handles; those that were opened with credentials that have been rotated since are let go."""
        told = current(self._options)
        with self._lock:
            if told != self._told:
                self._idle, self._told = {}, told
            return self._idle

    def _refreshed(self, table: SystemTable[Any], idle: dict[SystemTableName, list[_Warm]]) -> _Warm:
        with self._lock:
            waiting = idle.get(table.name)
            warm = waiting.pop() if waiting else None
        there = None if warm is None else self._commit(table, warm.version)
        if warm is None or there != warm.commit:
            fresh = self._warm(table, open_at(self.location(table), self._options, name=table.name))
            if warm is not None and (there is not None or fresh.version < warm.version):
                self._forget()  # put back from a backup under our feet; else its log was just cleaned
            return fresh
        if not self.store(table).exists(commit_path(warm.version + 1)):
            return warm  # without asking delta-rs, which would list the whole log to see it
        with answering(table.name):
            warm.handle.update_incremental()
        return self._warm(table, warm.handle)

    def _warm(self, table: SystemTable[Any], handle: DeltaTable) -> _Warm:
        return _Warm(handle, handle.version(), self._commit(table, handle.version()))

    def _commit(self, table: SystemTable[Any], version: int) -> _CommitFile | None:
        try:
            entry = self.store(table).stat(commit_path(version))
        except FileNotFoundError:
            return None
        return entry.size_bytes, entry.modified_at

    def _forget(self) -> None:
        with self._lock:
            self._idle.clear()
            self._snapshots.clear()
            self._generation += 1

    def _snapshot(self, table: SystemTable[Any], warm: _Warm) -> Snapshot:
        with self._lock:
            held = self._snapshots.get(table.name)
        if held is not None and held[0].version == warm.version and held[1] == warm.commit is not None:
            return held[0]
        with answering(table.name):
            fresh = take_snapshot(warm.handle, table.name, generation=self._generation)
        with self._lock:
            self._snapshots[table.name] = fresh, warm.commit
        return fresh


def open_at(location: str, options: StorageOptions, *, name: str, version: int | None = None) -> DeltaTable:
    """Open a Delta table, at its head or at a version. Raises what `answering` raises."""
    try:
        with answering(name):
            return DeltaTable(location, version=version, storage_options=current(options) or None)
    except UnreadableError as error:
        if version is None:
            raise
        raise no_version(name, version) from error


def opened(store: SystemStore, table: SystemTable[Any]) -> tuple[DeltaTable, Snapshot]:
    """A table of a store at its head. Raises what `answering` raises."""
    handle = open_at(store.location(table), store.storage(), name=table.name)
    return handle, take_snapshot(handle, table.name)


def files_of(store: SystemStore, table: SystemTable[Any]) -> FileStore:
    """The files of a table of a store."""
    return open_store(store.location(table), store.storage())


def has_log(files: FileStore) -> bool:
    """Whether a commit or a checkpoint is there, of whatever version."""
    return any(whole_version(entry.path) is not None for entry in files.list(FOLDER))


def no_version(name: str, version: int) -> NotFoundError:
    """The error for a version that a system table does not have."""
    return NotFoundError(
        f"lakewarden.{name} has no version {version} any more, or not yet.",
        hint="Versions are kept for the audit window; `lakewarden tables history` shows them.",
    )


@contextmanager
def answering(name: str) -> Iterator[None]:
    """Turn the library's exceptions into our own, each one sentence."""
    try:
        yield
    except LakewardenError:
        raise
    except TableNotFoundError as error:
        raise NotFoundError(
            f"lakewarden.{name} does not exist.", hint="`lakewarden init` creates it."
        ) from error
    except CommitFailedError as error:
        raise ConflictError(f"Somebody else has just changed lakewarden.{name}.") from error
    except (DeltaProtocolError, DeltaError) as error:
        raise UnreadableError(
            f"The log of lakewarden.{name} cannot be read.",
            hint="`lakewarden system verify` names the damage, `lakewarden system repair` offers repairs.",
        ) from error
    except OSError as error:
        if error.strerror:
            raise UnavailableError(
                f"The storage of lakewarden.{name} does not answer: {error.strerror}.",
                hint="Check it, then retry.",
            ) from error
        raise trouble_at(f"lakewarden.{name}", error) from error
