"""The system store in memory: what tests of everything above it use. It passes the contract suite of the real one."""

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Generic

import pyarrow as pa

from lakewarden.catalog.errors import FencedError, NotFoundError, UsageError
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import (
    SYSTEM_TABLES,
    TABLES,
    At,
    Committed,
    Fence,
    Key,
    R,
    Rows,
    SystemTable,
    SystemTableName,
)
from lakewarden.catalog.system.view import check_columns, key_of, sortable
from support.fakes.pure_changes import Unasked

__all__ = ["FakeRows", "FakeSystemStore"]


class FakeRows(Generic[R]):
    """The rows of one version, by key."""

    def __init__(self, table: SystemTable[R], version: int, rows: Mapping[Key, R]) -> None:
        self._table = table
        self._version = version
        self._rows = rows

    @property
    def version(self) -> int:
        return self._version

    @property
    def at(self) -> At:
        return 0, self._version

    def get(self, *key: str | int | None) -> R | None:
        if len(key) != len(self._table.key):
            raise UsageError(f"A key of lakewarden.{self._table.name} is ({', '.join(self._table.key)}).")
        return self._rows.get(key)

    def stored(self, keys: Iterable[Key]) -> Mapping[Key, R]:
        return {key: self._rows[key] for key in keys if key in self._rows}

    def find(self, **equals: str | int | None) -> tuple[R, ...]:
        check_columns(self._table, equals)
        return tuple(row for row in self.all() if all(getattr(row, name) == equals[name] for name in equals))

    def all(self) -> tuple[R, ...]:
        return tuple(self._rows[key] for key in sorted(self._rows, key=sortable))

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        check_columns(self._table, columns or ())
        rows = codec(self._table).encode(self.all())
        return rows if columns is None else rows.select(list(columns))

    def highest(self, column: str) -> int | None:
        check_columns(self._table, [column])
        values = [getattr(row, column) for row in self._rows.values()]
        return max((value for value in values if value is not None), default=None)


@dataclass(slots=True)
class _Kept:
    """One table's versions, oldest first, and the newest leader's token."""

    versions: list[Mapping[Key, Any]] = field(default_factory=lambda: [{}])
    digests: list[str] = field(default_factory=lambda: [uuid.uuid4().hex[:15]])
    token: int = 0


class FakeSystemStore:
    """The seven tables as dictionaries. `commits` holds (table, because) of every commit, in order."""

    def __init__(self) -> None:
        self.commits: list[tuple[SystemTableName, str]] = []
        self._kept: dict[SystemTableName, _Kept] = {}
        self._lock = threading.RLock()
        self._unasked = Unasked()

    def beside(self) -> "FakeSystemStore":
        """The same tables, as another process opens them."""
        other = copy(self)
        other._unasked = Unasked()
        return other

    def create(self, rows: Iterable[TableRow]) -> None:
        with self._lock:
            for table in SYSTEM_TABLES:
                self._kept.setdefault(table.name, _Kept())
        first = tuple(rows)
        self.edit(
            TABLES, lambda held: [row for row in first if held.get(row.table_id) is None], because="init"
        )

    def exists(self) -> bool:
        return TABLES.name in self._kept and bool(self._kept[TABLES.name].versions[-1])

    def installation(self) -> str:
        if not self.exists():
            raise NotFoundError("There are no system tables.")
        return f"{id(self):032x}"

    def require_current(self) -> None:
        """Nobody upgrades what is in memory."""

    def location(self, table: SystemTable[Any]) -> str:
        return f"memory://system/{table.name}"

    def storage(self) -> StorageOptions:
        return StorageOptions()

    def rows(self, table: SystemTable[R], *, version: int | None = None) -> Rows[R]:
        self._unasked.require()
        versions = self._of(table).versions
        if version is not None and not 0 <= version < len(versions):
            raise NotFoundError(f"lakewarden.{table.name} has no version {version} any more, or not yet.")
        at = len(versions) - 1 if version is None else version
        return FakeRows(table, at, versions[at])

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
        change = self._unasked.pure(change)
        delete = None if delete is None else self._unasked.pure(delete)
        while True:
            view = self.rows(table)
            self._admit(table, fence)
            held = self._of(table).versions[view.version]
            wanted = {key_of(table, row): row for row in change(view)}
            deleted = delete(view) if delete is not None else ()
            gone = {key_of(table, row) for row in deleted} - wanted.keys()
            changed = {key: row for key, row in wanted.items() if held.get(key) != row}
            if not changed and not gone & held.keys():
                return Committed(version=view.version, rows=())
            codec(table).encode(tuple(changed.values()))  # what no column can hold is refused, as on disk
            kept = {key: row for key, row in held.items() if key not in gone}
            if self._commit(table, view.version, kept | changed, fence, because):
                return Committed(version=view.version + 1, rows=tuple(changed.values()))

    def append(
        self, table: SystemTable[R], rows: Iterable[R], *, fence: Fence | None = None, because: str
    ) -> int:
        wanted = {key_of(table, row): row for row in reversed(tuple(rows))}

        def fresh(view: Rows[R]) -> Iterable[R]:
            return [row for key, row in wanted.items() if view.get(*key) is None]

        return self.edit(table, fresh, fence=fence, because=because).version

    def digest(self, table: SystemTable[Any], version: int) -> str | None:
        kept = self._of(table).digests
        return kept[version] or None if 0 <= version < len(kept) else None

    def forget(self, table: SystemTable[Any], version: int) -> None:
        """The log entry of a version goes with the audit window."""
        self._of(table).digests[version] = ""

    def put_back(self, table: SystemTable[Any], version: int) -> None:
        """Somebody puts the table in its place as it was at a version."""
        with self._lock:
            kept = self._of(table)
            del kept.versions[version + 1 :], kept.digests[version + 1 :]

    def added(self, table: SystemTable[R], version: int) -> tuple[R, ...]:
        if version == 0:
            return ()
        before = self.rows(table, version=version - 1)
        rows = self.rows(table, version=version).all()
        return tuple(row for row in rows if before.get(*key_of(table, row)) is None)

    def raise_fence(self, incarnation: str, *, at_least: int) -> Fence:
        with self._lock:
            token = 1 + max(at_least, *(self._of(table).token for table in SYSTEM_TABLES))
            fence = Fence(token=token, incarnation=incarnation)
            for table in SYSTEM_TABLES:
                kept = self._of(table)
                self._commit(table, len(kept.versions) - 1, kept.versions[-1], fence, "a new leader")
            return fence

    def _of(self, table: SystemTable[Any]) -> _Kept:
        if table.name not in self._kept:
            raise NotFoundError(
                f"lakewarden.{table.name} does not exist.", hint="`lakewarden init` creates it."
            )
        return self._kept[table.name]

    def _admit(self, table: SystemTable[Any], fence: Fence | None) -> None:
        if fence is not None and self._of(table).token > fence.token:
            raise FencedError(f"A newer leader has taken over lakewarden.{table.name}.")

    def _commit(
        self,
        table: SystemTable[Any],
        version: int,
        rows: Mapping[Key, Any],
        fence: Fence | None,
        because: str,
    ) -> bool:
        """Compare-and-set; False if somebody else has committed after `version`."""
        with self._lock:
            kept = self._of(table)
            if len(kept.versions) != version + 1:
                return False
            self._admit(table, fence)
            kept.versions.append(rows)
            kept.digests.append(uuid.uuid4().hex[:15])
            kept.token = kept.token if fence is None else fence.token
            self.commits.append((table.name, because))
            return True
