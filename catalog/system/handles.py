"""Warm delta-rs handles: opening a table costs milliseconds, refreshing one well under a millisecond.

A handle stands at one version and is used by one thread at a time, because a commit made from it is judged against the
version it stands at.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
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


class Handles:
    """Idle handles and the last snapshot per system table of one store. Thread-safe."""

    def __init__(self, location: str, options: StorageOptions) -> None:
        self._location = location
        self._options = options
        self._idle: dict[SystemTableName, list[DeltaTable]] = {}
        self._told = current(options)
        self._snapshots: dict[SystemTableName, Snapshot] = {}
        self._stores: dict[SystemTableName, FileStore] = {}
        self._lock = threading.Lock()

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
        handle = self._refreshed(table, idle)
        snapshot = self._snapshot(table, handle)
        yield handle, snapshot
        # Reached only without an exception: a handle that something went wrong with is not used again.
        with self._lock:
            idle.setdefault(table.name, []).append(handle)

    def at(self, table: SystemTable[Any], version: int) -> Snapshot:
        """The snapshot of an older version. Raises `NotFoundError` if the log does not reach back to it."""
        with self._lock:
            held = self._snapshots.get(table.name)
        if held is not None and held.version == version:
            return held
        handle = open_at(self.location(table), self._options, name=table.name, version=version)
        return take_snapshot(handle, table.name)

    def _idle_now(self) -> dict[SystemTableName, list[DeltaTable]]:
        """The idle handles; those that were opened with credentials that have been rotated since are let go."""
        told = current(self._options)
        with self._lock:
            if told != self._told:
                self._idle, self._told = {}, told
            return self._idle

    def _refreshed(
        self, table: SystemTable[Any], idle: dict[SystemTableName, list[DeltaTable]]
    ) -> DeltaTable:
        with self._lock:
            waiting = idle.get(table.name)
            handle = waiting.pop() if waiting else None
        if handle is None:
            return open_at(self.location(table), self._options, name=table.name)
        store = self.store(table)
        if not store.exists(commit_path(handle.version())):
            # Removed, or put back from a backup, under our feet: what the handle knows is of no use.
            return open_at(self.location(table), self._options, name=table.name)
        if store.exists(commit_path(handle.version() + 1)):
            # Only then: delta-rs would list the whole log to see that it is at head.
            with answering(table.name):
                handle.update_incremental()
        return handle

    def _snapshot(self, table: SystemTable[Any], handle: DeltaTable) -> Snapshot:
        with self._lock:
            held = self._snapshots.get(table.name)
        if (
            held is not None
            and held.version == handle.version()
            and held.format_id == str(handle.metadata().id)
        ):
            return held
        with answering(table.name):
            fresh = take_snapshot(handle, table.name)
        with self._lock:
            self._snapshots[table.name] = fresh
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
