"""The system tables on any storage, written by delta-rs: the SystemStore of production.

No lock and no database: every write is a compare-and-set on the version its decision was read from. Whoever loses reads
again and decides again, so several processes that insert the same new key end with one row.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

from deltalake.transaction import AddAction

from lakewarden.catalog.errors import ConflictError, FencedError, NotFoundError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.log_names import commit_path
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.model.system_head import DIGITS
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.codec import codec, keys_of
from lakewarden.catalog.system.commits import Note, admit, commit, leader_token, removal
from lakewarden.catalog.system.data_files import ColumnCache, DataFiles
from lakewarden.catalog.system.handles import Handles, answering
from lakewarden.catalog.system.migrate import create_table, end_upgrade, upgrade
from lakewarden.catalog.system.patch import Patch, Rewrite, patch, rewrites
from lakewarden.catalog.system.port import (
    SYSTEM_TABLES,
    TABLES,
    Committed,
    Fence,
    R,
    Rows,
    SystemTable,
    SystemTableName,
)
from lakewarden.catalog.system.schema import statistics_columns
from lakewarden.catalog.system.snapshot import Snapshot
from lakewarden.catalog.system.view import DeltaRows, key_of, sortable

__all__ = ["DeltaSystemStore"]

T = TypeVar("T")

_ATTEMPTS = 60
_FIRST_PAUSE_SECONDS = 0.002
_LONGEST_PAUSE_SECONDS = 0.25
_PARALLEL_FROM = 4
_WRITERS = 4


class DeltaSystemStore:
    """The seven tables below one canonical `location`. Safe with many threads and many processes.

    `actor` is written into every commit (`lakewarden.actor`).
    """

    def __init__(self, location: str, options: StorageOptions, *, actor: str) -> None:
        self._options = options
        self._actor = actor
        self._handles = Handles(location, options)
        self._cache = ColumnCache()
        self._viewed: dict[SystemTableName, Snapshot] = {}

    def create(self, rows: Iterable[TableRow]) -> None:
        """Create missing tables, upgrade older ones, then add the missing ones of `rows`."""
        tables, *others = SYSTEM_TABLES
        with suppress(NotFoundError):
            self._upgrade(tables, others_follow=True)
            reach("system.upgrade.begun")
        ids = dict(_each(others, self._create))
        ids[self.location(tables)] = self._create(tables)[1]  # last: a store exists once it has its row 0
        self._unless_changed(
            tables, partial(end_upgrade, tables, self.location(tables), self._options, self._init)
        )
        first = [
            replace(row, format_ids=(ids[row.location],)) if row.location in ids else row for row in rows
        ]
        self.edit(
            TABLES, lambda held: [row for row in first if held.get(row.table_id) is None], because="init"
        )
        reach("system.created")

    def exists(self) -> bool:
        try:
            return self.rows(TABLES).highest("row") is not None
        except NotFoundError:
            return False

    def installation(self) -> str:
        with self._handles.head(TABLES) as (_, snapshot):
            return snapshot.format_id

    def require_current(self) -> None:
        with self._handles.head(TABLES) as (
            handle,
            snapshot,
        ):  # the first to be upgraded, and the last to be opened
            admit(handle, snapshot, TABLES.name, None)

    def location(self, table: SystemTable[Any]) -> str:
        return self._handles.location(table)

    def storage(self) -> StorageOptions:
        return self._options

    def rows(self, table: SystemTable[R], *, version: int | None = None) -> Rows[R]:
        if version is not None:
            return self._view(table, self._handles.at(table, version))
        with self._handles.head(table) as (_, snapshot):
            return self._view_of_head(table, snapshot)

    def edit(
        self,
        table: SystemTable[R],
        change: Callable[[Rows[R]], Iterable[R]],
        *,
        delete: Callable[[Rows[R]], Iterable[R]] | None = None,
        fence: Fence | None = None,
        because: str,
        run_id: str | None = None,
    ) -> Committed[R]:
        note = Note(actor=self._actor, because=because, run_id=run_id, fence=fence)

        def decide(view: DeltaRows[R]) -> Patch[R]:
            return patch(table, view, change(view), delete(view) if delete is not None else ())

        return self._commit_decided(table, decide, note)

    def append(
        self, table: SystemTable[R], rows: Iterable[R], *, fence: Fence | None = None, because: str
    ) -> int:
        wanted = {key_of(table, row): row for row in reversed(tuple(rows))}
        note = Note(actor=self._actor, because=because, fence=fence)

        def decide(view: DeltaRows[R]) -> Patch[R]:
            known = view.locate(wanted)
            return Patch(rows=tuple(row for key, row in wanted.items() if key not in known))

        return self._commit_decided(table, decide, note, merge=False).version

    def digest(self, table: SystemTable[Any], version: int) -> str | None:
        with answering(table.name):
            try:
                return sha256(self._handles.store(table).read(commit_path(version))).hexdigest()[:DIGITS]
            except FileNotFoundError:
                return None

    def added(self, table: SystemTable[R], version: int) -> tuple[R, ...]:
        if version == 0:
            return ()
        before, after = (self._handles.at(table, one) for one in (version - 1, version))
        fresh, gone = set(after.pieces) - set(before.pieces), set(before.pieces) - set(after.pieces)
        files = self._files(table)
        rows = codec(table).decode(files.read_all(fresh))
        moved = set(keys_of(files.read_all(gone, table.key), table.key))
        added = [row for row in rows if key_of(table, row) not in moved]
        return tuple(sorted(added, key=lambda row: sortable(key_of(table, row))))

    def raise_fence(self, incarnation: str, *, at_least: int) -> Fence:
        """Become leader: unique because the first table accepts each token once; a loser takes a higher one.

        Raises `FencedError` if an even newer leader overtakes while the other tables are fenced, `PreconditionError`
        before it fences any if one waits for an upgrade: who may not write there leads nobody.
        """
        first, *others = SYSTEM_TABLES
        for _ in _attempts():
            token = 1 + max(at_least, *(self._token(table) for table in SYSTEM_TABLES))
            fence = Fence(token=token, incarnation=incarnation)
            if self.fence_off(first, fence):
                break
        else:
            raise ConflictError("No leader could be fenced in: too many daemons start at once.")
        if not all(_each(others, lambda table: self.fence_off(table, fence))):
            raise FencedError("A newer leader has overtaken this one while it took over.")
        return fence

    def _create(self, table: SystemTable[Any]) -> tuple[str, str]:
        """Create or upgrade one table; its location and Delta id."""
        location = self.location(table)
        create_table(table, location, self._options, self._init)
        self._upgrade(table)
        reach(f"system.create.{table.name}")
        with self._handles.head(table) as (_, snapshot):
            return location, snapshot.format_id

    def _upgrade(self, table: SystemTable[Any], *, others_follow: bool = False) -> None:
        step = partial(upgrade, table, self.location(table), self._options, self._init)
        self._unless_changed(table, partial(step, others_follow=others_follow))

    def _unless_changed(self, table: SystemTable[Any], step: Callable[[], object]) -> None:
        """Take a step of an upgrade; again where a process of before, which is still at work, has just committed."""
        for _ in _attempts():
            try:
                step()
            except ConflictError:
                continue
            return
        raise ConflictError(f"lakewarden.{table.name} is being changed too often by others.")

    @property
    def _init(self) -> Note:
        return Note(actor=self._actor, because="init")

    def _commit_decided(
        self,
        table: SystemTable[R],
        decide: Callable[[DeltaRows[R]], Patch[R]],
        note: Note,
        *,
        merge: bool = True,
    ) -> Committed[R]:
        for _ in _attempts():
            with self._handles.head(table) as (handle, snapshot):
                admit(handle, snapshot, table.name, note.fence)
                view = self._view_of_head(table, snapshot)
                change = decide(view)
                if not change:
                    return Committed(version=snapshot.version, rows=())
                reach("system.decided")
                files = self._files(table)
                made = rewrites(table, snapshot, view, change, merge=merge)
                version = self._commit(handle, table, snapshot, files, made, note)
                if version is not None:
                    return Committed(version=version, rows=change.rows)
        raise ConflictError(f"lakewarden.{table.name} is being changed too often by others.")

    def _commit(
        self,
        handle: Any,
        table: SystemTable[Any],
        snapshot: Snapshot,
        files: DataFiles,
        made: Sequence[Rewrite[Any]],
        note: Note,
    ) -> int | None:
        """The version made, None if somebody else was faster."""
        with answering(table.name):
            added = _written(made, files)
        removed = [removal(piece) for one in made for piece in one.removed]
        try:
            return commit(handle, snapshot, self._handles.store(table), table.name, [*removed, *added], note)
        except ConflictError:
            for action in added:
                files.discard(action.path)
            return None

    def fence_off(self, table: SystemTable[Any], fence: Fence) -> bool:
        """Commit the token to one table; False if the table has it, or a higher one, already."""
        note = Note(actor=self._actor, because="a new leader", fence=fence)
        for _ in _attempts():
            with self._handles.head(table) as (handle, snapshot):
                if leader_token(handle, table.name) >= fence.token:
                    return False
                if self._commit(handle, table, snapshot, self._files(table), (), note) is not None:
                    reach(f"system.fence.{table.name}")
                    return True
        raise ConflictError(f"lakewarden.{table.name} is being changed too often by others.")

    def _token(self, table: SystemTable[Any]) -> int:
        with self._handles.head(table) as (handle, snapshot):
            admit(handle, snapshot, table.name, None)
            return leader_token(handle, table.name)

    def _view_of_head(self, table: SystemTable[R], snapshot: Snapshot) -> DeltaRows[R]:
        """A view of the newest version; what was read of files that it replaced is forgotten."""
        if self._viewed.get(table.name) is not snapshot:
            self._viewed[table.name] = snapshot
            self._files(table).retain(snapshot.pieces)
        return self._view(table, snapshot)

    def _view(self, table: SystemTable[R], snapshot: Snapshot) -> DeltaRows[R]:
        return DeltaRows(table, snapshot, self._files(table))

    def _files(self, table: SystemTable[Any]) -> DataFiles:
        return DataFiles(
            self._handles.store(table), codec(table).schema, statistics_columns(table), self._cache
        )


def _each(tables: Iterable[SystemTable[Any]], do: Callable[[SystemTable[Any]], T]) -> list[T]:
    """Do something to each table, all at once: on HDFS a single commit waits half a second for its block."""
    with ThreadPoolExecutor(len(SYSTEM_TABLES)) as pool:
        return list(pool.map(do, tables))


def _written(made: Sequence[Rewrite[Any]], files: DataFiles) -> list[AddAction]:
    """Write the new files, several at a time: encoding Parquet and waiting for storage both leave Python's lock."""

    def write(one: Rewrite[Any]) -> AddAction | None:
        contents = one.contents(files)
        return files.write(contents, one.bucket) if len(contents) else None

    if len(made) < _PARALLEL_FROM:
        added = [write(one) for one in made]
    else:
        with ThreadPoolExecutor(_WRITERS) as pool:
            added = list(pool.map(write, made))
    return [action for action in added if action is not None]


def _attempts() -> Iterator[int]:
    """Numbers of attempts with a growing, jittered pause between them."""
    for attempt in range(_ATTEMPTS):
        yield attempt
        time.sleep(random.uniform(0, min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**attempt)))
