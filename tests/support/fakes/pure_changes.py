"""A compare-and-set whose `change` asks the store is found out: it is called on every try and has to be pure."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.port import Committed, Fence, R, Rows, SystemTable
from lakewarden.catalog.system.store import DeltaSystemStore

__all__ = ["PureStore", "Unasked"]

Change = Callable[[Rows[R]], Iterable[R]]


class Unasked:
    """Knows whether this thread is inside a `change`, and refuses what is asked of the store there."""

    def __init__(self) -> None:
        self._here = threading.local()

    def pure(self, change: Change[R]) -> Change[R]:
        """The same change, in which the store may not be asked."""

        def changed(rows: Rows[R]) -> Iterable[R]:
            with self._inside():
                return tuple(change(rows))

        return changed

    def require(self) -> None:
        """Fail inside a `change`."""
        assert not getattr(self._here, "inside", False), "a `change` asks the store: ask before the attempt"

    @contextmanager
    def _inside(self) -> Iterator[None]:
        self._here.inside = True
        try:
            yield
        finally:
            self._here.inside = False


class PureStore(DeltaSystemStore):
    """The real system store, in which no `change` may read or write any system table."""

    def __init__(self, location: str, storage: StorageOptions, *, actor: str) -> None:
        super().__init__(location, storage, actor=actor)
        self._unasked = Unasked()

    def rows(self, table: SystemTable[R], *, version: int | None = None) -> Rows[R]:
        self._unasked.require()
        return super().rows(table, version=version)

    def edit(
        self,
        table: SystemTable[R],
        change: Change[R],
        *,
        delete: Change[R] | None = None,
        fence: Fence | None = None,
        because: str,
        run_id: str | None = None,
    ) -> Committed[R]:
        self._unasked.require()
        gone = None if delete is None else self._unasked.pure(delete)
        return super().edit(
            table, self._unasked.pure(change), delete=gone, fence=fence, because=because, run_id=run_id
        )
